//! Which of a bridge's frames are told of to collectors: one of so many, at random.
//!
//! For each purpose frames are passed over, a number drawn anew each time. One of every so many
//! would always be the same of a pattern that recurs (sFlow version 5, section 3.1).

use std::num::NonZeroU32;
use std::sync::Arc;

use base::{Instant, PortNo};

use flow_export::FrameExcerpt;
use packet::Frame;

use super::slots::PortKey;

/// What samples of a bridge are taken for, and how many; workers take them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplingView {
    /// For sFlow, one of so many.
    pub sflow: Option<NonZeroU32>,
    /// For IPFIX, of those that come in, and of those that leave.
    pub ipfix: [Option<NonZeroU32>; 2],
    /// So much of a frame is told, in bytes.
    pub snap: usize,
    /// Whether all are counted by flows.
    pub flows: bool,
    /// The sets of collectors that rules may have frames told to, in order.
    pub sets: Vec<u32>,
}

impl SamplingView {
    /// Whether any are sampled.
    pub const fn samples(&self) -> bool {
        !matches!((self.sflow, self.ipfix), (None, [None, None]))
    }
}

/// What a frame is sampled for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleChoice {
    /// sFlow; and how many frames it stands for, those that were passed over among them.
    pub sflow: Option<u64>,
    /// IPFIX, as it comes in, and as it leaves; likewise.
    pub ipfix: [Option<u64>; 2],
}

impl SampleChoice {
    /// Whether it is sampled for nothing.
    pub(crate) const fn is_nothing(self) -> bool {
        matches!((self.sflow, self.ipfix), (None, [None, None]))
    }
}

/// A frame that was sampled, as far as is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSample {
    /// Where it came in.
    pub from: PortKey,
    /// What it is for.
    pub chosen: SampleChoice,
    /// How many samples for sFlow were lost since the last that the control thread had room for.
    pub missed: u32,
    /// How it came.
    pub arrived: FrameExcerpt,
    /// How it left, wherever it did.
    pub departed: Vec<SampledOutput>,
}

/// A frame that a rule has told to a set of collectors, as it was then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionSample {
    /// Where it came in.
    pub from: PortKey,
    /// What the rule says.
    pub sample: flow::SampleAction,
    /// For how many frames it stands.
    pub stands_for: u64,
    /// What it was.
    pub frame: FrameExcerpt,
}

impl ActionSample {
    /// The frame; it stands for as many as a rule's samples are apart.
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

/// A frame that leaves by a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledOutput {
    /// The port.
    pub port: PortNo,
    /// How it leaves.
    pub frame: FrameExcerpt,
}

/// Chooses the frames of one bridge for one worker.
pub(crate) struct FrameSampler {
    random: SampleRandom,
    view: Arc<SamplingView>,
    sflow: Option<SampleSkip>,
    ipfix: [Option<SampleSkip>; 2],
    /// Samples for sFlow that were lost and not told of.
    missed: u32,
}

