//! A controller that learns, four hosts that ping each other, and what the switch then tells of
//! its flows.

use std::time::Duration;

use flow::{Field, FlowStats, FlowStatsRequest};
use testbed::{Host, Program, Topology};

use crate::catalogue::offered::figure;
use crate::catalogue::{
    Better, Bound, Experiment, Family, Figure, Own, Parameter, Point, Setting, Values, View,
};
use crate::controller::{Application, Ask, learning::Learning};
use crate::cores::Watch;
use crate::record::{Outcome, Reading};
use crate::scenario::Tools;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const LEARNING: Experiment = Experiment {
    name: "learning",
    title: "Four hosts under a controller that learns",
    family: Family::UserspaceSwitch,
    question: "Do four hosts reach each other by a controller that learns, what does a first ping take, and does the switch count what was sent?",
    source: "Yasuda, sections 3.1 to 3.3: NOX with pyswitch, show and dump-flows while two hosts ping",
    steps: &[
        "The controller learns addresses from frames that come up, floods for those it does not know, and installs rules of all twelve fields that go when they have been idle for 60 seconds.",
        "Each of four hosts pings each other once; nobody knows anybody's hardware address before, so ARP comes first.",
        "The first host then pings the second as often as published, and the switch is asked for its flows of ICMP between the two.",
        "Each ping is a frame of 98 bytes either way: the switch should have counted exactly these, but for one that the controller sent itself.",
    ],
    parameters: &[Parameter::constant(
        "pings",
        "pings from the first host to the second",
        Values::Numbers {
            quick: &[78],
            paper: &[78],
            rfc: &[78],
            bound: Bound {
                least: 2,
                most: 10_000,
            },
        },
    )],
    figures: FIGURES,
    views: &[View::Table {
        title: "All figures",
        figures: &[
            "reached", "first_ms", "later_us", "answered", "frames", "bytes", "flows",
        ],
    }],
    setting: Setting::Own(|_| Own {
        topology: Topology::star(HOSTS).expect("there are no more"),
        application: Application::Learning(Learning::default()),
        ..Own::default()
    }),
    takes: |device, _| device.speaks_openflow() && !device.makes_taps(),
    seconds: |point| 6.0 + point.number("pings") as f64 * 0.004,
    measure,
};

const HOSTS: usize = 4;

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("reached", "Pairs that reached each other", "of 12", Better::Higher),
    figure("first_ms", "First ping, the slowest", "ms", Better::Lower),
    figure("later_us", "Later pings, the mean", "µs", Better::Lower),
    figure("answered", "Pings answered", "", Better::Higher),
    figure("frames", "Counted each way, the fewest", "frames", Better::Neither),
    figure("bytes", "And their bytes", "bytes", Better::Neither),
    figure("flows", "Flows of ICMP", "", Better::Neither),
];

/// Bytes of a ping's frame without its checksum: 56 of payload, ICMP, IPv4, Ethernet.
const PING_BYTES: u64 = 98;
/// How long a ping may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Some devices gather their counts late.
const SETTLE: Duration = Duration::from_secs(3);

fn measure(
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let hosts = station.bench.hosts();
    for host in hosts {
        forget(host, station, tools)?;
    }
    let mut reading = Reading::at(point);
    let (mut reached, mut slowest) = (0, 0.0_f64);
    for from in hosts {
        for to in hosts.iter().filter(|to| to.address != from.address) {
            let pinged = ping(from, to, 1, station, tools)?;
            reached += pinged.answered;
            slowest = slowest.max(pinged.most_ms.unwrap_or(0.0));
        }
    }
    reading.put("reached", reached as f64);
    reading.put("first_ms", slowest);
    let pings = point.number("pings");
    let pinged = ping(&hosts[0], &hosts[1], pings, station, tools)?;
    reading.put("answered", pinged.answered as f64);
    match pinged.mean_ms {
        Some(mean) => reading.put("later_us", mean * 1e3),
        None => reading.lack("later_us", "nothing was answered"),
    }
    let flows = flows(station, pings, tools)?;
    let fewest = flows.iter().min_by_key(|flow| flow.packets);
    reading.put("flows", flows.len() as f64);
    reading.put("frames", fewest.map_or(0, |flow| flow.packets) as f64);
    reading.put("bytes", fewest.map_or(0, |flow| flow.bytes) as f64);
    let conditions = watch.end(&station.bench)?;
    let mut measured = Measured::new(Outcome::Reading(reading), conditions);
    judge(&flows, pings, reached, &mut measured);
    Ok(measured)
}

