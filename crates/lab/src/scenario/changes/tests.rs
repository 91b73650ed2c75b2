//! Changes to a device in memory that meets them when a test says: what is told must be that.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use base::Instant;
use flow::{Action, FlowMod, FlowModCommand};
use openflow::Message;
use proptest::prelude::*;
use record::ChangeParameters;
use record::Conditions;

use super::link::Answers;
use super::*;

/// What a look takes.
const TICK: Duration = Duration::from_nanos(500);

/// A device, and what is wrong with it.
struct Simulated {
    now: Instant,
    forward: Duration,
    /// How long after it was said a change is met, and its barrier answered.
    apply: Duration,
    answer: Duration,
    /// What a dump takes, and every how manieth frame it loses.
    dump: Duration,
    lose_every: u64,
    /// Code points by which frames leave, from when on.
    marks: Vec<(Instant, u8)>,
    answers: Vec<(Instant, Answers)>,
    out: VecDeque<(Instant, Vec<u8>)>,
    frames: u64,
    flow_mods: u64,
}

impl Simulated {
    fn new() -> Self {
        Self {
            now: Instant::from_secs(1),
            forward: Duration::from_micros(12),
            apply: Duration::from_micros(300),
            answer: Duration::from_micros(400),
            dump: Duration::from_millis(3),
            lose_every: u64::MAX,
            marks: Vec::new(),
            answers: Vec::new(),
            out: VecDeque::new(),
            frames: 0,
            flow_mods: 0,
        }
    }

    fn take(&mut self, rule: &FlowMod, from: Instant) {
        self.flow_mods += 1;
        if let [Action::SetField { value, .. }, _] = &rule.instructions.apply[..] {
            let mark = u8::try_from(*value).unwrap() << 2;
            self.marks.push((from, mark));
        }
    }
}

impl Device for Simulated {
    fn now(&self) -> Instant {
        self.now
    }

    fn send(&mut self, frame: &[Vec<u8>]) -> Result<bool, TrialError> {
        self.frames += 1;
        if self.frames.is_multiple_of(self.lose_every) {
            return Ok(true);
        }
        let mut bytes = frame[0].clone();
        let in_force = self.marks.iter().rev().find(|(from, _)| *from <= self.now);
        bytes[15] = in_force.expect("frames have a rule").1;
        self.out.push_back((self.now + self.forward, bytes));
        Ok(true)
    }

    fn receive(&mut self, room: &mut [u8]) -> Result<Option<usize>, TrialError> {
        self.now += TICK;
        if self.out.front().is_none_or(|(at, _)| *at > self.now) {
            return Ok(None);
        }
        let (_, frame) = self.out.pop_front().unwrap();
        room[..frame.len()].copy_from_slice(&frame);
        Ok(Some(frame.len()))
    }

    fn say(&mut self, message: &Message) -> Result<(), TrialError> {
        let answers = match message {
            Message::FlowMod(rule) => {
                self.take(rule, self.now + self.apply);
                return Ok(());
            }
            Message::BarrierRequest => (
                self.now + self.answer,
                Answers {
                    barriers: 1,
                    dumps: 0,
                },
            ),
            _ => (
                self.now + self.dump,
                Answers {
                    barriers: 0,
                    dumps: 1,
                },
            ),
        };
        self.answers.push(answers);
        Ok(())
    }

    fn has_room(&self) -> bool {
        true
    }

    fn listen(&mut self) -> Result<Answers, TrialError> {
        let come = self.answers.iter().position(|(at, _)| *at <= self.now);
        Ok(come.map_or_else(Answers::default, |place| self.answers.remove(place).1))
    }

    fn settle(&mut self, _: &'static str, messages: Vec<Message>) -> Result<(), TrialError> {
        for message in &messages {
            let Message::FlowMod(rule) = message else {
                panic!("nothing else is settled");
            };
            assert_eq!(rule.command, FlowModCommand::Add);
            self.take(rule, self.now);
        }
        Ok(())
    }
}

const PPS: u32 = 50_000;

