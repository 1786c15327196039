//! Weights of samples, and the live samples.
//!
//! An allocation of `size` bytes was recorded with the probability `p = 1 - e^(-size / mean)`, independently of all others
//! ([`sampling`](crate::capture::sampling)). Each recorded allocation counts for `1 / p` blocks of `size` bytes (Horvitz and
//! Thompson, 1952). So every sum over recorded blocks is right on average: totals, the sums of a site, the live memory at a
//! moment. Tables count whole blocks, so `1 / p` is rounded at random, up as often as its fraction says, which keeps the
//! average.
//!
//! The [`margin`] of a sum: its variance is the sum of the variances of its parts, and each recorded block gives an unbiased
//! estimate of its own part. With `w = 1 / p`, and `n`, the number of blocks that `w` was rounded to:
//!
//! ```text
//!   bytes    size² · w (w - 1)        at most mean · size · w, whatever the size: so a sum of B estimated bytes
//!   blocks   n² - w                   has a standard deviation of at most √(mean · B)
//! ```

use super::hash::{Map, mix};
use super::live::Block;
use super::reallocs::UnderWay;
use super::tables::{Lookup, Tables};
use super::threads::ThreadSlot;
use crate::capture::event::Event;
use heapray_report::model::{Sampling, SamplingRate, Tally, margin};

/// Live block that was recorded.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// The block. Its `size` is of all blocks that it stands for.
    block: Block,
    times: u64,
    variance: Variance,
}

/// Variance of a sum.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Variance {
    count: f64,
    bytes: f64,
}

impl Variance {
    fn add(&mut self, other: Variance) {
        self.count += other.count;
        self.bytes += other.bytes;
    }

    fn subtract(&mut self, other: Variance) {
        self.count -= other.count;
        self.bytes -= other.bytes;
    }

    /// Takes the larger one of each figure.
    fn grow_to(&mut self, other: Variance) {
        self.count = self.count.max(other.count);
        self.bytes = self.bytes.max(other.bytes);
    }

    /// Returns the margin of `estimate`, a sum with this variance. `unseen` is the variance of one more sample.
    fn margin(self, estimate: Tally, unseen: Variance, asked: Tally) -> Tally {
        // Neither the true value nor the estimated part of it is less than 0 or more than what was asked for.
        let bounded = |margin: u64, estimate: u64, asked: u64| margin.min(estimate.max(asked));
        let count = margin(estimate.count as f64, self.count, unseen.count.sqrt());
        let bytes = margin(estimate.bytes as f64, self.bytes, unseen.bytes.sqrt());
        Tally {
            count: bounded(count, estimate.count, asked.count),
            bytes: bounded(bytes, estimate.bytes, asked.bytes),
        }
    }
}

/// Samples of a session; see the module.
#[derive(Debug)]
pub(super) struct Samples {
    /// The rates that the session set. A thread may not have noticed the latest yet.
    rates: Vec<SamplingRate>,
    /// The means that living threads have announced.
    means: Map<u32, u64>,
    live: Map<u64, Sample>,
    /// Number of samples.
    taken: u64,
    /// Seed of the rounding. It differs between sessions; otherwise each process would round the same site alike.
    seed: u64,
    allocated: Variance,
    live_variance: Variance,
    high_water: Variance,
    /// The largest variance of one sample.
    largest: Variance,
}

impl Samples {
    /// Makes an empty table. `seed` is a random number of the session's own.
    pub(super) fn new(mean: u64, seed: u64) -> Samples {
        let rates = vec![SamplingRate {
            at_ms: 0,
            mean_bytes: mean,
        }];
        Samples {
            rates,
            means: Map::default(),
            live: Map::default(),
            taken: 0,
            seed,
            allocated: Variance::default(),
            live_variance: Variance::default(),
            high_water: Variance::default(),
            largest: Variance::default(),
        }
    }

    /// Returns the average bytes between two samples, since the last change.
    pub(super) fn mean(&self) -> u64 {
        self.rates.last().map_or(0, |rate| rate.mean_bytes)
    }

