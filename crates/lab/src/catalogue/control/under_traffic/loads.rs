//! Control load of a trial, while frames are sent.

use std::time::Duration;

use base::{Cookie, Instant, PortNo, SplitMix64, TableId, Xid};
use controller::IncomingKind;
use flow::{Action, Field, FlowMod, FlowModCommand, FlowStatsRequest, Instructions, MatchBuilder};
use openflow::{FlowFormat, Message, MultipartRequest, Version};
use record::Reading;
use stats::Distribution;

use super::nanoseconds;
use crate::catalogue::control::TrialReport;
use crate::catalogue::control::flows::MARKS;
use crate::catalogue::control::rig::{ControlRig, SwitchMessage, send_batch};
use crate::catalogue::control::traffic::FrameArrival;
use crate::catalogue::prelude::*;

/// Least pause after a change; the greatest is twice as long. Pauses are random, so that changes do
/// not synchronize with anything.
const PAUSE: Duration = Duration::from_millis(2);
/// Time limit for the effect of a change and for its barrier reply.
const EFFECT_MAX: Duration = Duration::from_secs(2);
/// Priority of the rule of the frames, above the rules that other experiments leave.
const PRIORITY: u16 = 0x9000;
/// Cookie of other flows.
const COOKIE: Cookie = Cookie(0x00c4_a17e);
/// Greatest number of other flows in the test of flow-mods.
const OTHERS: u64 = 5_000;
/// Flows that are added between two barriers while the table is filled.
const BATCH: u32 = 10_000;

/// Kind of control load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlTest {
    /// None, for comparison.
    Quiet,
    /// Modifications of the rule that the frames match.
    Effect,
    /// Additions and deletions of other flows.
    FlowMods,
    /// Listings of a large table.
    Dump,
}

impl ControlTest {
    /// Names in the order of variants.
    pub(super) const NAMES: &'static [&'static str] = &["quiet", "effect", "flow-mods", "dump"];

    /// Returns the test of a point.
    pub(super) fn at(point: &Point) -> Self {
        match point.word("test") {
            "effect" => Self::Effect,
            "flow-mods" => Self::FlowMods,
            "dump" => Self::Dump,
            _ => Self::Quiet,
        }
    }
}

/// Control load of a trial.
pub(super) enum ControlLoad {
    /// None.
    Quiet,
    /// Modifications of the rule that the frames match.
    Effect(MarkChanges),
    /// Additions and deletions of other flows.
    FlowMods {
        /// Flow-mods per second.
        per_second: u64,
        /// Flow-mods so far.
        sent: u64,
    },
    /// Listings.
    Dump {
        /// Transaction of the listing that is under way.
        open: Option<Xid>,
        /// Complete listings.
        count: u32,
    },
}

impl ControlLoad {
    /// Installs the rule of the frames and, for a dump, the other flows.
    pub(super) fn prepare(point: &Point, rig: &mut dyn ControlRig) -> Result<Self, TrialError> {
        add(
            "the rule of the frames",
            vec![rule(FlowModCommand::Add, 0)],
            rig,
        )?;
        Ok(match ControlTest::at(point) {
            ControlTest::Quiet => Self::Quiet,
            ControlTest::Effect => Self::Effect(MarkChanges::new(point.number("millis"))),
            ControlTest::FlowMods => Self::FlowMods {
                per_second: point.number("flow-mods"),
                sent: 0,
            },
            ControlTest::Dump => {
                let flows = point.small("dump-flows");
                for number in (0..flows).step_by(BATCH as usize) {
                    let part = number..(number + BATCH).min(flows);
                    let part = part.map(|number| other(FlowModCommand::Add, number));
                    add("other flows", part.collect(), rig)?;
                }
                let (open, count) = (None, 0);
                Self::Dump { open, count }
            }
        })
    }

