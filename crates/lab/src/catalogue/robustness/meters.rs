//! Accuracy of meters: more frames are offered than the meter passes, and the passed frames are
//! counted in each second.
//!
//! A band that remarks drops nothing: the next table drops the remarked frames. So the interfaces
//! count the passed frames of these trials too, and the counters of the meter need not be trusted.

use std::thread;
use std::time::Duration;

use base::{Cookie, Instant, MeterId, PortNo, TableId};
use controller::Link;
use flow::{
    Action, Band, BandKind, Field, FlowMod, FlowModCommand, Instructions, Match, MeterFlags,
    MeterMod, MeterModCommand, Refusal,
};
use openflow::{Message, Version, VersionSet};
use testbed::{Bench, Clock, DeviceKind, Failure};

use crate::catalogue::prelude::*;
use crate::generator::{self, Frames, IntendedLoad, SentLoad};
use crate::setup::{ConditionMonitor, TestSetup};
use crate::tools::Tools;

/// The experiment.
pub(crate) const METERS: Experiment = Experiment {
    description: Description {
        name: "meters",
        title: "Meter accuracy",
        family: Family::Robustness,
        question: "How accurately does a meter limit the rate in each second?",
        source: "OpenFlow 1.3.5, 5.7",
        steps: &[
            "A controller installs a meter by OpenFlow 1.3, in packets or kilobits per second, and a rule that sends frames of the client through it.",
            "Twice the meter's rate is offered; after a second of warm-up, in which the burst of a twentieth of a second passes, the server's interface counts the passed frames of each second.",
            "A band of type drop drops the excess; one of type DSCP remark marks it, and a rule of the next table drops marked frames, so that both are counted alike.",
            "The error of a second is the difference between its rate and the meter's, relative to the meter's; shown is the worst second.",
            "A trial with an offered load below 1.2 times the meter's rate is void.",
        ],
        parameters: &[
            Parameter::axis(
                "unit",
                "unit of the meter's rate",
                Values::words(UNITS, UNITS),
            ),
            Parameter::axis(
                "act",
                "band type: drop, or remark (DSCP remark, and the next table drops)",
                Values::words(ACTS, ACTS),
            ),
            Parameter::axis(
                "pps",
                "rate of the meter in frames per second",
                Values::numbers(&[100_000], RATES, RATES, [100, 10_000_000]),
            ),
            Parameter::constant(
                "frame_bytes",
                "frame size in bytes, with the checksum (FCS), which no device counts",
                Values::numbers(&[64], &[64], &[64], [64, 1_518]),
            ),
            Parameter::constant(
                "seconds",
                "seconds after the warm-up; the last one is not counted",
                Values::numbers(&[2], &[4], &[4], [2, 3_600]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Matrix {
                title: "Error of the worst second",
                figure: "worst_error",
                across: "pps",
                published: "",
            },
            View::Table {
                title: "All figures",
                figures: &["passed_pps", "worst_error"],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: |device, point| match point.word("act") {
        "remark" => remarks(device),
        _ => device.speaks_openflow(),
    },
    seconds: |point| (point.number("seconds") + 1) as f64,
    measure: |point, setup, tools| MeterTest::at(point).measure(point, setup, tools),
    ..Experiment::BASE
};

const UNITS: &[&str] = &["packets", "kilobits"];
const ACTS: &[&str] = &["drop", "remark"];
const RATES: &[u64] = &[1_000, 10_000, 100_000, 200_000];

const FIGURES: &[Figure] = &[
    Figure::new("passed_pps", "Passed", "frames/s", Better::Neither),
    Figure::new(
        "worst_error",
        "Error of the worst second",
        "",
        Better::Lower,
    )
    .shown_in("%", 0.01),
];

/// Returns true if the data path of a device has bands that remark. That of Open vSwitch in
/// userspace has none.
const fn remarks(device: DeviceKind) -> bool {
    matches!(
        device,
        DeviceKind::Comporta
            | DeviceKind::ComportaXdp
            | DeviceKind::ComportaDpdk
            | DeviceKind::ComportaTap
            | DeviceKind::VlanBridge
            | DeviceKind::External(_)
    )
}

/// Management socket of a device's bridge, in the device's directory.
const SOCKET: &str = "br0.mgmt";

/// Milliseconds of warm-up, in which the burst passes.
const WARM_UP_MS: u32 = 1_000;

/// Offered load, as a multiple of the meter's rate.
const EXCESS: u32 = 2;

/// Least offered load that the meter limits, as a multiple of its rate.
const EXCESS_MIN: f64 = 1.2;

/// Part of a second's frames that the burst holds: one in so many.
const BURST_PART: u32 = 20;

/// DSCP of the frames, and of remarked frames: AF11 and AF12 (RFC 2597).
const DSCP: u8 = 10;
const REMARKED: u8 = 12;

/// The meter, and the cookie and priority of its rules, above those of other experiments.
const METER: MeterId = MeterId(1);
const COOKIE: Cookie = Cookie(3);
const PRIORITY: u16 = 0x9000;

/// Bytes of a frame that no device counts: the checksum (FCS).
const FCS: u32 = 4;

/// Unit of a meter's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RateUnit {
    /// Packets per second (`OFPMF_PKTPS`).
    Packets,
    /// Kilobits per second (`OFPMF_KBPS`).
    Kilobits,
}

/// Treatment of packets above a meter's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    /// The meter drops them.
    Drop,
    /// The meter raises their drop precedence, and the next table drops them.
    Remark,
}

/// Meter under test.
#[derive(Clone, Copy, Debug)]
struct MeterTest {
    unit: RateUnit,
    treatment: Treatment,
    /// Rate in frames per second.
    pps: u32,
    frame_bytes: u32,
    /// Seconds after the warm-up.
    seconds: u32,
}

impl MeterTest {
    fn at(point: &Point) -> Self {
        Self {
            unit: match point.word("unit") {
                "kilobits" => RateUnit::Kilobits,
                _ => RateUnit::Packets,
            },
            treatment: match point.word("act") {
                "remark" => Treatment::Remark,
                _ => Treatment::Drop,
            },
            pps: point.small("pps"),
            frame_bytes: point.small("frame_bytes"),
            seconds: point.small("seconds"),
        }
    }

    fn measure(
        self,
        point: &Point,
        setup: &TestSetup,
        tools: &Tools<'_>,
    ) -> Result<TrialResult, TrialError> {
        // The controller of the setup speaks OpenFlow 1.0, which has no meters.
        let versions = VersionSet::only(Version::V13);
        let mut link = Link::call(&setup.directory.join(SOCKET), versions, tools.clock)?;
        let messages = self.messages();
        let messages = messages.map_err(|refusal| TrialError::Impossible(refusal.to_string()))?;
        link.request(messages)?.all_done("a meter and its rules")?;
        let measured = self.offer(point, &setup.bench, tools);
        // The deletion of the meter deletes its rules, so that the next trial finds none.
        let deletion = self.meter(MeterModCommand::Delete);
        link.request(vec![deletion])?
            .all_done("the deletion of a meter")?;
        measured
    }

    /// Offers frames, and counts those that pass.
    fn offer(
        self,
        point: &Point,
        bench: &Bench,
        tools: &Tools<'_>,
    ) -> Result<TrialResult, TrialError> {
        let (client, server) = (bench.client(), bench.server());
        let bytes = u16::try_from(self.frame_bytes).expect("the bound is below 2^16");
        let mut frames = Frames::marked(client, server, bytes, DSCP);
        let sender = client.namespace.raw_sender(client.interface)?;
        let watch = ConditionMonitor::begin(bench, tools.cores, tools.clock)?;
        let load = IntendedLoad::Constant(self.pps.saturating_mul(EXCESS));
        let milliseconds = WARM_UP_MS + self.seconds * 1_000;
        let (clock, interrupt) = (tools.clock, tools.interrupt);
        let (sent, windows) = thread::scope(|scope| {
            let sending = scope.spawn(|| {
                let cores = &tools.cores.tester;
                testbed::pin_current_thread(&cores[..cores.len().min(1)])?;
                generator::offer(&sender, &mut frames, load, milliseconds, clock, interrupt)
                    .map_err(Failure::to("send frames"))
            });
            let windows = windows(&mut Interface { bench, clock }, self.seconds);
            let sent = sending.join().expect("a thread of the lab does not panic");
            Ok::<_, Failure>((sent?, windows?))
        })?;
        let conditions = watch.end(bench)?;
        let sent = sent.ok_or(TrialError::Interrupted)?;
        let mut measured = TrialResult::new(self.reading(point, &windows), conditions);
        measured.note_pressure();
        self.judge(sent, &mut measured);
        Ok(measured)
    }

    fn reading(self, point: &Point, windows: &[Window]) -> Reading {
        let mut reading = Reading::at(point);
        let passed: u64 = windows.iter().map(|window| window.passed).sum();
        let seconds: f64 = windows.iter().map(|window| window.seconds).sum();
        reading.put("passed_pps", passed as f64 / seconds);
        let errors = windows.iter().map(|window| window.error(self.pps));
        reading.put("worst_error", errors.fold(0.0, f64::max));
        let series = (1_u32..).map(f64::from).zip(windows);
        let series = series.map(|(second, window)| [second, window.rate()]);
        reading
            .series
            .insert("passed_pps".to_owned(), series.collect());
        reading
    }

    /// Voids a trial in which the meter had too little to limit.
    fn judge(self, sent: SentLoad, measured: &mut TrialResult) {
        let offered = sent.frames as f64 / sent.seconds;
        let least = f64::from(self.pps) * EXCESS_MIN;
        if offered < least {
            measured.void(format!(
                "the generator offered {offered:.0} frames per second instead of at least {least:.0}"
            ));
        }
    }

    /// Returns the rate in the meter's unit.
    fn rate(self) -> u32 {
        match self.unit {
            RateUnit::Packets => self.pps,
            RateUnit::Kilobits => {
                let bits = u64::from(self.pps) * u64::from(self.frame_bytes - FCS) * 8;
                u32::try_from(bits / 1_000).unwrap_or(u32::MAX)
            }
        }
    }

    fn meter(self, command: MeterModCommand) -> Message {
        let rate = self.rate();
        let unit = match self.unit {
            RateUnit::Packets => MeterFlags::PKTPS,
            RateUnit::Kilobits => MeterFlags::KBPS,
        };
        let kind = match self.treatment {
            Treatment::Drop => BandKind::Drop,
            Treatment::Remark => BandKind::DscpRemark(1),
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

    /// Returns the meter, and the rules that send frames through it.
    fn messages(self) -> Result<Vec<Message>, Refusal> {
        let from_client = Match::any().with(Field::InPort, 1)?;
        let output = || Instructions::apply(vec![Action::output(PortNo(2))]);
        let mut messages = vec![self.meter(MeterModCommand::Add)];
        let metered = match self.treatment {
            Treatment::Drop => Instructions {
                meter: Some(METER),
                ..output()
            },
            Treatment::Remark => Instructions {
                meter: Some(METER),
                goto: Some(TableId(1)),
                ..Instructions::default()
            },
        };
        messages.push(rule(0, PRIORITY, from_client.clone(), metered));
        if self.treatment == Treatment::Remark {
            let remarked = Match::any()
                .with(Field::EthType, 0x0800)?
                .with(Field::IpDscp, REMARKED.into())?;
            messages.push(rule(1, PRIORITY, remarked, Instructions::default()));
            messages.push(rule(1, 1, from_client, output()));
        }
        Ok(messages)
    }
}

/// One second of a trial.
#[derive(Clone, Copy, Debug)]
struct Window {
    seconds: f64,
    passed: u64,
}

impl Window {
    /// Returns the frames per second.
    fn rate(&self) -> f64 {
        self.passed as f64 / self.seconds
    }

    /// Returns the error relative to the meter's rate.
    fn error(&self, pps: u32) -> f64 {
        (self.rate() / f64::from(pps) - 1.0).abs()
    }
}

/// Counter of passed frames.
trait PassedCounter {
    /// Returns the time.
    fn now(&self) -> Instant;
    /// Waits.
    fn sleep_until(&mut self, then: Instant);
    /// Returns the number of passed frames.
    fn passed(&mut self) -> Result<u64, Failure>;
}

/// The server's interface.
struct Interface<'a> {
    bench: &'a Bench,
    clock: &'a Clock,
}

impl PassedCounter for Interface<'_> {
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

/// Counts the passed frames of each second.
fn windows(counter: &mut impl PassedCounter, seconds: u32) -> Result<Vec<Window>, Failure> {
    let mut next = counter.now() + Duration::from_millis(WARM_UP_MS.into());
    counter.sleep_until(next);
    let mut last = read(counter)?;
    let mut windows = Vec::new();
    // The last second ends with the offered load, of which a moment is missing.
    for _ in 1..seconds {
        next += Duration::from_secs(1);
        counter.sleep_until(next);
        let (at, count) = read(counter)?;
        windows.push(Window {
            seconds: at.since(last.0).as_secs_f64(),
            passed: count - last.1,
        });
        last = (at, count);
    }
    Ok(windows)
}

/// Reads the counter, with the middle of the time that it takes.
fn read(counter: &mut impl PassedCounter) -> Result<(Instant, u64), Failure> {
    let before = counter.now();
    let passed = counter.passed()?;
    let after = counter.now();
    Ok((before + after.since(before) / 2, passed))
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
        unit: RateUnit::Kilobits,
        treatment: Treatment::Remark,
        pps: 1_000,
        frame_bytes: 64,
        seconds: 5,
    };

    #[test]
    fn rate_in_kilobits_passes_as_many_frames() {
        // 60 bytes of 64, without the checksum.
        assert_eq!(TEST.rate(), 480);
        let test = MeterTest {
            unit: RateUnit::Packets,
            ..TEST
        };
        assert_eq!(test.rate(), 1_000);
    }

    #[test]
    fn meter_with_too_little_to_limit_is_void() {
        let flaws = |frames| {
            let mut measured = TrialResult::new(Reading::default(), Conditions::default());
            let seconds = 2.0;
            TEST.judge(SentLoad { frames, seconds }, &mut measured);
            measured.flaws.len()
        };
        assert_eq!(flaws(2_400), 0);
        assert_eq!(flaws(2_399), 1);
    }

    #[test]
    fn worst_second_is_a_figure() {
        let window = |passed| Window {
            seconds: 1.0,
            passed,
        };
        let windows = [window(1_010), window(980), window(1_000)];
        let reading = TEST.reading(&Point::default(), &windows);
        assert!((reading.figures["worst_error"] - 0.02).abs() < 1e-9);
        assert!((reading.figures["passed_pps"] - 2_990.0 / 3.0).abs() < 1e-9);
    }

    /// Simulated meter: a burst, then a constant rate, and fewer frames in one second. Reading it
    /// takes time.
    struct Bucket {
        now: Instant,
        rate: u64,
        burst: u64,
        missing: u64,
    }

    impl PassedCounter for Bucket {
        fn now(&self) -> Instant {
            self.now
        }

        fn sleep_until(&mut self, then: Instant) {
            // It wakes late.
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
    fn passed_frames_are_counted_second_by_second() {
        let test = MeterTest {
            pps: 10_000,
            ..TEST
        };
        let reading = |missing| {
            let mut bucket = Bucket {
                now: Instant::START,
                rate: 10_000,
                burst: 500,
                missing,
            };
            let windows = windows(&mut bucket, 5).unwrap();
            assert_eq!(windows.len(), 4);
            let reading = test.reading(&Point::default(), &windows);
            (
                reading.figures["passed_pps"],
                reading.figures["worst_error"],
            )
        };
        // The burst is over before the first counted second.
        let (passed, error) = reading(0);
        assert!((passed - 10_000.0).abs() < 1.0, "{passed}");
        assert!(error < 2e-4, "{error}");
        let (passed, error) = reading(300);
        assert!((error - 0.03).abs() < 2e-4, "{error}");
        assert!((passed - 9_925.0).abs() < 1.0, "{passed}");
    }
}
