//! Converts seconds and MiB to positions, and finds the round numbers in between.

/// Scale from a range of values to a range of positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    pub(super) from: f64,
    pub(super) to: f64,
    low: f64,
    high: f64,
}

impl Scale {
    pub(super) fn new((from, to): (f64, f64), low: f64, high: f64) -> Scale {
        let to = if to > from { to } else { from + 1.0 };
        Scale {
            from,
            to,
            low,
            high,
        }
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        self.low + (value - self.from) / (self.to - self.from) * (self.high - self.low)
    }

    pub(super) fn holds(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }

    /// Returns about `about` round values within the range, each with its text.
    pub(super) fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        let rough = (self.to - self.from) / about.max(1) as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|n| n * power);
        let step = step
            .into_iter()
            .find(|step| *step >= rough * 0.999)
            .unwrap_or(power);
        // The digits that the step needs.
        let digits = (0..9).find(|&digits| {
            let shifted = step * 10_f64.powi(digits);
            (shifted - shifted.round()).abs() < 1e-6 * shifted.abs().max(1e-9)
        });
        let digits = usize::try_from(digits.unwrap_or(9)).unwrap_or(0);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step).floor() as i64;
        // A range at the far end of all numbers has no round values.
        let last = last.min(first.saturating_add(100));
        (first..=last)
            .map(|n| (n as f64 * step, format!("{:.digits$}", n as f64 * step)))
            .collect()
    }
}

/// Returns matplotlib's limits of an axis: the values, extended by a twentieth of their range at each end.
pub(super) fn limits(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low > high {
        return (0.0, 1.0);
    }
    let margin = match (high - low) * 0.05 {
        // A single value.
        0.0 => (high.abs() * 0.05).max(0.05),
        margin => margin,
    };
    (low - margin, high + margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_say_no_more_digits_than_they_need() {
        let texts = |range, about| -> Vec<String> {
            let ticks = Scale::new(range, 0.0, 1.0).ticks(about);
            ticks.into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts((-0.1, 2.1), 8), ["0.0", "0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(texts((0.0, 100.0), 5), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(
            texts((0.0, 1.0), 4),
            ["0.00", "0.25", "0.50", "0.75", "1.00"]
        );
        for range in [(0.0, 1e-9), (1e17, 1e17 + 1.0), (-1e300, 1e300), (5.0, 5.0)] {
            assert!(texts(range, 8).len() <= 110);
        }
    }

    #[test]
    fn limits_leave_a_margin() {
        assert_eq!(limits([0.0, 10.0].into_iter()), (-0.5, 10.5));
        assert_eq!(limits([].into_iter()), (0.0, 1.0));
        let (low, high) = limits([7.0].into_iter());
        assert!(low < 7.0 && high > 7.0);
    }
}
