//! How near to its rate a meter lets frames pass while frames come as fast as memory gives
//! them.

use std::time::Duration;

use testbed::Namespace;
use testkit::workload::Workload;

use crate::chosen::chosen;
use crate::sample::Sample;
use crate::switch::{Bridge, Site, Switch, word};
use crate::{Failure, Programs, Rounds, pcap};

/// A rate by the name that it is asked for.
struct Rate {
    name: &'static str,
    /// In frames a second.
    frames: u32,
}

const RATES: [Rate; 4] = {
    const fn row(name: &'static str, frames: u32) -> Rate {
        Rate { name, frames }
    }
    [
        row("1-thousand", 1_000),
        row("10-thousand", 10_000),
        row("100-thousand", 100_000),
        row("1-million", 1_000_000),
    ]
};

/// The frames.
const FILE: &str = "frames.pcap";

/// Seconds of a run, of which the worst counts.
const SECONDS: u32 = 3;

/// A second in which fewer frames come than this many times the rate, since something else
/// had the core, tries no meter; so many are waited for.
const OVERLOAD: f64 = 1.5;
const SECONDS_MAX: u32 = 10;

/// How long frames meet a meter before they are counted: what may come at once has come.
const WARM_UP: Duration = Duration::from_millis(500);

/// Takes `rounds` of samples of each rate; a second of it takes `rounds.millis`.
pub(crate) fn measure(
    names: &[String],
    programs: &Programs,
    rounds: Rounds,
) -> Result<(), Failure> {
    let chosen = chosen(names, &RATES, |rate| rate.name)?;
    let site = Site::new(programs)?;
    let frames = Workload::one_rule().frames();
    let frame = frames.first().ok_or("the workload has no frame")?;
    let length = u32::try_from(frame.len())?;
    pcap::write(&site.directory.join(FILE), &frames[..1])?;
    for _ in 0..rounds.runs {
        for rate in &chosen {
            // Both of them as their bands are written: frames, and kilobits.
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

/// By how much the worst second is off, in per cent of the rate: what passes, or what is
/// left as it was.
fn run(site: &Site, bands: &str, rate: u32, millis: u32) -> Result<f64, Failure> {
    let file = word(&site.directory.join(FILE));
    let ports = [format!("replay:p1,{file}=1"), "replay:p2=2".to_owned()];
    let mut arguments: Vec<String> = ports
        .into_iter()
        .flat_map(|port| ["--port".to_owned(), port])
        .collect();
    arguments.extend(["--cores".to_owned(), "0".to_owned()]);
    let switch = Switch::start(site, "meters", Namespace::new()?, &arguments)?;
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
    Err(format!("too few frames came to try a meter of {rate} a second").into())
}

/// What a meter was given and let pass, in frames a second.
struct Second {
    offered: f64,
    passed: f64,
}

/// Lets `millis` go by, and says what the meter has told then.
fn second(bridge: &Bridge<'_>, millis: u32) -> Result<Second, Failure> {
    let clock = &bridge.site.clock;
    let before = bridge.metered(1)?;
    clock.sleep_until(clock.now() + Duration::from_millis(millis.into()));
    let after = bridge.metered(1)?;
    let seconds = after.seconds - before.seconds;
    Ok(Second {
        offered: (after.frames - before.frames) / seconds,
        passed: (after.passed() - before.passed()) / seconds,
    })
}