/// What should be so, and is not.
fn judge(flows: &[FlowStats], pings: u64, reached: u64, measured: &mut Measured) {
    let pairs = (HOSTS * (HOSTS - 1)) as u64;
    if reached < pairs {
        measured.note(format!(
            "of {pairs} pairs of hosts {reached} reached each other"
        ));
    }
    for flow in flows {
        // Pings to and from the same two before count in the same flow.
        let expected = pings..=pings + 2;
        if !expected.contains(&flow.packets) || flow.bytes != flow.packets * PING_BYTES {
            measured.note(format!(
                "a flow counted {} frames and {} bytes, for {pings} pings of {PING_BYTES} bytes",
                flow.packets, flow.bytes
            ));
        }
    }
}

/// Has a host forget the hardware addresses that it was told.
fn forget(host: &Host, station: &Station, tools: &Tools<'_>) -> Result<(), TrialError> {
    let program = Program::new("ip")
        .args([
            "neighbour",
            "flush",
            "dev",
            host.interface,
            "nud",
            "permanent",
        ])
        .log(station.directory.join("ip.log"))
        .inside(&host.namespace);
    Ok(tools.spawner.run(program, PATIENCE)?)
}

/// What `ping` says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Pinged {
    answered: u64,
    mean_ms: Option<f64>,
    most_ms: Option<f64>,
}

fn ping(
    from: &Host,
    to: &Host,
    count: u64,
    station: &Station,
    tools: &Tools<'_>,
) -> Result<Pinged, TrialError> {
    if tools.interrupt.is_set() {
        return Err(TrialError::Interrupted);
    }
    let output = station.directory.join("ping.txt");
    let program = Program::new("ping")
        .args(["-n", "-q", "-i", "0.002", "-W", "2", "-c"])
        .args([count.to_string(), to.address.to_string()])
        .output(&output)
        .log(station.directory.join("ping.log"))
        .inside(&from.namespace);
    let mut process = tools.spawner.start(program)?;
    // It fails where nothing is answered, which is a result.
    process.wait(PATIENCE)?;
    Ok(read(&process.written()?))
}

/// Reads the summary of iputils' ping.
fn read(text: &str) -> Pinged {
    let mut pinged = Pinged::default();
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once(" transmitted, ") {
            let number = rest.split(' ').next().and_then(|word| word.parse().ok());
            pinged.answered = number.unwrap_or(0);
        }
        if let Some((_, rest)) = line.split_once(" = ") {
            let mut numbers = rest.split(['/', ' ']).map(|word| word.parse().ok());
            pinged.mean_ms = numbers.nth(1).flatten();
            pinged.most_ms = numbers.next().flatten();
        }
    }
    pinged
}

/// Flows of ICMP between the first host and the second, when they have counted enough, or will
/// not.
fn flows(station: &Station, enough: u64, tools: &Tools<'_>) -> Result<Vec<FlowStats>, TrialError> {
    let hosts = station.bench.hosts();
    let two = [0, 1].map(|host: usize| u128::from(hosts[host].address.to_bits()));
    let deadline = tools.clock.now() + SETTLE;
    loop {
        let Some(mut controller) = station.controller() else {
            return Err(TrialError::Impossible("it has no controller".to_owned()));
        };
        let mut flows = controller.flows(FlowStatsRequest::all())?;
        flows.retain(|flow| {
            let asked = [
                Field::Ipv4Src,
                Field::Ipv4Dst,
                Field::IpProto,
                Field::Icmpv4Type,
            ];
            let asked = asked.map(|field| flow.matching.exact(field));
            let [one, other] = two.map(Some);
            // Requests one way and replies the other (RFC 792: types 8 and 0).
            asked == [one, other, Some(1), Some(8)] || asked == [other, one, Some(1), Some(0)]
        });
        let now = tools.clock.now();
        if now >= deadline || flows.len() >= 2 && flows.iter().all(|flow| flow.packets >= enough) {
            return Ok(flows);
        }
        tools.clock.sleep_until(now + Duration::from_millis(100));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ping_says_is_read() {
        let text = "PING 10.98.0.2 (10.98.0.2) 56(84) bytes of data.\n\n\
            --- 10.98.0.2 ping statistics ---\n\
            78 packets transmitted, 77 received, 1.28205% packet loss, time 154ms\n\
            rtt min/avg/max/mdev = 0.020/0.048/1.580/0.012 ms\n";
        let told = Pinged {
            answered: 77,
            mean_ms: Some(0.048),
            most_ms: Some(1.58),
        };
        assert_eq!(read(text), told);
        let none = "1 packets transmitted, 0 received, 100% packet loss, time 0ms\n";
        assert_eq!(read(none), Pinged::default());
    }
}