impl FrameSampler {
    /// One that draws by this seed.
    pub(crate) fn new(view: &Arc<SamplingView>, seed: u64) -> Self {
        let mut random = SampleRandom::new(seed);
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

    /// Whether it chooses by this view.
    pub(crate) fn is_by(&self, view: &Arc<SamplingView>) -> bool {
        Arc::ptr_eq(&self.view, view)
    }

    /// What a frame is to be sampled for that stands for so many.
    #[inline]
    pub(crate) fn choose(&mut self, frames: u64) -> SampleChoice {
        let random = &mut self.random;
        let mut pass = |skip: &mut Option<SampleSkip>| skip.as_mut()?.pass(frames, random);
        SampleChoice {
            sflow: pass(&mut self.sflow),
            ipfix: self.ipfix.each_mut().map(pass),
        }
    }

    /// How many samples are to be told of as lost with one for these purposes.
    pub(crate) const fn missed(&self, chosen: SampleChoice) -> u32 {
        match chosen.sflow {
            None => 0,
            Some(_) => self.missed,
        }
    }

    /// Takes note that a sample for these purposes was told, or lost: then the next stands for
    /// its frames, too.
    pub(crate) fn settle(&mut self, chosen: SampleChoice, told: bool) {
        if told {
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

/// The way to the next sample.
struct SampleSkip {
    rate: NonZeroU32,
    /// The next sample is the frame of this number, counted from one.
    left: u64,
    /// How many were passed over.
    passed: u64,
}

impl SampleSkip {
    fn new(rate: NonZeroU32, random: &mut SampleRandom) -> Self {
        Self {
            rate,
            left: random.draw(rate),
            passed: 0,
        }
    }

    /// Passes a frame that stands for so many; answers for how many it does as a sample, if it
    /// is one.
    #[inline]
    fn pass(&mut self, frames: u64, random: &mut SampleRandom) -> Option<u64> {
        self.passed += frames;
        if frames < self.left {
            self.left -= frames;
            return None;
        }
        // One that stands for many can be chosen once.
        let beyond = frames - self.left;
        self.left = random.draw(self.rate).saturating_sub(beyond).max(1);
        Some(std::mem::take(&mut self.passed))
    }
}

/// Numbers that look as if they came by chance (xorshift64, G. Marsaglia, 2003). Nobody's
/// secrets depend on them.
pub(crate) struct SampleRandom(u64);

impl SampleRandom {
    /// Those that begin so.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// Whether something happens that happens so many times of 65,535.
    pub(crate) fn happens(&mut self, probability: u16) -> bool {
        (self.next() >> 16) % u64::from(u16::MAX) < probability.into()
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from 1 on, `mean` on average.
    fn draw(&mut self, mean: NonZeroU32) -> u64 {
        let span = 2 * u64::from(mean.get()) - 1;
        // The upper bits are the better ones.
        (self.next() >> 16) % span + 1
    }
}

/// A seed for a worker's sampler of a bridge.
pub(crate) fn seed(worker: u64, bridge: u32, now: Instant) -> u64 {
    let mixed = now.as_nanos() ^ (worker << 56) ^ (u64::from(bridge) << 40);
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
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
    fn one_of_one_is_each() {
        let mut sampler = sampler(1, 7);
        for _ in 0..100 {
            assert_eq!(sampler.choose(1).sflow, Some(1));
        }
        assert_eq!(sampler.choose(45).sflow, Some(45));
        assert_eq!(sampler.choose(1).sflow, Some(1));
    }

    #[test]
    fn samples_stand_for_all_and_are_as_many_as_asked_for_and_not_evenly_apart() {
        for seed in 1..20_u64 {
            let mut sampler = sampler(100, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
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
    fn the_next_sample_stands_for_one_that_was_lost_and_tells_of_it() {
        let mut sampler = sampler(1, 7);
        let mut chosen = [1, 2, 1].map(|frames| sampler.choose(frames));
        sampler.settle(chosen[0], false);
        sampler.settle(chosen[1], false);
        assert_eq!(sampler.missed(chosen[2]), 2);
        sampler.settle(chosen[2], true);
        chosen[0] = sampler.choose(1);
        assert_eq!((chosen[0].sflow, sampler.missed(chosen[0])), (Some(4), 0));
    }

    #[test]
    fn what_a_rule_samples_happens_as_often_as_it_says() {
        let mut random = SampleRandom::new(0x9e37_79b9_7f4a_7c15);
        assert!((0..1000).all(|_| random.happens(u16::MAX)));
        let half = (0..10_000).filter(|_| random.happens(1 << 15)).count();
        assert!((4700..5300).contains(&half), "{half}");
        let few = (0..100_000).filter(|_| random.happens(655)).count();
        assert!((850..1150).contains(&few), "{few}");
    }

    #[test]
    fn nothing_is_chosen_for_nothing() {
        let mut sampler = sampler(0, 3);
        assert!((0..1000).all(|_| sampler.choose(1).is_nothing()));
    }
}
