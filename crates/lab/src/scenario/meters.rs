//! How exactly a device keeps a meter's rate: more frames are offered than the meter
//! lets pass, and what comes out is counted over each second.
//!
//! A band that remarks drops nothing: the table behind the meter drops the frames that
//! it has remarked, so that of these tests too the interfaces count what passed, and
//! nobody has to believe the meter's own counts.

use std::thread;
use std::time::Duration;

use base::{Cookie, Instant, MeterId, PortNo, TableId};
use controller::Link;
use flow::{
    Action, Band, BandKind, Field, FlowMod, FlowModCommand, Instructions, Match, MeterFlags,
    MeterMod, MeterModCommand, Refusal,
};
use openflow::{Message, Version, VersionSet};
use record::{MeterAct, MeterOutcome, MeterUnit, MeterWindow, Outcome};
use testbed::{Bench, Clock, Failure};

use super::Tools;
use crate::cores::Watch;
use crate::generator::{self, Frames, Sent};
use crate::plan::{MeterTest, Offer};
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The socket at which a device's bridge answers whoever asks, in its directory.
const SOCKET: &str = "br0.mgmt";

/// Milliseconds until the first second that counts: a burst has passed by then.
const WARM_UP_MS: u32 = 1_000;

/// How much more is offered than the meter lets pass.
const EXCESS: u32 = 2;

/// The least that has to be, for the meter to be what limits.
const EXCESS_MIN: f64 = 1.2;

/// The share of a second that a burst may last.
const BURST_PART: u32 = 20;

/// The frames' code point and the one it is remarked to: AF11 and AF12 (RFC 2597).
const DSCP: u8 = 10;
const REMARKED: u8 = 12;

/// The meter, and the rules' mark and priority, above those of other experiments.
const METER: MeterId = MeterId(1);
const COOKIE: Cookie = Cookie(3);
const PRIORITY: u16 = 0x9000;

/// Bytes that no device sees of a frame: its checksum (FCS).
const FCS: u16 = 4;

pub(super) fn measure(
    test: MeterTest,
    station: &Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let frame_bytes = tools.parameters.meters.frame_bytes;
    // OpenFlow 1.0, which the station's controller speaks, has no meters.
    let versions = VersionSet::only(Version::V13);
    let mut link = Link::call(&station.directory.join(SOCKET), versions, tools.clock)?;
    let rules = set_up(test, frame_bytes);
    let rules = rules.map_err(|refusal| TrialError::Impossible(refusal.to_string()))?;
    link.request(rules)?.all_done("a meter and its rules")?;
    let measured = offer(test, &station.bench, tools);
    // The rules go with it, and the next test finds none.
    let deletion = meter(test, frame_bytes, MeterModCommand::Delete);
    link.request(vec![deletion])?
        .all_done("the deletion of a meter")?;
    measured
}

/// Offers frames, and counts those that pass.
fn offer(test: MeterTest, bench: &Bench, tools: &Tools<'_>) -> Result<Measured, TrialError> {
    let parameters = &tools.parameters.meters;
    let (client, server) = (bench.client(), bench.server());
    let mut frames = Frames::marked(client, server, parameters.frame_bytes, DSCP);
    let sender = client.namespace.raw_sender(client.interface)?;
    let watch = Watch::begin(bench, tools.cores, tools.clock)?;
    let offer = Offer::Paced(test.pps.saturating_mul(EXCESS));
    let milliseconds = WARM_UP_MS + parameters.seconds * 1_000;
    let (clock, interrupt) = (tools.clock, tools.interrupt);
    let (sent, windows) = thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let cores = &tools.cores.tester;
            testbed::pin_current_thread(&cores[..cores.len().min(1)])?;
            generator::offer(&sender, &mut frames, offer, milliseconds, clock, interrupt)
                .map_err(Failure::to("send frames"))
        });
        let windows = windows(&mut Interface { bench, clock }, parameters.seconds);
        let sent = sending.join().expect("a thread of the lab does not panic");
        Ok::<_, Failure>((sent?, windows?))
    })?;
    let conditions = watch.end(bench)?;
    let Sent { frames, seconds } = sent.ok_or(TrialError::Interrupted)?;
    let outcome = MeterOutcome {
        unit: test.unit,
        act: test.act,
        rate: rate(test, parameters.frame_bytes),
        nominal_pps: test.pps,
        frame_bytes: parameters.frame_bytes,
        offered: frames,
        seconds,
        windows,
    };
    let mut measured = Measured::new(Outcome::Meter(outcome.clone()), conditions);
    judge(&outcome, &mut measured);
    Ok(measured)
}