fn measured(test: ChangeTest, device: &mut Simulated) -> (ChangeOutcome, Measured) {
    let parameters = ChangeParameters {
        pps: Some(PPS),
        milliseconds: 100,
        dump_flows: 1_000,
        ..ChangeParameters::default()
    };
    let load = Load::prepare(test, device, &parameters).unwrap();
    let from = ([2, 0, 0, 0, 0, 1], Ipv4Addr::new(10, 0, 0, 1));
    let frames = Frames::between(from, Ipv4Addr::new(10, 0, 0, 2), FRAME_BYTES, 0);
    let probe = Probe::new(frames, &parameters, None);
    let outcome = outcome(load, probe, device, &Interrupt::never()).unwrap();
    let of = Outcome::Change(outcome.clone());
    let mut measured = Measured::new(of, Conditions::default());
    judge(&outcome, &mut measured);
    (outcome, measured)
}

/// All within a tick or two of what was put in, later by up to `more`.
fn assert_all(nanos: &[u32], wanted: Duration, more: Duration) {
    let slack = 4 * TICK;
    for value in nanos {
        let value = Duration::from_nanos(u64::from(*value));
        let range = wanted..=wanted + more + slack;
        assert!(range.contains(&value), "{value:?} instead of {wanted:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn changes_are_met_and_answered_when_they_are(
        forward in 1_u64..40,
        apply in 0_u64..900,
        answer in 0_u64..900,
    ) {
        let micros = Duration::from_micros;
        let mut device = Simulated {
            forward: micros(forward),
            apply: micros(apply),
            answer: micros(answer),
            ..Simulated::new()
        };
        let (outcome, _) = measured(ChangeTest::Effect, &mut device);
        prop_assert!(outcome.effect_ns.len() > 15);
        // A frame meets the change no sooner than the next one goes: 20 us later at most.
        assert_all(&outcome.effect_ns, micros(apply + forward), micros(20));
        assert_all(&outcome.barrier_ns, micros(answer), Duration::ZERO);
        assert_all(&[outcome.delay_ns_p50, outcome.delay_ns_max], micros(forward), Duration::ZERO);
        // Frames are late that go between the answer and the change.
        if apply <= answer {
            prop_assert_eq!(outcome.late, 0);
        }
        if apply > answer + 60 {
            let each = (apply - answer) as f64 / 20.0;
            let changes = outcome.effect_ns.len() as f64;
            let late = outcome.late as f64 / changes;
            prop_assert!((late - each).abs() <= 1.6, "{} instead of {}", late, each);
        }
    }
}

#[test]
fn what_is_lost_while_flows_come_and_go_is_told() {
    let mut device = Simulated {
        lose_every: 100,
        ..Simulated::new()
    };
    let (outcome, measured) = measured(ChangeTest::FlowMods, &mut device);
    assert_eq!((outcome.sent, outcome.lost()), (4_999, 49));
    assert_eq!(outcome.changes + 1, device.flow_mods);
    assert!((outcome.seconds - 0.1).abs() < 1e-5);
    let per_second = f64::from(ChangeParameters::default().flow_mods);
    assert!((outcome.changes_a_second() / per_second - 1.0).abs() < 0.01);
    assert_eq!(measured.flaws, []);
}

#[test]
fn dumps_are_counted_and_their_flows_added_before() {
    let mut device = Simulated::new();
    let (outcome, _) = measured(ChangeTest::Dump, &mut device);
    assert_eq!(device.flow_mods, 1_001);
    // Of 3 ms each, one after the other.
    assert_eq!(outcome.dumps, 33);
    assert_all(&[outcome.delay_ns_max], device.forward, Duration::ZERO);
}

#[test]
fn a_device_that_forwards_nothing_makes_a_test_void() {
    let mut device = Simulated {
        lose_every: 1,
        ..Simulated::new()
    };
    let (outcome, measured) = measured(ChangeTest::Quiet, &mut device);
    assert_eq!(outcome.received, 0);
    assert!(measured.flaws.iter().any(|flaw| flaw.void));
}
