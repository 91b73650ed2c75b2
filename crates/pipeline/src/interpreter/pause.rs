//! Paused packets (`ovs-actions(7)`, controller: pause): a continuation records the rest of the
//! processing, from the innermost action list to the outermost, and is executed when the controller
//! returns the packet.
//!
//! ```text
//!   rule A: resubmit(,1), output:3        controller(pause) in rule B
//!     rule B: controller(pause), output:2       |
//!                                                v
//!   continuation: [ rest of B: output:2 ] [ rest of A: output:3 ] [ action set ]
//! ```
//!
//! The rest of a copy's actions is paused with the copy; the original continues.

use base::{Cookie, Instant, TableId};
use flow::{Action, Continuation, ContinuationStep, Instructions, PipelineFields};
use packet::{Frame, Packet, Pool};

use super::{Execution, InputFrame, Interpreter};
use crate::bare_frame::stored;
use crate::fragment_store::HeldFragment;
use crate::lookup::LookupTables;
use crate::trace::Trace;
use crate::verdict::{Cause, Destination, DropReason, PacketInMeta, Verdict};

/// The continuation of a packet that is being paused.
#[derive(Debug)]
pub struct Pause {
    reason: PauseReason,
    continuation: Continuation,
}

/// The receiver of a paused packet.
#[derive(Debug)]
enum PauseReason {
    /// Controllers resume it.
    Controller(Box<PacketInMeta>),
    /// The fragment waits for the others of its packet.
    Fragment(Box<HeldFragment>),
}

/// The treatment of the action set at the end of a continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalActionSet {
    /// The set is executed.
    Executed,
    /// The set belongs to the original, and is not executed for a copy.
    Never,
}

/// A paused packet that continues.
#[derive(Debug)]
pub struct PausedPacket<'a> {
    /// The packet.
    pub data: &'a [u8],
    /// Its pipeline fields.
    pub registers: PipelineFields,
    /// The rest of its processing.
    pub continuation: &'a Continuation,
    /// The time.
    pub now: Instant,
}

impl Pause {
    /// Adds these actions, of a rule in this table, to the continuation.
    pub fn push_actions(&mut self, (table, cookie): (TableId, Cookie), actions: &[Action]) {
        self.continuation.steps.push(ContinuationStep {
            table,
            cookie,
            rest: Instructions::apply(actions.to_vec()),
        });
    }
}

impl Interpreter {
    /// Continues a paused packet that [`Pipeline::check_resume`](crate::Pipeline::check_resume) has
    /// accepted.
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
        let result = run.execute_continuation(&mut frame, waiting.continuation);
        run.end(frame, result);
    }
}

impl Execution<'_> {
    /// Begins a pause. Each enclosing action list then adds its rest.
    pub(crate) fn begin_pause(&mut self, meta: Box<PacketInMeta>) {
        self.begin(PauseReason::Controller(meta));
    }

    /// Begins the time for which a fragment is held. Each enclosing action list then adds its rest.
    pub(crate) fn begin_hold(&mut self, fragment: Box<HeldFragment>) {
        self.begin(PauseReason::Fragment(fragment));
    }

    fn begin(&mut self, reason: PauseReason) {
        self.exited = true;
        let continuation = Continuation {
            stack: self.stack.clone(),
            ..Continuation::default()
        };
        self.pause = Some(Pause {
            reason,
            continuation,
        });
    }

    /// Ends the run of a trace that shows recirculations; otherwise the packet continues.
    pub(crate) fn recirculate(&mut self) {
        if self.trace.recirculates() {
            let meta = self.packet_in(None);
            self.begin_pause(meta);
        }
    }

    /// Adds these actions of the present rule to the continuation.
    pub(crate) fn pause_actions(&mut self, actions: &[Action]) {
        if let Some(pause) = &mut self.pause {
            pause.push_actions((self.table, self.cookie), actions);
        }
    }

    /// Adds the instructions after `apply_actions` to the continuation.
    pub(crate) fn pause_instructions(&mut self, instructions: &Instructions) {
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

    /// Sends the paused packet to the controllers, or holds the fragment, now that its continuation
    /// is complete. The packet is as it was when the pause began.
    pub(crate) fn finish_pause(&mut self, end: FinalActionSet) {
        let Some(Pause {
            reason,
            mut continuation,
        }) = self.pause.take()
        else {
            return;
        };
        // The last step is the end of processing.
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
        match reason {
            PauseReason::Controller(mut meta) => {
                meta.continuation = Some(continuation);
                self.record_output(Destination::Controller(meta));
            }
            PauseReason::Fragment(mut fragment) => {
                fragment.rest = continuation;
                self.hold(*fragment);
            }
        }
    }

    /// Executes a continuation.
    pub(crate) fn execute_continuation(
        &mut self,
        frame: &mut Frame,
        continuation: &Continuation,
    ) -> Result<(), DropReason> {
        self.depth = self.pipeline.depth_to_resume(continuation);
        let mut packet = Packet::parse(frame, self.depth).map_err(DropReason::Malformed)?;
        self.set.write(continuation.set.as_deref().unwrap_or(&[]));
        self.sync_registers();
        self.trace.on_arrival(packet.frame(), &self.registers);
        let last = continuation.steps.len().saturating_sub(1);
        for (place, step) in continuation.steps.iter().enumerate() {
            if self.pause.is_some() {
                self.pause_step(step);
                continue;
            }
            if self.exited {
                break;
            }
            match self.execute_step(&mut packet, step) {
                // Ends the resubmission, and no more.
                Err(DropReason::InvalidTtl) if place < last => self.drop(DropReason::InvalidTtl),
                Ok(false) if place == last && continuation.set.is_some() => {
                    return self.handle_miss();
                }
                done => drop(done?),
            }
        }
        match continuation.set {
            Some(_) => self.execute_set(&mut packet),
            None => {
                self.finish_pause(FinalActionSet::Never);
                Ok(())
            }
        }
    }

    /// Executes the rest of one rule. Returns false if a table has no matching rule.
    fn execute_step(
        &mut self,
        packet: &mut Packet<'_>,
        step: &ContinuationStep,
    ) -> Result<bool, DropReason> {
        (self.table, self.rule, self.cookie) = (step.table, None, step.cookie);
        self.cause = match step.cookie {
            Cookie::NONE => Cause::PacketOut,
            _ => Cause::Action,
        };
        match self.execute_instructions(packet, &step.rest)? {
            Some(table) if !self.exited => {
                self.table = table;
                self.count_lookup()?;
                let found = self.look_up_onward(packet);
                self.run_rules(packet, found)
            }
            _ => Ok(true),
        }
    }

    /// Adds a step to the continuation of a packet that is paused again before it.
    fn pause_step(&mut self, step: &ContinuationStep) {
        if let Some(pause) = &mut self.pause {
            pause.continuation.steps.push(step.clone());
        }
    }
}
