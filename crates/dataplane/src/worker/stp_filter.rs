//! The port state filter in a worker.

use base::Instant;
use fastpath::FrameOutcome;
use packet::Link;
use pipeline::{Destination, Verdict};
use ports::Batch;

use super::Worker;
use crate::counters::WorkerDrop;
use crate::messages::WorkerEvent;
use crate::program::BridgeProgram;
use crate::slots::PortKey;
use crate::stp_filter::BlockedPort;

impl Worker {
    /// Drops frames of a blocked port, after learning if its state permits.
    pub(super) fn hold_back(
        &mut self,
        bridge: &BridgeProgram,
        (from, passage): (PortKey, BlockedPort),
        batch: &mut Batch,
        now: Instant,
    ) {
        match passage {
            BlockedPort::LearnOnly => self.learn_from(bridge, from, batch, now),
            BlockedPort::DropAll => {
                for frame in batch.drain() {
                    self.drop_frame(frame, WorkerDrop::SpanningTree);
                }
            }
        }
    }

    fn learn_from(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        let runner = self.runner.take();
        let mut runner = runner.expect("it is put back at the end of each batch");
        let ground = bridge.ground(from.port, now);
        let words = self.onward.words();
        {
            let mut run = runner.begin_with_fields(ground, words.as_deref(), batch);
            while let Some(fate) = run.next(&mut self.pool) {
                match fate {
                    FrameOutcome::Forward(frames, _) => {
                        let frames = frames.iter_mut().map(std::mem::take);
                        frames.for_each(|frame| self.drop_frame(frame, WorkerDrop::SpanningTree));
                    }
                    FrameOutcome::Verdict(verdict) => self.learn_of(bridge, from, verdict, now),
                }
            }
        }
        runner.flush_stats();
        batch.clear();
        self.shared
            .counters
            .add_handed(runner.take_slow_path_packets());
        self.runner = Some(runner);
    }

    /// Reports the addresses and rules to learn from a frame, then drops it.
    fn learn_of(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        verdict: &mut Verdict,
        now: Instant,
    ) {
        let knowledge = bridge.knowledge();
        let normal = verdict.egress.iter();
        let normal = normal.filter(|egress| matches!(egress.to, Destination::Normal));
        let links = normal.filter_map(|egress| {
            let bytes = verdict.frames[egress.frame].bytes();
            Some((Link::parse(bytes).ok()?, bytes))
        });
        let news: Vec<_> = links
            .filter_map(|(link, bytes)| knowledge.news((&link, bytes), from.port, Some(now)))
            .collect();
        for address in news {
            self.tell(
                WorkerEvent::Learn(from, address),
                WorkerDrop::LearnQueueFull,
            );
        }
        for learned in verdict.learn_requests.drain(..) {
            self.tell(
                WorkerEvent::LearnRule(from, Box::new(learned)),
                WorkerDrop::LearnQueueFull,
            );
        }
        for frame in verdict.frames.drain(..) {
            self.drop_frame(frame, WorkerDrop::SpanningTree);
        }
    }
}
