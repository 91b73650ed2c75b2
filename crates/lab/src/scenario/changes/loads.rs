//! What is asked of the device while frames move.

use std::time::Duration;

use base::SplitMix64;
use base::{Instant, PortNo, TableId};
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, MatchBuilder};
use openflow::Message;
use record::ChangeOutcome;
use record::ChangeParameters;
use record::ChangeTest;

use super::link::{COOKIE, Device, dump};
use crate::trial::TrialError;

/// Changes come no sooner than this after the last was met, and at most twice as late, so that
/// they fall into step with nothing.
const PAUSE: Duration = Duration::from_millis(2);

/// A change that no frame has met by then is given up, and the test with it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Above the rules that other experiments leave.
const PRIORITY: u16 = 0x9000;

/// Flows of others that come and go at most at once.
const OTHERS: u64 = 5_000;

/// Flows that are added between two barriers while the table is filled.
const PART: u32 = 10_000;

/// By which of two rules a frame has come: they write another code point (OF 1.0.1, 5.2.4).
pub(super) const MARKS: [u8; 2] = [0x20, 0x40];

/// What is asked.
pub(super) struct Load {
    test: ChangeTest,
    random: SplitMix64,
    /// The rule in force, as far as was asked.
    mark: usize,
    state: State,
    next: Instant,
    /// Flow-mods that were said, and dumps asked for.
    said: u64,
    told: u32,
    effect_ns: Vec<u32>,
    barrier_ns: Vec<u32>,
    late: u64,
    per_second: u32,
    last_barrier: Instant,
}

/// Where a change is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// None is under way.
    Still,
    /// It was said, and has been met by a frame, and answered by a barrier, or not yet.
    Changing {
        at: Instant,
        met: bool,
        answered: bool,
    },
    /// A dump is under way.
    Telling,
}

impl Load {
    /// Leaves the device with the rule of the frames, and the flows that the test needs.
    pub(super) fn prepare(
        test: ChangeTest,
        device: &mut impl Device,
        parameters: &ChangeParameters,
    ) -> Result<Self, TrialError> {
        let added = vec![rule(FlowModCommand::Add, 0)];
        device.settle("the rule of the frames", added)?;
        if test == ChangeTest::Dump {
            let mut number = 0;
            while number < parameters.dump_flows {
                let end = (number + PART).min(parameters.dump_flows);
                let flows: Vec<Message> = (number..end)
                    .map(|n| other(FlowModCommand::Add, n))
                    .collect();
                device.settle("flows of others", flows)?;
                number = end;
            }
        }
        Ok(Self::new(test, parameters))
    }

    fn new(test: ChangeTest, parameters: &ChangeParameters) -> Self {
        Self {
            test,
            random: SplitMix64::new(u64::from(parameters.milliseconds)),
            mark: 0,
            state: State::Still,
            next: Instant::START,
            said: 0,
            told: 0,
            effect_ns: Vec::new(),
            barrier_ns: Vec::new(),
            late: 0,
            per_second: parameters.flow_mods,
            last_barrier: Instant::START,
        }
    }