/// Who counts the frames that come out.
trait Counter {
    /// The time.
    fn now(&self) -> Instant;
    /// Waits.
    fn sleep_until(&mut self, then: Instant);
    /// Frames so far.
    fn passed(&mut self) -> Result<u64, Failure>;
}

/// The server's interface.
struct Interface<'a> {
    bench: &'a Bench,
    clock: &'a Clock,
}

impl Counter for Interface<'_> {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn sleep_until(&mut self, then: Instant) {
        self.clock.sleep_until(then);
    }

    fn passed(&mut self) -> Result<u64, Failure> {
        Ok(self.bench.server().counters()?.rx_packets)
    }
}

/// What came out in each second.
fn windows(counter: &mut impl Counter, seconds: u32) -> Result<Vec<MeterWindow>, Failure> {
    let mut next = counter.now() + Duration::from_millis(WARM_UP_MS.into());
    counter.sleep_until(next);
    let mut last = read(counter)?;
    let mut windows = Vec::new();
    // The last second ends with the offer, a moment of which is left out.
    for _ in 1..seconds {
        next += Duration::from_secs(1);
        counter.sleep_until(next);
        let (at, count) = read(counter)?;
        windows.push(MeterWindow {
            seconds: at.since(last.0).as_secs_f64(),
            passed: count - last.1,
        });
        last = (at, count);
    }
    Ok(windows)
}

fn read(counter: &mut impl Counter) -> Result<(Instant, u64), Failure> {
    let before = counter.now();
    let passed = counter.passed()?;
    let after = counter.now();
    // The counter was read somewhere between.
    Ok((before + after.since(before) / 2, passed))
}

/// Whether the meter had something to limit.
fn judge(outcome: &MeterOutcome, measured: &mut Measured) {
    measured.note_pressure();
    let offered = outcome.offered as f64 / outcome.seconds;
    let wanted = f64::from(outcome.nominal_pps) * EXCESS_MIN;
    if offered < wanted {
        measured.void(format!(
            "the generator offered {offered:.0} frames a second instead of {wanted:.0} at least"
        ));
    }
}

/// The meter's rate in its unit, which lets the wanted number of frames pass.
fn rate(test: MeterTest, frame_bytes: u16) -> u32 {
    match test.unit {
        MeterUnit::Packets => test.pps,
        MeterUnit::Kilobits => {
            let bits = u64::from(test.pps) * u64::from(frame_bytes - FCS) * 8;
            u32::try_from(bits / 1_000).unwrap_or(u32::MAX)
        }
    }
}

fn meter(test: MeterTest, frame_bytes: u16, command: MeterModCommand) -> Message {
    let rate = rate(test, frame_bytes);
    let unit = match test.unit {
        MeterUnit::Packets => MeterFlags::PKTPS,
        MeterUnit::Kilobits => MeterFlags::KBPS,
    };
    let kind = match test.act {
        MeterAct::Drop => BandKind::Drop,
        MeterAct::Remark => BandKind::DscpRemark(1),
    };
    Message::MeterMod(MeterMod {
        command,
        flags: unit.with(MeterFlags::BURST),
        meter: METER,
        bands: vec![Band {
            kind,
            rate,
            burst: (rate / BURST_PART).max(1),
        }],
    })
}

/// The meter, and the rules that lead frames through it.
fn set_up(test: MeterTest, frame_bytes: u16) -> Result<Vec<Message>, Refusal> {
    let from_client = Match::any().with(Field::InPort, 1)?;
    let output = || Instructions::apply(vec![Action::output(PortNo(2))]);
    let mut messages = vec![meter(test, frame_bytes, MeterModCommand::Add)];
    let metered = match test.act {
        MeterAct::Drop => Instructions {
            meter: Some(METER),
            ..output()
        },
        MeterAct::Remark => Instructions {
            meter: Some(METER),
            goto: Some(TableId(1)),
            ..Instructions::default()
        },
    };
    messages.push(rule(0, PRIORITY, from_client.clone(), metered));
    if test.act == MeterAct::Remark {
        let remarked = Match::any()
            .with(Field::EthType, 0x0800)?
            .with(Field::IpDscp, REMARKED.into())?;
        messages.push(rule(1, PRIORITY, remarked, Instructions::default()));
        messages.push(rule(1, 1, from_client, output()));
    }
    Ok(messages)
}

