//! Random sampling of a bridge's frames: one of N on average.
//!
//! For each purpose a random number of frames is skipped before the next sample. A sample of every
//! N-th frame would always hit the same frame of a periodic pattern (sFlow version 5, section 3.1).

use std::num::NonZeroU32;
use std::sync::Arc;

use base::{Instant, PortNo, SplitMix64};
use flow_export::FrameExcerpt;
use packet::Frame;

use super::slots::PortKey;

/// The sampling settings of a bridge for the workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplingView {
    /// The sFlow rate: one of N frames.
    pub sflow: Option<NonZeroU32>,
    /// The IPFIX rates on ingress and on egress.
    pub ipfix: [Option<NonZeroU32>; 2],
    /// The maximum number of bytes of a sample.
    pub snap: usize,
    /// True if NetFlow counts all frames by flow.
    pub flows: bool,
    /// The ids of configured collector sets for `sample` actions, sorted.
    pub sets: Vec<u32>,
}

impl SamplingView {
    /// Returns whether any frames are sampled.
    pub const fn samples(&self) -> bool {
        !matches!((self.sflow, self.ipfix), (None, [None, None]))
    }
}

/// The purposes for which a frame is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleChoice {
    /// sFlow: the number of frames that the sample represents, including the skipped ones.
    pub sflow: Option<u64>,
    /// IPFIX on ingress and on egress, likewise.
    pub ipfix: [Option<u64>; 2],
}

impl SampleChoice {
    /// Returns whether there is no purpose.
    pub(crate) const fn is_nothing(self) -> bool {
        matches!((self.sflow, self.ipfix), (None, [None, None]))
    }
}

/// A sampled frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSample {
    /// The ingress port.
    pub from: PortKey,
    /// The purposes.
    pub chosen: SampleChoice,
    /// sFlow samples that were lost since the last one that the event ring had room for.
    pub missed: u32,
    /// The frame on ingress.
    pub ingress: FrameExcerpt,
    /// The frame on each egress.
    pub outputs: Vec<SampledOutput>,
}

/// A frame that a `sample` action selected, at that point of the pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionSample {
    /// The ingress port.
    pub from: PortKey,
    /// The action.
    pub sample: flow::SampleAction,
    /// The number of frames that the sample represents.
    pub stands_for: u64,
    /// The frame.
    pub frame: FrameExcerpt,
}

impl ActionSample {
    /// Returns a sample; the reciprocal of the probability is the number of frames it represents.
    pub fn of(frame: &Frame, from: PortKey, sample: flow::SampleAction) -> Self {
        let apart = u16::MAX.checked_div(sample.probability).unwrap_or(1);
        Self {
            from,
            sample,
            stands_for: frame.wire_frames() * u64::from(apart),
            frame: FrameExcerpt::of(frame, 0),
        }
    }
}

/// A sampled frame on egress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledOutput {
    /// The port.
    pub port: PortNo,
    /// The frame.
    pub frame: FrameExcerpt,
}

/// The sampler of one bridge in one worker.
pub(crate) struct FrameSampler {
    random: SplitMix64,
    view: Arc<SamplingView>,
    sflow: Option<SampleSkip>,
    ipfix: [Option<SampleSkip>; 2],
    /// Lost sFlow samples that no sample has reported yet.
    missed: u32,
}

impl FrameSampler {
    /// Returns a sampler with this seed.
    pub(crate) fn new(view: &Arc<SamplingView>, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut skip =
            |rate: Option<NonZeroU32>| rate.map(|rate| SampleSkip::new(rate, &mut random));
        Self {
            sflow: skip(view.sflow),
            ipfix: view.ipfix.map(&mut skip),
            random,
            view: Arc::clone(view),
            missed: 0,
        }
    }

    /// Returns whether the sampler uses these settings.
    pub(crate) fn uses(&self, view: &Arc<SamplingView>) -> bool {
        Arc::ptr_eq(&self.view, view)
    }

    /// Returns the purposes for which a frame is sampled. `frames` is its number of frames on the
    /// wire.
    #[inline]
    pub(crate) fn choose(&mut self, frames: u64) -> SampleChoice {
        let random = &mut self.random;
        let mut pass = |skip: &mut Option<SampleSkip>| skip.as_mut()?.pass(frames, random);
        SampleChoice {
            sflow: pass(&mut self.sflow),
            ipfix: self.ipfix.each_mut().map(pass),
        }
    }

    /// Returns the number of lost samples that a sample for these purposes reports.
    pub(crate) const fn missed(&self, chosen: SampleChoice) -> u32 {
        match chosen.sflow {
            None => 0,
            Some(_) => self.missed,
        }
    }