    /// Sends the messages that are due this long after the first frame.
    pub(super) fn turn(
        &mut self,
        passed: Duration,
        rig: &mut dyn ControlRig,
    ) -> Result<(), TrialError> {
        match self {
            Self::Quiet => {}
            Self::Effect(changes) => changes.turn(rig)?,
            Self::FlowMods { per_second, sent } => {
                let due = passed.as_nanos() * u128::from(*per_second) / 1_000_000_000;
                // One at a time, so that no frame waits for many.
                if u128::from(*sent) < due && rig.has_room() {
                    rig.queue(&next_other(*sent))?;
                    rig.flush()?;
                    *sent += 1;
                }
            }
            Self::Dump { open, .. } => {
                if open.is_none() {
                    let all = FlowStatsRequest::all();
                    let request = MultipartRequest::Flow(FlowFormat::Standard, all);
                    *open = Some(rig.queue(&Message::MultipartRequest(request))?);
                    rig.flush()?;
                }
            }
        }
        Ok(())
    }

    /// Processes a message of the device.
    pub(super) fn process(
        &mut self,
        message: &SwitchMessage,
        version: Version,
    ) -> Result<(), TrialError> {
        if let Some(refusal) = message.refusal(version) {
            let reason = format!("the device refused a message: {refusal}");
            return Err(TrialError::Impossible(reason));
        }
        match (self, message.kind) {
            (Self::Effect(changes), IncomingKind::Barrier) => changes.answered(message),
            (Self::Dump { open, count }, IncomingKind::Statistics)
                if *open == Some(message.xid) =>
            {
                *open = None;
                *count += 1;
            }
            _ => {}
        }
        Ok(())
    }

    /// Processes a frame that arrived.
    pub(super) fn record(&mut self, arrival: FrameArrival) {
        if let Self::Effect(changes) = self {
            changes.record(arrival);
        }
    }

    /// Adds the figures of the load.
    pub(super) fn put_into(self, report: &mut TrialReport, seconds: f64) {
        let (changes, dumps) = match &self {
            Self::Quiet => (0, 0),
            Self::Effect(changes) => (changes.count, 0),
            Self::FlowMods { sent, .. } => (*sent, 0),
            Self::Dump { count, .. } => (0, *count),
        };
        let reading = &mut report.reading;
        reading.put("changes_s", changes as f64 / seconds);
        reading.put("dumps", dumps.into());
        match self {
            Self::Effect(changes) => {
                if changes.late > 0 {
                    report.notes.push(format!(
                        "{} frames that were sent after a barrier reply matched the rule from before it",
                        changes.late
                    ));
                }
                changes.put_into(reading);
            }
            Self::Quiet | Self::FlowMods { .. } | Self::Dump { .. } => {
                let names = ["late", "effect_p50_us", "effect_p99_us", "barrier_p50_us"];
                reading.lack_each(names, "the rule of the packets was not changed");
            }
        }
    }
}

/// Modifications of the rule of the frames, one at a time.
pub(super) struct MarkChanges {
    random: SplitMix64,
    /// Index of the mark that the rule sets since the last modification.
    mark: usize,
    state: ChangeState,
    count: u64,
    last_barrier: Instant,
    effect_ns: Vec<u32>,
    barrier_ns: Vec<u32>,
    late: u64,
}

/// State of a modification.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ChangeState {
    /// None is under way until this time.
    Idle(Instant),
    /// The rule was modified.
    Pending {
        at: Instant,
        is_met: bool,
        is_answered: bool,
    },
}