fn rule(table: u8, priority: u16, matching: Match, instructions: Instructions) -> Message {
    let mut rule = FlowMod::new(FlowModCommand::Add, priority, matching, instructions);
    rule.table = TableId(table);
    rule.cookie = COOKIE;
    Message::FlowMod(rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Conditions;

    const TEST: MeterTest = MeterTest {
        unit: MeterUnit::Kilobits,
        act: MeterAct::Remark,
        pps: 1_000,
    };

    #[test]
    fn a_rate_in_bits_lets_as_many_frames_pass() {
        // 60 bytes of 64, for no device sees the checksum.
        assert_eq!(rate(TEST, 64), 480);
        let packets = MeterUnit::Packets;
        let test = MeterTest {
            unit: packets,
            ..TEST
        };
        assert_eq!(rate(test, 64), 1_000);
    }

    #[test]
    fn a_meter_that_had_nothing_to_limit_is_void() {
        let mut outcome = MeterOutcome {
            unit: TEST.unit,
            act: TEST.act,
            rate: 480,
            nominal_pps: 1_000,
            frame_bytes: 64,
            offered: 2_400,
            seconds: 2.0,
            windows: Vec::new(),
        };
        let flaws = |outcome: &MeterOutcome| {
            let of = Outcome::Meter(outcome.clone());
            let mut measured = Measured::new(of, Conditions::default());
            judge(outcome, &mut measured);
            measured.flaws.len()
        };
        assert_eq!(flaws(&outcome), 0);
        outcome.offered = 2_399;
        assert_eq!(flaws(&outcome), 1);
    }

    #[test]
    fn the_worst_second_is_told() {
        let window = |passed| MeterWindow {
            seconds: 1.0,
            passed,
        };
        let outcome = MeterOutcome {
            unit: TEST.unit,
            act: TEST.act,
            rate: 480,
            nominal_pps: 1_000,
            frame_bytes: 64,
            offered: 6_000,
            seconds: 3.0,
            windows: vec![window(1_010), window(980), window(1_000)],
        };
        assert!((outcome.worst_error() - 0.02).abs() < 1e-9);
        assert!((outcome.passed_pps() - 2_990.0 / 3.0).abs() < 1e-9);
    }

    /// A meter in memory: a burst, and then so many frames a second, and in one second fewer.
    /// Reading it takes a while.
    struct Bucket {
        now: Instant,
        rate: u64,
        burst: u64,
        missing: u64,
    }

    impl Counter for Bucket {
        fn now(&self) -> Instant {
            self.now
        }

        fn sleep_until(&mut self, then: Instant) {
            // It wakes a little late.
            self.now = then + Duration::from_micros(70);
        }

        fn passed(&mut self) -> Result<u64, Failure> {
            self.now += Duration::from_micros(20);
            let nanos = self.now.since(Instant::START).as_nanos();
            let passed = u128::from(self.rate) * nanos / 1_000_000_000;
            let missing = if nanos > 3_500_000_000 {
                self.missing
            } else {
                0
            };
            self.now += Duration::from_micros(20);
            Ok(self.burst + u64::try_from(passed).unwrap() - missing)
        }
    }

    #[test]
    fn what_a_meter_lets_pass_is_told_second_by_second() {
        let told = |missing| {
            let mut bucket = Bucket {
                now: Instant::START,
                rate: 10_000,
                burst: 500,
                missing,
            };
            let windows = windows(&mut bucket, 5).unwrap();
            assert_eq!(windows.len(), 4);
            MeterOutcome {
                unit: TEST.unit,
                act: TEST.act,
                rate: 480,
                nominal_pps: 10_000,
                frame_bytes: 64,
                offered: 120_000,
                seconds: 6.0,
                windows,
            }
        };
        // The burst is over before the first second that counts.
        let good = told(0);
        assert!((good.passed_pps() - 10_000.0).abs() < 1.0, "{good:?}");
        assert!(good.worst_error() < 2e-4, "{good:?}");
        let bad = told(300);
        assert!((bad.worst_error() - 0.03).abs() < 2e-4, "{bad:?}");
        assert!((bad.passed_pps() - 9_925.0).abs() < 1.0, "{bad:?}");
    }
}