    /// Returns an empty table with the same rates of the threads.
    pub(super) fn begin_again(&self) -> Samples {
        let mean = self.mean();
        Samples {
            means: self.means.clone(),
            ..Samples::new(mean, mix(self.seed ^ self.taken))
        }
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        self.live.contains_key(&address)
    }

    /// Returns the live blocks, each with the number that it stands for. Sizes are of all of these.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (Block, u64)> + '_ {
        self.live
            .values()
            .map(|sample| (sample.block, sample.times))
    }

    /// Returns the variance of the live memory. It is summed anew, since adding and subtracting leaves rounding errors.
    fn live_variance(&self) -> Variance {
        let mut sum = Variance::default();
        self.live
            .values()
            .for_each(|sample| sum.add(sample.variance));
        sum
    }

    /// Returns the variance of one more sample. Where few or none were seen, those that were seen do not show it: a block of
    /// any size adds at most the mean's square to the variance of the bytes. The variance of the count has no such bound;
    /// it is that of a block of the average size, or of the largest that was seen.
    fn unseen(&self, asked: Tally) -> Variance {
        let means = self.rates.iter().map(|rate| rate.mean_bytes);
        let mean = means.max().unwrap_or(0);
        let average = asked.bytes.checked_div(asked.count).unwrap_or(0);
        let weight = weight(average, mean);
        Variance {
            count: (weight * (weight - 1.0)).max(self.largest.count),
            bytes: (mean as f64 * mean as f64).max(self.largest.bytes),
        }
    }

    /// Returns the weight of an allocation of `size` bytes by `thread`.
    fn weigh(&mut self, thread: u32, size: u64) -> (Tally, Variance) {
        self.taken += 1;
        let session = self.mean();
        let mean = self.means.get(&thread).copied().unwrap_or(session);
        let weight = weight(size, mean);
        let random = mix(mix(self.seed.wrapping_add(self.taken)));
        let uniform = (random >> 11) as f64 / (1_u64 << 53) as f64;
        let times = weight.trunc() + f64::from(u8::from(uniform < weight.fract()));
        let bytes = size as f64;
        let tally = Tally {
            count: times as u64,
            bytes: (bytes * weight).round() as u64,
        };
        let variance = Variance {
            count: times * times - weight,
            bytes: bytes * bytes * weight * (weight - 1.0),
        };
        self.largest.grow_to(Variance {
            count: weight * (weight - 1.0),
            bytes: variance.bytes,
        });
        (tally, variance)
    }

    fn remove(&mut self, address: u64) -> Option<Sample> {
        let sample = self.live.remove(&address)?;
        self.live_variance.subtract(sample.variance);
        Some(sample)
    }

    /// Forgets a thread that has ended.
    pub(super) fn forget_thread(&mut self, thread: u32) {
        self.means.remove(&thread);
    }

    /// Returns the bytes of memory of the samples.
    pub(super) fn memory_bytes(&self) -> u64 {
        let entries = self.live.capacity() * size_of::<(u64, Sample)>()
            + self.means.capacity() * size_of::<(u32, u64)>();
        entries as u64
    }
}

/// Returns how many blocks of `size` bytes a sample stands for, with a point every `mean` bytes: at least 1.
fn weight(size: u64, mean: u64) -> f64 {
    // Every allocation is recorded, or a block without a size was recorded by mistake.
    if mean == 0 || size == 0 {
        return 1.0;
    }
    -1.0 / (-(size as f64) / mean as f64).exp_m1()
}

impl Tables {
    /// Returns the sampling of the session, if it samples. `asked` is the threads' own count.
    pub(super) fn sampling(&self, asked: Tally) -> Option<Sampling> {
        let (samples, counters) = (self.samples.as_ref()?, self.counters());
        let unseen = samples.unseen(asked);
        Some(Sampling {
            rates: samples.rates.clone(),
            samples: samples.taken,
            asked,
            allocated: (samples.allocated).margin(counters.allocated, unseen, asked),
            live: (samples.live_variance()).margin(counters.live, unseen, asked),
            high_water: (samples.high_water).margin(counters.high_water, unseen, asked),
        })
    }