    /// Records that a sample for these purposes was sent or lost. After a loss the next sample also
    /// represents its frames.
    pub(crate) fn record_result(&mut self, chosen: SampleChoice, was_sent: bool) {
        if was_sent {
            self.missed -= self.missed(chosen);
            return;
        }
        self.missed = self.missed.saturating_add(chosen.sflow.is_some().into());
        let skips = [&mut self.sflow].into_iter().chain(&mut self.ipfix);
        let chosen = [chosen.sflow].into_iter().chain(chosen.ipfix);
        for (skip, stands_for) in skips.zip(chosen) {
            if let (Some(skip), Some(stands_for)) = (skip, stands_for) {
                skip.passed += stands_for;
            }
        }
    }
}

/// The distance to the next sample.
struct SampleSkip {
    rate: NonZeroU32,
    /// The number of the frame that is the next sample, counted from one.
    left: u64,
    /// The number of skipped frames.
    passed: u64,
}

impl SampleSkip {
    fn new(rate: NonZeroU32, random: &mut SplitMix64) -> Self {
        Self {
            rate,
            left: draw(random, rate),
            passed: 0,
        }
    }

    /// Counts a frame of `frames` frames on the wire. Returns the number of frames that it
    /// represents, if it is a sample.
    #[inline]
    fn pass(&mut self, frames: u64, random: &mut SplitMix64) -> Option<u64> {
        self.passed += frames;
        if frames < self.left {
            self.left -= frames;
            return None;
        }
        // A frame with several segments can be sampled once.
        let beyond = frames - self.left;
        self.left = draw(random, self.rate).saturating_sub(beyond).max(1);
        Some(std::mem::take(&mut self.passed))
    }
}

/// Returns true with this probability in units of 1/65535.
pub(crate) const fn happens(random: &mut SplitMix64, probability: u16) -> bool {
    random.next_u64() % (u16::MAX as u64) < probability as u64
}

/// Returns a number of at least 1, `mean` on average.
fn draw(random: &mut SplitMix64, mean: NonZeroU32) -> u64 {
    let span = 2 * u64::from(mean.get()) - 1;
    random.next_u64() % span + 1
}

/// Returns the seed of a worker's sampler of a bridge.
pub(crate) fn seed(worker: u64, bridge: u32, now: Instant) -> u64 {
    now.as_nanos() ^ (worker << 56) ^ (u64::from(bridge) << 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(rate: u32, seed: u64) -> FrameSampler {
        let view = Arc::new(SamplingView {
            sflow: NonZeroU32::new(rate),
            ipfix: [None, None],
            snap: 128,
            flows: false,
            sets: Vec::new(),
        });
        FrameSampler::new(&view, seed)
    }

    #[test]
    fn sampling_rate_one_selects_every_frame() {
        let mut sampler = sampler(1, 7);
        for _ in 0..100 {
            assert_eq!(sampler.choose(1).sflow, Some(1));
        }
        assert_eq!(sampler.choose(45).sflow, Some(45));
        assert_eq!(sampler.choose(1).sflow, Some(1));
    }

    #[test]
    fn samples_represent_all_frames_at_the_rate_with_random_distances() {
        for seed in 1..20_u64 {
            let mut sampler = sampler(100, seed);
            let chosen: Vec<u64> = (0..100_000)
                .filter_map(|_| sampler.choose(1).sflow)
                .collect();
            assert!((850..1150).contains(&chosen.len()), "{}", chosen.len());
            assert!(chosen.iter().all(|apart| (1..200).contains(apart)));
            let total: u64 = chosen.iter().sum();
            assert!((99_800..=100_000).contains(&total), "{total}");
            let first = chosen[0];
            assert!(chosen.iter().any(|apart| *apart != first));
        }
    }

    #[test]
    fn sample_after_a_loss_represents_and_reports_it() {
        let mut sampler = sampler(1, 7);
        let mut chosen = [1, 2, 1].map(|frames| sampler.choose(frames));
        sampler.record_result(chosen[0], false);
        sampler.record_result(chosen[1], false);
        assert_eq!(sampler.missed(chosen[2]), 2);
        sampler.record_result(chosen[2], true);
        chosen[0] = sampler.choose(1);
        assert_eq!((chosen[0].sflow, sampler.missed(chosen[0])), (Some(4), 0));
    }

    #[test]
    fn sample_action_follows_its_probability() {
        let mut random = SplitMix64::new(1);
        assert!((0..1000).all(|_| happens(&mut random, u16::MAX)));
        let half = (0..10_000)
            .filter(|_| happens(&mut random, 1 << 15))
            .count();
        assert!((4700..5300).contains(&half), "{half}");
        let few = (0..100_000).filter(|_| happens(&mut random, 655)).count();
        assert!((850..1150).contains(&few), "{few}");
    }

    #[test]
    fn sampler_without_purposes_selects_nothing() {
        let mut sampler = sampler(0, 3);
        assert!((0..1000).all(|_| sampler.choose(1).is_nothing()));
    }
}
