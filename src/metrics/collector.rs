//! The families for a registry of the crate `prometheus-client`.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry;

use super::family::{Family, Kind, Sample, Unit, Value};
use crate::capture::untracked;
use crate::profiler::Profiler;

/// Adds the profiler's metrics to a registry of the crate `prometheus-client`. Encodes nothing where the profiler is
/// disabled.
///
/// ```
/// let mut registry = prometheus_client::registry::Registry::default();
/// registry.register_collector(Box::new(heapray::MetricsCollector::new(heapray::profiler())));
/// ```
#[derive(Debug, Clone, Default)]
pub struct MetricsCollector {
    profiler: Profiler,
}

impl MetricsCollector {
    /// Returns the collector of `profiler`'s metrics.
    #[must_use]
    pub fn new(profiler: Profiler) -> MetricsCollector {
        MetricsCollector { profiler }
    }
}

impl Collector for MetricsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let _untracked = untracked::enter();
        let families = self.profiler.metric_families();
        for family in families.iter().filter(|family| !family.samples.is_empty()) {
            encode(family, &mut encoder)?;
        }
        Ok(())
    }
}

fn encode(family: &Family, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let unit = family.unit.map(|unit| match unit {
        Unit::Bytes => registry::Unit::Bytes,
        Unit::Seconds => registry::Unit::Seconds,
    });
    // The encoder adds the unit to the name.
    let ending = family.unit.map_or("", Unit::name);
    let name = family.name.strip_suffix(ending).unwrap_or(family.name);
    let name = name.trim_end_matches('_');
    let kind = match family.kind {
        Kind::Gauge => MetricType::Gauge,
        Kind::Counter => MetricType::Counter,
        Kind::Info => MetricType::Info,
        Kind::Histogram => MetricType::Histogram,
    };
    let mut metric = encoder.encode_descriptor(name, family.help, unit.as_ref(), kind)?;
    for Sample { labels, value } in &family.samples {
        let labels: Vec<_> = labels
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        match family.kind {
            Kind::Info => metric.encode_info(&labels)?,
            kind if labels.is_empty() => encode_value(kind, value, &mut metric)?,
            kind => encode_value(kind, value, &mut metric.encode_family(&labels)?)?,
        }
    }
    Ok(())
}

fn encode_value(
    kind: Kind,
    value: &Value,
    encoder: &mut MetricEncoder<'_>,
) -> Result<(), fmt::Error> {
    // No value has an exemplar.
    let none = None::<&Exemplar<NoLabelSet, f64>>;
    match (kind, value) {
        (Kind::Counter, Value::Whole(value)) => encoder.encode_counter(value, none),
        (Kind::Counter, Value::Seconds(value)) => encoder.encode_counter(value, none),
        // A gauge has no unsigned values.
        (_, Value::Whole(value)) => {
            encoder.encode_gauge(&i64::try_from(*value).unwrap_or(i64::MAX))
        }
        (_, Value::Seconds(value)) => encoder.encode_gauge(value),
        (_, Value::Histogram(histogram)) => {
            let below: u64 = histogram.buckets.iter().map(|bucket| bucket.count).sum();
            let buckets = histogram.buckets.iter();
            let buckets = buckets.map(|bucket| (bucket.largest as f64, bucket.count));
            // The encoder adds them up. The last bucket has no limit.
            let more = (f64::MAX, histogram.count.saturating_sub(below));
            let buckets: Vec<_> = buckets.chain([more]).collect();
            let sum = histogram.sum as f64;
            encoder.encode_histogram::<NoLabelSet>(sum, histogram.count, &buckets, None)
        }
    }
}
