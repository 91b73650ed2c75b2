//! Rate error of meters, with frames offered from memory at the highest rate.

use std::time::Duration;

use testbed::Namespace;
use testkit::workload::Workload;

use crate::sample::Sample;
use crate::select::select;
use crate::switch::{BenchSwitch, BridgeTarget, Site, word};
use crate::{Failure, Programs, Rounds, pcap};

/// A meter rate by name.
struct MeterRate {
    name: &'static str,
    /// The rate in frames a second.
    frames: u32,
}

const RATES: [MeterRate; 4] = {
    const fn row(name: &'static str, frames: u32) -> MeterRate {
        MeterRate { name, frames }
    }
    [
        row("1-thousand", 1_000),
        row("10-thousand", 10_000),
        row("100-thousand", 100_000),
        row("1-million", 1_000_000),
    ]
};

/// The file with the frames.
const FILE: &str = "frames.pcap";

/// Seconds of a run; the worst one is the result.
const SECONDS: u32 = 3;

/// The minimum offered load of a valid second, as a multiple of the rate: below it, because another
/// process had the core, the second does not test the meter. The run ends after `SECONDS_MAX`
/// seconds.
const OVERLOAD: f64 = 1.5;
const SECONDS_MAX: u32 = 10;

/// Time before the measurement, in which the meter's initial burst is used up.
const WARM_UP: Duration = Duration::from_millis(500);

/// Takes `rounds` of samples of each rate; `rounds.millis` is the length of a second of the run.
pub(crate) fn measure(
    names: &[String],
    programs: &Programs,
    rounds: Rounds,
) -> Result<(), Failure> {
    let selected = select(names, &RATES, |rate| rate.name)?;
    let site = Site::new(programs)?;
    let frames = Workload::one_rule().frames();
    let frame = frames.first().ok_or("the workload has no frame")?;
    let length = u32::try_from(frame.len())?;
    pcap::write(&site.directory.join(FILE), &frames[..1])?;
    for _ in 0..rounds.runs {
        for rate in &selected {
            // The rate in the units of the bands: frames and kilobits a second.
            let (packets, kilobits) = (rate.frames, rate.frames * length / 125);
            let kinds = [
                ("packets", format!("pktps,bands=type=drop,rate={packets}")),
                ("bits", format!("kbps,bands=type=drop,rate={kilobits}")),
                (
                    "remarked",
                    format!("pktps,bands=type=dscp_remark,rate={packets},prec_level=1"),
                ),
            ];
            for (column, bands) in kinds {
                let value = run(&site, &bands, packets, rounds.millis)?;
                let row = rate.name;
                Sample { row, column, value }.print();
            }
        }
    }
    Ok(())
}

/// Measures the largest error of a second, in per cent of the rate: of the frames that pass, or
/// that keep their DSCP.
fn run(site: &Site, bands: &str, rate: u32, millis: u32) -> Result<f64, Failure> {
    let file = word(&site.directory.join(FILE));
    let ports = [format!("replay:p1,{file}=1"), "replay:p2=2".to_owned()];
    let mut arguments: Vec<String> = ports
        .into_iter()
        .flat_map(|port| ["--port".to_owned(), port])
        .collect();
    arguments.extend(["--cores".to_owned(), "0".to_owned()]);
    let switch = BenchSwitch::start(site, "meters", Namespace::new()?, &arguments)?;
    let bridge = &switch.bridge;
    bridge.add_meter(&format!("meter=1,{bands}"))?;
    bridge.add_flows(&["in_port=1,actions=meter:1,output:2".to_owned()])?;
    site.clock.sleep_until(site.clock.now() + WARM_UP);
    let (mut worst, mut judged): (f64, u32) = (0.0, 0);
    for _ in 0..SECONDS_MAX {
        let second = second(bridge, millis)?;
        if second.offered < OVERLOAD * f64::from(rate) {
            continue;
        }
        worst = worst.max(100.0 * (second.passed / f64::from(rate) - 1.0).abs());
        judged += 1;
        if judged == SECONDS {
            return Ok(worst);
        }
    }
    Err(format!("offered load too low to test a meter of {rate} frames/s").into())
}

/// The frames a second that were offered to a meter and that passed it.
struct MeterSecond {
    offered: f64,
    passed: f64,
}

/// Measures the meter for `millis` milliseconds.
fn second(bridge: &BridgeTarget<'_>, millis: u32) -> Result<MeterSecond, Failure> {
    let clock = &bridge.site.clock;
    let before = bridge.meter_sample(1)?;
    clock.sleep_until(clock.now() + Duration::from_millis(millis.into()));
    let after = bridge.meter_sample(1)?;
    let seconds = after.seconds - before.seconds;
    Ok(MeterSecond {
        offered: (after.frames - before.frames) / seconds,
        passed: (after.passed() - before.passed()) / seconds,
    })
}