    /// Says what is due `since` the frames began.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        since: Duration,
        device: &mut impl Device,
    ) -> Result<(), TrialError> {
        match self.test {
            ChangeTest::Quiet => Ok(()),
            ChangeTest::Effect => self.change(now, device),
            ChangeTest::FlowMods => {
                let due = since.as_nanos() * u128::from(self.per_second) / 1_000_000_000;
                // One at a time, so that no frame waits for many.
                if u128::from(self.said) < due && device.has_room() {
                    device.say(&self.next_other())?;
                    self.said += 1;
                }
                device.listen().map(drop)
            }
            ChangeTest::Dump => {
                if self.state == State::Still {
                    device.say(&dump())?;
                    self.state = State::Telling;
                }
                let dumps = device.listen()?.dumps;
                self.told += dumps;
                if dumps > 0 {
                    self.state = State::Still;
                }
                Ok(())
            }
        }
    }

    /// The flow-mod of another flow: one is added, and deleted when many have come since.
    fn next_other(&self) -> Message {
        let place = |number: u64| u32::try_from(number % (1 << 24)).expect("24 bits");
        let number = self.said / 2;
        match self.said % 2 {
            0 => other(FlowModCommand::Add, place(number)),
            // The first of them find nothing.
            _ => other(
                FlowModCommand::DeleteStrict,
                place(number.wrapping_sub(OTHERS)),
            ),
        }
    }

    fn change(&mut self, now: Instant, device: &mut impl Device) -> Result<(), TrialError> {
        match self.state {
            State::Changing { at, met, answered } => {
                let answers = device.listen()?.barriers > 0;
                if answers {
                    self.last_barrier = now;
                    self.barrier_ns.push(nanoseconds(now.since(at)));
                }
                let answered = answered || answers;
                self.state = State::Changing { at, met, answered };
                if met && answered {
                    self.state = State::Still;
                    let more =
                        self.random.next_u64() % u64::try_from(PAUSE.as_nanos()).unwrap_or(1);
                    self.next = now + PAUSE + Duration::from_nanos(more);
                } else if now.since(at) > PATIENCE {
                    let reason = "no frame met a change within two seconds".to_owned();
                    return Err(TrialError::Impossible(reason));
                }
            }
            State::Still if now >= self.next => {
                self.mark = 1 - self.mark;
                device.say(&rule(FlowModCommand::ModifyStrict, self.mark))?;
                device.say(&Message::BarrierRequest)?;
                self.said += 1;
                self.state = State::Changing {
                    at: now,
                    met: false,
                    answered: false,
                };
            }
            State::Still | State::Telling => {}
        }
        Ok(())
    }

    /// A frame has come out, with this code point.
    pub(super) fn hear(&mut self, now: Instant, sent: Instant, mark: u8) {
        let is_new = mark == MARKS[self.mark];
        match &mut self.state {
            State::Changing { at, met, answered } => {
                if is_new && !*met {
                    *met = true;
                    self.effect_ns.push(nanoseconds(now.since(*at)));
                }
                // Looked at only when the reply has come: until then either rule will do.
                if !is_new && *answered && sent > self.last_barrier {
                    self.late += 1;
                }
            }
            State::Still if !is_new && self.said > 0 && sent > self.last_barrier => self.late += 1,
            State::Still | State::Telling => {}
        }
    }

    /// Writes down what came of it.
    pub(super) fn finish(self, outcome: &mut ChangeOutcome) {
        outcome.test = self.test.name().to_owned();
        outcome.changes = self.said;
        outcome.dumps = self.told;
        outcome.effect_ns = self.effect_ns;
        outcome.barrier_ns = self.barrier_ns;
        outcome.late = self.late;
    }
}

fn nanoseconds(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}

/// The rule of the frames: what comes from the client leaves for the server, marked.
fn rule(command: FlowModCommand, mark: usize) -> Message {
    let mut building = MatchBuilder::default();
    let fields: [(Field, u128); 3] = [
        (Field::InPort, 1),
        (Field::EthType, 0x0800),
        (Field::IpProto, 17),
    ];
    for (field, value) in fields {
        let added = building.add_exact(field, value);
        added.expect("fields follow their prerequisites");
    }
    let dscp = u128::from(MARKS[mark] >> 2);
    let set = Action::set(Field::IpDscp, dscp);
    let actions = Instructions::apply(vec![set, Action::output(PortNo(2))]);
    let flow = FlowMod::new(command, PRIORITY, building.build(), actions);
    Message::FlowMod(in_its_table(flow))
}

/// OpenFlow 1.0 has a table for additions, and all of them for the rest.
fn in_its_table(mut flow: FlowMod) -> FlowMod {
    if flow.command != FlowModCommand::Add {
        flow.table = TableId::ALL;
    }
    flow
}

/// Another flow, which no frame is of.
fn other(command: FlowModCommand, number: u32) -> Message {
    let mut building = MatchBuilder::default();
    let fields: [(Field, u128); 4] = [
        (Field::InPort, 1),
        (Field::EthType, 0x0800),
        (Field::Ipv4Src, (0x0b00_0000 | number).into()),
        (Field::Ipv4Dst, 0x0c00_0001),
    ];
    for (field, value) in fields {
        let added = building.add_exact(field, value);
        added.expect("fields follow their prerequisites");
    }
    let actions = Instructions::apply(vec![Action::output(PortNo(2))]);
    let mut flow = FlowMod::new(command, PRIORITY - 1, building.build(), actions);
    flow.cookie = COOKIE;
    Message::FlowMod(in_its_table(flow))
}

#[cfg(test)]
mod tests;
