//! The port state filter in a worker.

use base::Instant;
use fastpath::{FrameOutcome, Runner};
use packet::Link;
use pipeline::{Destination, Verdict};
use ports::Batch;

use super::forwarder::BatchForwarder;
use crate::counters::WorkerDrop;
use crate::program::BridgeProgram;
use crate::slots::PortKey;
use crate::stp_filter::BlockedPort;

impl BatchForwarder {
    /// Drops frames of a blocked port, after learning if its state permits.
    pub(super) fn filter_blocked(
        &mut self,
        bridge: &BridgeProgram,
        runner: &mut Runner,
        (from, blocked): (PortKey, BlockedPort),
        batch: &mut Batch,
        now: Instant,
    ) {
        match blocked {
            BlockedPort::LearnOnly => self.learn_and_drop(bridge, runner, from, batch, now),
            BlockedPort::DropAll => {
                for frame in batch.drain() {
                    self.drop_frame(frame, WorkerDrop::SpanningTree);
                }
            }
        }
    }

    fn learn_and_drop(
        &mut self,
        bridge: &BridgeProgram,
        runner: &mut Runner,
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        let batch_context = bridge.batch_context(from.port, now);
        let fields = self.recirculation.fields();
        {
            let mut run = runner.begin_with_fields(batch_context, fields.as_deref(), batch);
            while let Some(outcome) = run.next(&mut self.pool) {
                match outcome {
                    FrameOutcome::Forward(frames, _) => {
                        let frames = frames.iter_mut().map(std::mem::take);
                        frames.for_each(|frame| self.drop_frame(frame, WorkerDrop::SpanningTree));
                    }
                    FrameOutcome::Verdict(verdict) => {
                        self.learn_from_verdict(bridge, from, verdict, now)
                    }
                }
            }
        }
        runner.flush_stats();
        batch.clear();
        self.reporter
            .links
            .counters
            .add_slow_path(runner.take_slow_path_packets());
    }

    /// Reports the addresses and rules to learn from a frame, then drops it.
    fn learn_from_verdict(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        verdict: &mut Verdict,
        now: Instant,
    ) {
        let normal_context = bridge.normal_context();
        let normal = verdict.egress.iter();
        let normal = normal.filter(|egress| matches!(egress.to, Destination::Normal));
        let links = normal.filter_map(|egress| {
            let bytes = verdict.frames[egress.frame].bytes();
            Some((Link::parse(bytes).ok()?, bytes))
        });
        let addresses: Vec<_> = links
            .filter_map(|(link, bytes)| {
                normal_context.address_to_learn((&link, bytes), from.port, Some(now))
            })
            .collect();
        for address in addresses {
            self.report_address(from, address);
        }
        for learned in verdict.learn_requests.drain(..) {
            self.report_rule(from, learned);
        }
        for frame in verdict.frames.drain(..) {
            self.drop_frame(frame, WorkerDrop::SpanningTree);
        }
    }
}
