//! Frames that wait for a controller (`ovs-actions(7)`, controller: pause): what is
//! left to be done with them is put together on the way back from where they stopped,
//! and is done when they are sent back.
//!
//! What a copy was to do waits with the copy; the frame that was copied goes on.

use base::{Cookie, Instant};
use flow::{Action, Continuation, ContinuationStep, Instructions, PipelineFields};
use packet::{Frame, Packet, Pool};

use super::{Execution, InputFrame, Interpreter};
use crate::bare_frame::stored;
use crate::lookup::LookupTables;
use crate::trace::Trace;
use crate::verdict::{Cause, Destination, DropReason, PacketInMeta, Verdict};

/// What is being put together of a frame that is to wait.
#[derive(Debug)]
pub(crate) struct Pause {
    meta: Box<PacketInMeta>,
    continuation: Continuation,
}

/// What becomes of the action set in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalActionSet {
    /// It is executed.
    Executed,
    /// Nothing: it is a copy's.
    Never,
}

/// A frame that waited for a controller and is to go on.
#[derive(Debug)]
pub struct PausedPacket<'a> {
    /// The frame.
    pub data: &'a [u8],
    /// What goes with it.
    pub registers: PipelineFields,
    /// How to go on.
    pub continuation: &'a Continuation,
    /// When.
    pub now: Instant,
}

impl Interpreter {
    /// Goes on with a frame that waited, of which [`Pipeline::check_resume`] said that
    /// it can.
    pub fn resume_paused<'a>(
        &'a mut self,
        tables: impl Into<LookupTables<'a>>,
        waiting: PausedPacket<'_>,
        pool: &'a mut Pool,
        trace: &'a mut dyn Trace,
        verdict: &'a mut Verdict,
    ) {
        let arrival = InputFrame {
            frame: stored(waiting.data, waiting.registers.packet_type),
            in_port: waiting.registers.in_port,
            now: waiting.now,
        };
        let mut run = self.begin(tables.into(), &arrival, pool, trace, verdict);
        run.registers = waiting.registers;
        run.stack.extend(&waiting.continuation.stack);
        let mut frame = arrival.frame;
        let result = run.go_on(&mut frame, waiting.continuation);
        run.end(frame, result);
    }
}

impl Execution<'_> {
    /// The frame stops here. Whoever was doing something with it says what is left.
    pub(crate) fn begin_pause(&mut self, meta: Box<PacketInMeta>) {
        self.exited = true;
        let continuation = Continuation {
            stack: self.stack.clone(),
            ..Continuation::default()
        };
        self.pause = Some(Pause { meta, continuation });
    }

    /// These actions of the rule at hand are left.
    pub(crate) fn leave(&mut self, actions: &[Action]) {
        let step = ContinuationStep {
            table: self.table,
            cookie: self.cookie,
            rest: Instructions::apply(actions.to_vec()),
        };
        if let Some(pause) = &mut self.pause {
            pause.continuation.steps.push(step);
        }
    }

    /// All that these instructions say behind their actions is left, too.
    pub(crate) fn leave_instructions(&mut self, instructions: &Instructions) {
        let steps = self.pause.as_mut();
        let step = steps.and_then(|pause| pause.continuation.steps.last_mut());
        if let Some(step) = step {
            let apply = std::mem::take(&mut step.rest.apply);
            step.rest = Instructions {
                meter: None,
                apply,
                ..instructions.clone()
            };
        }
    }

    /// Sends a frame that stopped to those whom it waits for, now that all is known
    /// that is left. The frame is as it was when it stopped.
    pub(crate) fn wait(&mut self, end: FinalActionSet) {
        let Some(Pause {
            mut meta,
            mut continuation,
        }) = self.pause.take()
        else {
            return;
        };
        // The last is where the frame's way ends, and is there if only for that.
        let last = continuation.steps.pop();
        let nothing = Instructions::default();
        continuation.steps.retain(|step| step.rest != nothing);
        continuation.steps.extend(last);
        if end == FinalActionSet::Executed {
            continuation.set = Some(self.set.actions().to_vec());
        }
        if continuation.bytes() > flow::CONTINUATION_BYTES_MAX {
            self.drop(DropReason::ContinuationTooLong);
            return;
        }
        meta.continuation = Some(continuation);
        self.promise(Destination::Controller(meta));
    }

    /// Goes on where a frame stopped.
    pub(crate) fn go_on(
        &mut self,
        frame: &mut Frame,
        continuation: &Continuation,
    ) -> Result<(), DropReason> {
        self.depth = self.pipeline.depth_to_resume(continuation);
        let mut packet = Packet::parse(frame, self.depth).map_err(DropReason::Malformed)?;
        self.set.write(continuation.set.as_deref().unwrap_or(&[]));
        self.gather();
        self.trace.on_arrival(packet.frame(), &self.registers);
        let last = continuation.steps.len().saturating_sub(1);
        for (place, step) in continuation.steps.iter().enumerate() {
            if self.pause.is_some() {
                self.leave_step(step);
                continue;
            }
            if self.exited {
                break;
            }
            match self.take_step(&mut packet, step) {
                // Ends what a resubmission led to, and no more.
                Err(DropReason::InvalidTtl) if place < last => self.drop(DropReason::InvalidTtl),
                Ok(false) if place == last && continuation.set.is_some() => return self.missed(),
                done => drop(done?),
            }
        }
        match continuation.set {
            Some(_) => self.execute_set(&mut packet),
            None => {
                self.wait(FinalActionSet::Never);
                Ok(())
            }
        }
    }

    /// Does what is left of a rule. Answers whether the way ended by a rule.
    fn take_step(
        &mut self,
        packet: &mut Packet<'_>,
        step: &ContinuationStep,
    ) -> Result<bool, DropReason> {
        (self.table, self.rule, self.cookie) = (step.table, None, step.cookie);
        self.cause = match step.cookie {
            Cookie::NONE => Cause::PacketOut,
            _ => Cause::Action,
        };
        match self.follow(packet, &step.rest)? {
            Some(table) if !self.exited => {
                self.table = table;
                self.count_lookup()?;
                let found = self.look_up(packet);
                self.traverse(packet, found)
            }
            _ => Ok(true),
        }
    }

    /// The frame stops again before it came to this step.
    fn leave_step(&mut self, step: &ContinuationStep) {
        if let Some(pause) = &mut self.pause {
            pause.continuation.steps.push(step.clone());
        }
    }
}
