//! A family of metrics: a name, its meaning, and a value for each combination of labels.

use std::time::SystemTime;

/// A family.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Family {
    /// The name without the ending of its kind; with its unit, if it has one.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: Option<Unit>,
    /// One sentence.
    pub(super) help: &'static str,
    pub(super) samples: Vec<Sample>,
}

/// What the values of a family mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A value that rises and falls.
    Gauge,
    /// A sum that never falls. Its samples' names end in `_total`.
    Counter,
    /// Always 1: the labels hold the information. Its samples' names end in `_info`.
    Info,
    /// Numbers by size, which never fall: [`Histogram`].
    #[cfg_attr(not(feature = "http"), allow(dead_code))]
    Histogram,
}

impl Kind {
    /// Returns the ending of a sample's name.
    pub(super) const fn ending(self) -> &'static str {
        match self {
            // A histogram has several endings.
            Kind::Gauge | Kind::Histogram => "",
            Kind::Counter => "_total",
            Kind::Info => "_info",
        }
    }
}

/// A base unit, as the name of a family ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Seconds,
}

impl Unit {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Seconds => "seconds",
        }
    }
}

/// A value with its labels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: Value,
}

/// A number.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Whole(u64),
    Seconds(f64),
    #[cfg_attr(not(feature = "http"), allow(dead_code))]
    Histogram(Histogram),
}

/// Numbers by size.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Histogram {
    /// The smallest first. Larger numbers than those of the last are in none.
    pub(super) buckets: Vec<Bucket>,
    /// One of the larger numbers.
    pub(super) larger: Option<Exemplar>,
    /// How many there are.
    pub(super) count: u64,
    pub(super) sum: u64,
}

/// A part of a histogram.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bucket {
    /// The largest number that is in it.
    pub(super) largest: u64,
    /// How many there are in it.
    pub(super) count: u64,
    pub(super) exemplar: Option<Exemplar>,
}

/// One of a histogram's numbers, and what it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Exemplar {
    pub(super) labels: [(&'static str, String); 2],
    pub(super) value: u64,
    pub(super) at: SystemTime,
}

impl From<Histogram> for Value {
    fn from(value: Histogram) -> Value {
        Value::Histogram(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Whole(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Seconds(value)
    }
}

impl Family {
    /// Returns an empty family. Its unit is the one that its name ends in.
    pub(super) fn new(kind: Kind, name: &'static str, help: &'static str) -> Family {
        let mut units = [Unit::Bytes, Unit::Seconds].into_iter();
        let ends_in = |unit: &Unit| name.rsplit('_').next() == Some(unit.name());
        Family {
            name,
            kind,
            unit: units.find(ends_in),
            help,
            samples: Vec::new(),
        }
    }

    /// Returns a gauge with one value, or without any if `value` is `None`.
    pub(super) fn gauge(
        name: &'static str,
        help: &'static str,
        value: Option<impl Into<Value>>,
    ) -> Family {
        let mut family = Family::new(Kind::Gauge, name, help);
        if let Some(value) = value {
            family.add([], value);
        }
        family
    }

    /// Returns a counter with one value.
    pub(super) fn counter(
        name: &'static str,
        help: &'static str,
        value: impl Into<Value>,
    ) -> Family {
        let mut family = Family::new(Kind::Counter, name, help);
        family.add([], value);
        family
    }

    /// Adds a value. No other value of the family has the same labels.
    pub(super) fn add<const N: usize>(
        &mut self,
        labels: [(&'static str, String); N],
        value: impl Into<Value>,
    ) {
        self.samples.push(Sample {
            labels: labels.into(),
            value: value.into(),
        });
    }
}
