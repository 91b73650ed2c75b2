//! Frames that lie in memory one behind the other and are run in batches, over and over:
//! traffic of many flows, with one worker's memory.
//!
//! Not for frames that are cut, cloned or kept: those that leave stay where they are.

use base::{Instant, PortNo};
use fastpath::{BatchContext, FrameOutcome, Runner, View};
use packet::{Frame, Pool};
use pipeline::Pipeline;

use super::{BatchRunner, rule_lists::splitmix64};

/// A worker without ports, and a trace that it runs through compiled tables.
pub struct FrameStream {
    pool: Pool,
    runner: Runner,
    view: View,
    /// As many as whole batches have.
    frames: Vec<Frame>,
    /// Those of a batch that were more work than to leave, by their place in it.
    told: Vec<(usize, Frame)>,
    next: usize,
    now: Instant,
}

impl FrameStream {
    /// A stream of these frames, shuffled, from the start again until whole batches are full.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn new(view: View, frames: &[Vec<u8>]) -> Self {
        assert!(!frames.is_empty(), "a stream has frames");
        let count = frames.len().next_multiple_of(BatchRunner::BATCH);
        let mut order: Vec<usize> = (0..count).map(|place| place % frames.len()).collect();
        // By splitmix64, and always the same: what is in the tables in order does not come in order.
        order.sort_by_cached_key(|&place| splitmix64(place as u64));
        // Each in a buffer of its own length, in the order in which they come in.
        let frames = order.iter().map(|&place| Frame::from_bytes(&frames[place]));
        Self {
            pool: Pool::new(BatchRunner::BATCH),
            runner: Runner::new(0),
            view,
            frames: frames.collect(),
            told: Vec::with_capacity(BatchRunner::BATCH),
            next: 0,
            now: Instant::START,
        }
    }

    /// How many batches it takes until the first frame comes again.
    #[must_use]
    pub const fn batches(&self) -> usize {
        self.frames.len() / BatchRunner::BATCH
    }

    /// Runs the next batch, as if it had come in by the first port. Answers how many frames
    /// left by a port and were no more work than that.
    pub fn run(&mut self, pipeline: &Pipeline) -> usize {
        self.now = Instant::from_nanos(self.now.as_nanos() + 1000);
        let ground = BatchContext {
            pipeline,
            view: &self.view,
            in_port: PortNo(1),
            now: self.now,
        };
        let frames = &mut self.frames[self.next..][..BatchRunner::BATCH];
        let (mut place, mut left) = (0, 0);
        {
            let mut batch = self.runner.begin(ground, frames);
            while let Some(fate) = batch.next(&mut self.pool) {
                match fate {
                    FrameOutcome::Forward(frames, _) => {
                        left += frames.len();
                        place += frames.len();
                    }
                    FrameOutcome::Verdict(verdict) => {
                        let frame = verdict.frames.pop();
                        self.told.extend(frame.map(|frame| (place, frame)));
                        place += 1;
                    }
                }
            }
        }
        for (place, frame) in self.told.drain(..) {
            frames[place] = frame;
        }
        self.next = (self.next + BatchRunner::BATCH) % self.frames.len();
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{TrafficPattern, Workload};
    use fastpath::Classifier;

    #[test]
    fn the_same_frames_come_again() {
        for workload in [
            Workload::access_list("a list", 50, TrafficPattern::Fitting),
            Workload::exact("some", 100),
            Workload::rewritten(),
        ] {
            let loaded = workload.load();
            let mut classifier = Classifier::new();
            loaded
                .changes
                .iter()
                .for_each(|changes| classifier.queue_changes(changes));
            let mut stream = FrameStream::new(classifier.publish(&loaded.pipeline), &loaded.frames);
            let lengths = |stream: &FrameStream| -> Vec<usize> {
                stream.frames.iter().map(Frame::len).collect()
            };
            let before = lengths(&stream);
            let rounds = |stream: &mut FrameStream| -> usize {
                (0..stream.batches())
                    .map(|_| stream.run(&loaded.pipeline))
                    .sum()
            };
            let first = rounds(&mut stream);
            assert_eq!(rounds(&mut stream), first);
            assert_eq!(lengths(&stream), before);
        }
    }
}
