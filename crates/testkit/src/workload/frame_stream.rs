//! Frames in consecutive buffers that are run in batches, repeatedly: traffic of many flows in the
//! memory of one worker.
//!
//! Not for frames that are segmented, cloned or retained: output frames stay in their buffers.

use base::{Instant, PortNo};
use fastpath::{BatchContext, FrameOutcome, Runner, View};
use packet::{Frame, Pool};
use pipeline::Pipeline;

use super::{BatchRunner, rule_lists::splitmix64};

/// A worker without ports, and a sequence of frames that it runs through compiled tables.
pub struct FrameStream {
    pool: Pool,
    runner: Runner,
    view: View,
    /// The frames; their number is a multiple of the batch size.
    frames: Vec<Frame>,
    /// Frames of the current batch that had a verdict, with their index in the batch.
    verdict_frames: Vec<(usize, Frame)>,
    next: usize,
    now: Instant,
}

impl FrameStream {
    /// Returns a stream of these frames, shuffled and repeated until the last batch is full.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn new(view: View, frames: &[Vec<u8>]) -> Self {
        assert!(!frames.is_empty(), "a stream has frames");
        let count = frames.len().next_multiple_of(BatchRunner::BATCH);
        let mut order: Vec<usize> = (0..count).map(|index| index % frames.len()).collect();
        // Shuffled by splitmix64, always in the same way: frames of consecutive rules do not arrive
        // consecutively.
        order.sort_by_cached_key(|&index| splitmix64(index as u64));
        // Each frame has a buffer of its own length, allocated in the order of arrival.
        let frames = order.iter().map(|&index| Frame::from_bytes(&frames[index]));
        Self {
            pool: Pool::new(BatchRunner::BATCH),
            runner: Runner::new(0),
            view,
            frames: frames.collect(),
            verdict_frames: Vec::with_capacity(BatchRunner::BATCH),
            next: 0,
            now: Instant::START,
        }
    }

    /// Returns the number of batches until the first frame repeats.
    #[must_use]
    pub const fn batches(&self) -> usize {
        self.frames.len() / BatchRunner::BATCH
    }

    /// Runs the next batch, which arrives at port 1. Returns the number of frames that the fast
    /// path forwarded without a verdict.
    pub fn run(&mut self, pipeline: &Pipeline) -> usize {
        self.now = Instant::from_nanos(self.now.as_nanos() + 1000);
        let context = BatchContext {
            pipeline,
            view: &self.view,
            in_port: PortNo(1),
            now: self.now,
        };
        let frames = &mut self.frames[self.next..][..BatchRunner::BATCH];
        let (mut index, mut forwarded) = (0, 0);
        {
            let mut batch = self.runner.begin(context, frames);
            while let Some(outcome) = batch.next(&mut self.pool) {
                match outcome {
                    FrameOutcome::Forward(frames, _) => {
                        forwarded += frames.len();
                        index += frames.len();
                    }
                    FrameOutcome::Verdict(verdict) => {
                        let frame = verdict.frames.pop();
                        self.verdict_frames
                            .extend(frame.map(|frame| (index, frame)));
                        index += 1;
                    }
                }
            }
        }
        for (index, frame) in self.verdict_frames.drain(..) {
            frames[index] = frame;
        }
        self.next = (self.next + BatchRunner::BATCH) % self.frames.len();
        forwarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{TrafficPattern, Workload};
    use fastpath::Classifier;

    #[test]
    fn frame_stream_repeats_its_frames() {
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