impl MarkChanges {
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            random: SplitMix64::new(seed),
            mark: 0,
            state: ChangeState::Idle(Instant::START),
            count: 0,
            last_barrier: Instant::START,
            effect_ns: Vec::new(),
            barrier_ns: Vec::new(),
            late: 0,
        }
    }

    fn turn(&mut self, rig: &mut dyn ControlRig) -> Result<(), TrialError> {
        let now = rig.now();
        match self.state {
            ChangeState::Pending {
                is_met: true,
                is_answered: true,
                ..
            } => {
                let pause = u64::try_from(PAUSE.as_nanos()).expect("a pause is short");
                let more = Duration::from_nanos(self.random.next_u64() % pause);
                self.state = ChangeState::Idle(now + PAUSE + more);
            }
            ChangeState::Pending { at, .. } if now.since(at) > EFFECT_MAX => {
                let reason = "a change had no effect, or no barrier reply, within two seconds";
                return Err(TrialError::Impossible(reason.to_owned()));
            }
            ChangeState::Idle(until) if now >= until => {
                self.mark = 1 - self.mark;
                rig.queue(&rule(FlowModCommand::ModifyStrict, self.mark))?;
                rig.queue(&Message::BarrierRequest)?;
                rig.flush()?;
                self.count += 1;
                self.state = ChangeState::Pending {
                    at: now,
                    is_met: false,
                    is_answered: false,
                };
            }
            ChangeState::Idle(_) | ChangeState::Pending { .. } => {}
        }
        Ok(())
    }

    fn answered(&mut self, reply: &SwitchMessage) {
        if let ChangeState::Pending {
            at, is_answered, ..
        } = &mut self.state
        {
            self.last_barrier = reply.at;
            self.barrier_ns.push(nanoseconds(reply.at.since(*at)));
            *is_answered = true;
        }
    }

    fn record(&mut self, arrival: FrameArrival) {
        let is_new = arrival.mark == MARKS[self.mark];
        let is_after_reply = arrival.sent > self.last_barrier;
        match &mut self.state {
            ChangeState::Pending { at, is_met, .. } if is_new => {
                if !*is_met {
                    *is_met = true;
                    self.effect_ns
                        .push(nanoseconds(arrival.received.since(*at)));
                }
            }
            // Until the barrier reply, a frame may meet either version of the rule.
            ChangeState::Pending { is_answered, .. } => {
                self.late += u64::from(*is_answered && is_after_reply);
            }
            ChangeState::Idle(_) => {
                self.late += u64::from(!is_new && self.count > 0 && is_after_reply);
            }
        }
    }

    fn put_into(self, reading: &mut Reading) {
        reading.put("late", self.late as f64);
        for (values, quantiles, reason) in [
            (
                &self.effect_ns,
                &[("effect_p50_us", 500), ("effect_p99_us", 990)][..],
                "no frame showed a change",
            ),
            (
                &self.barrier_ns,
                &[("barrier_p50_us", 500)],
                "no barrier was answered",
            ),
        ] {
            match Distribution::new(values.iter().copied()) {
                Some(all) => reading.put_quantiles_us(&all, quantiles),
                None => reading.lack_each(quantiles.iter().map(|(name, _)| *name), reason),
            }
        }
        for (name, values) in [
            ("effect_ns", self.effect_ns),
            ("barrier_ns", self.barrier_ns),
        ] {
            let samples = values.into_iter().map(Some).collect();
            reading.samples.insert(name.to_owned(), samples);
        }
    }
}

/// Sends messages and waits until they are processed. `what` names them in an error.
fn add(what: &str, messages: Vec<Message>, rig: &mut dyn ControlRig) -> Result<(), TrialError> {
    let outcome = send_batch(rig, messages)?;
    match outcome.first_refusal() {
        None => Ok(()),
        Some(refusal) => Err(TrialError::Impossible(format!(
            "the device refused {what}: {refusal}"
        ))),
    }
}

/// Returns the flow-mod with this number for other flows: additions and deletions alternate, and a
/// deletion is of the flow that was added [`OTHERS`] additions before.
fn next_other(number: u64) -> Message {
    let flow = number / 2;
    let (command, flow) = match number % 2 {
        0 => (FlowModCommand::Add, flow),
        // The first deletions match no flow.
        _ => (FlowModCommand::DeleteStrict, flow.wrapping_sub(OTHERS)),
    };
    let flow = u32::try_from(flow % (1 << 24)).expect("24 bits fit");
    other(command, flow)
}