    /// Notes that the session samples with this mean from now on.
    pub(super) fn change_mean(&mut self, mean_bytes: u64, stamp: u64) {
        let at_ms = self.clock.at_ms(stamp);
        if let Some(samples) = &mut self.samples {
            samples.rates.push(SamplingRate { at_ms, mean_bytes });
        }
    }

    /// Notes the mean that the event's thread announces.
    #[cold]
    pub(super) fn note_mean(&mut self, event: &Event) {
        if let Some(samples) = &mut self.samples {
            samples.means.insert(event.thread, event.mean_bytes());
        }
    }

    #[cold]
    pub(super) fn allocate_sampled(&mut self, event: &Event, slot: ThreadSlot, lookup: Lookup) {
        let Some(samples) = &mut self.samples else {
            return;
        };
        let old = samples.remove(event.address);
        let (stands_for, variance) = samples.weigh(event.thread, event.size);
        if let Some(old) = old {
            let thread = self.freeing_thread(event, old.block.site);
            self.count_free_sampled(event.stamp, thread, &old, false);
        }
        let site = self.site(event, slot, lookup);
        let block = Block {
            size: stands_for.bytes,
            site,
            birth: self.clock.birth(event.stamp),
        };
        let sample = Sample {
            block,
            times: stands_for.count,
            variance,
        };
        self.count_allocation(event, slot, site, stands_for);
        if let Some(samples) = &mut self.samples {
            samples.live.insert(event.address, sample);
            samples.allocated.add(variance);
            samples.live_variance.add(variance);
        }
        self.note_mark();
    }

    /// Runs after an allocation or a mapping: if the heap is at its mark, the mark is as uncertain as the live memory.
    pub(super) fn note_mark(&mut self) {
        if let Some(samples) = &mut self.samples
            && self.peak.is_here()
        {
            samples.high_water = samples.live_variance;
        }
    }

    /// Removes a freed sample. Other blocks were not recorded, so an unknown one is not an error.
    #[cold]
    pub(super) fn free_sampled(&mut self, event: &Event) {
        let samples = self.samples.as_mut();
        if let Some(sample) = samples.and_then(|samples| samples.remove(event.address)) {
            self.counters.events += 1;
            self.count_free_sampled(event.stamp, event.thread, &sample, event.is_temporary());
        }
    }

    #[cold]
    pub(super) fn finish_sampled(&mut self, stamp: u64, realloc: UnderWay) -> Option<Block> {
        // The address may belong to another thread's block by now.
        if !realloc.known {
            return None;
        }
        let sample = self.samples.as_mut()?.remove(realloc.address)?;
        self.counters.events += 1;
        self.count_free_sampled(stamp, realloc.thread, &sample, false);
        Some(sample.block)
    }

    fn count_free_sampled(&mut self, stamp: u64, thread: u32, sample: &Sample, temporary: bool) {
        let Sample { block, times, .. } = *sample;
        self.subtract(stamp, block.site, times as i64, block.size);
        let slot = self.threads.slot(thread);
        if temporary && self.is_of_thread(block.site, slot) {
            let blocks = Tally {
                count: times,
                bytes: block.size,
            };
            self.sites.temporary(block.site, blocks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_the_inverse_of_the_chance() {
        assert_eq!(weight(100, 0), 1.0);
        assert!((weight(1, 1000) - 1000.5).abs() < 0.01);
        assert!((weight(1000, 1000) - 1.0 / (1.0 - (-1.0_f64).exp())).abs() < 1e-12);
        assert!((weight(1 << 40, 1000) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_variance_of_bytes_stays_below_the_stated_bound() {
        for size in [1, 16, 500, 1000, 5000, 100_000] {
            let (w, bytes) = (weight(size, 1000), size as f64);
            assert!(bytes * bytes * w * (w - 1.0) <= 1000.0 * bytes * w);
        }
    }

    #[test]
    fn weights_are_rounded_without_a_bias() {
        let mut samples = Samples::new(1000, 5);
        let sum: u64 = (0..100_000).map(|_| samples.weigh(1, 900).0.count).sum();
        let exact = weight(900, 1000) * 100_000.0;
        assert!((sum as f64 - exact).abs() < 600.0, "{sum}, not {exact}");
    }
}