/// Returns a message about the rule of the frames: from the client to the server, with a mark.
fn rule(command: FlowModCommand, mark: usize) -> Message {
    let fields = [
        (Field::InPort, 1),
        (Field::EthType, 0x0800),
        (Field::IpProto, 17),
    ];
    let set = Action::set(Field::IpDscp, MARKS[mark].into());
    flow_mod(command, PRIORITY, &fields, vec![set, output()])
}

/// Returns a message about another flow, which no frame matches.
fn other(command: FlowModCommand, number: u32) -> Message {
    let fields = [
        (Field::InPort, 1),
        (Field::EthType, 0x0800),
        (Field::Ipv4Src, (0x0b00_0000 | number).into()),
        (Field::Ipv4Dst, 0x0c00_0001),
    ];
    flow_mod(command, PRIORITY - 1, &fields, vec![output()])
}

const fn output() -> Action {
    Action::output(PortNo(2))
}

fn flow_mod(
    command: FlowModCommand,
    priority: u16,
    fields: &[(Field, u128)],
    actions: Vec<Action>,
) -> Message {
    let mut matching = MatchBuilder::default();
    for (field, value) in fields {
        let added = matching.add_exact(*field, *value);
        added.expect("fields follow their prerequisites");
    }
    let actions = Instructions::apply(actions);
    let mut flow = FlowMod::new(command, priority, matching.build(), actions);
    flow.cookie = COOKIE;
    // In OpenFlow 1.0 only additions name a table.
    if command != FlowModCommand::Add {
        flow.table = TableId::ALL;
    }
    Message::FlowMod(flow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_mods_of_other_flows_add_and_delete_equal_numbers() {
        let mut present = std::collections::BTreeSet::new();
        let mut most = 0;
        for number in 0..4 * OTHERS {
            let Message::FlowMod(flow) = next_other(number) else {
                panic!("no flow-mod");
            };
            let _ = match flow.command {
                FlowModCommand::Add => present.insert(flow.matching),
                _ => present.remove(&flow.matching),
            };
            most = most.max(present.len() as u64);
        }
        assert!(most <= OTHERS + 1, "{most}");
        assert_eq!(present.len() as u64, OTHERS);
    }

    #[test]
    fn openflow_10_can_express_all_messages() {
        for command in [
            FlowModCommand::Add,
            FlowModCommand::ModifyStrict,
            FlowModCommand::DeleteStrict,
        ] {
            for message in [rule(command, 0), rule(command, 1), other(command, 7)] {
                let encoded = message.encode(Xid(1), Version::V10, &mut Vec::new());
                assert!(encoded.is_ok(), "{encoded:?}");
            }
        }
    }

    fn arrival(sent: u64, received: u64, mark: usize) -> FrameArrival {
        let at = |micros: u64| Instant::from_nanos(micros * 1_000);
        FrameArrival {
            number: 0,
            flow: 0,
            sent: at(sent),
            received: at(received),
            mark: MARKS[mark],
        }
    }

    #[test]
    fn effect_is_the_arrival_of_the_first_frame_with_the_new_mark() {
        let mut changes = MarkChanges {
            mark: 1,
            state: ChangeState::Pending {
                at: Instant::from_nanos(100_000),
                is_met: false,
                is_answered: false,
            },
            ..MarkChanges::new(1)
        };
        changes.record(arrival(90, 120, 0));
        changes.record(arrival(130, 160, 1));
        changes.record(arrival(140, 170, 1));
        assert_eq!(changes.effect_ns, [60_000]);
    }

    #[test]
    fn late_frame_was_sent_after_the_barrier_reply_and_has_the_old_mark() {
        let mut changes = MarkChanges {
            count: 1,
            mark: 1,
            last_barrier: Instant::from_nanos(200_000),
            ..MarkChanges::new(1)
        };
        changes.record(arrival(199, 230, 0));
        assert_eq!(changes.late, 0);
        changes.record(arrival(201, 231, 0));
        changes.record(arrival(202, 232, 1));
        assert_eq!(changes.late, 1);
    }
}
