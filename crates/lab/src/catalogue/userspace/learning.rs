//! Learning controller: four hosts ping each other, and the switch then reports its flow
//! statistics.

use std::net::Ipv4Addr;
use std::time::Duration;

use controller::{Application, DeviceRequests, learning::Learning};
use flow::{Field, FlowStats, FlowStatsRequest};
use record::Conditions;
use testbed::{Program, Topology};

use crate::catalogue::offered::figure;
use crate::catalogue::prelude::*;
use crate::setup::ConditionMonitor;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const LEARNING: Experiment = Experiment {
    description: Description {
        name: "learning",
        title: "Four hosts with a learning controller",
        family: Family::UserspaceSwitch,
        question: "Do four hosts reach each other with a learning controller, how long does a first ping take, and does the switch count all packets?",
        source: "Yasuda, sections 3.1 to 3.3: NOX with pyswitch, show and dump-flows while two hosts ping",
        steps: &[
            "The controller learns addresses from packet-ins, floods packets to unknown addresses, and installs rules of all twelve fields with an idle timeout of 60 seconds.",
            "Each of four hosts pings each other host once; their ARP caches are empty, so that ARP comes first.",
            "Then the first host pings the second as often as published, and the counters of the ICMP flows between them are read from the switch.",
            "Each ping is a frame of 98 bytes per direction: the switch must have counted exactly these, except one that the controller sent.",
        ],
        parameters: &[Parameter::constant(
            "pings",
            "pings from the first host to the second",
            Values::numbers(&[78], &[78], &[78], [2, 10_000]),
        )],
        figures: FIGURES,
        views: &[View::Table {
            title: "All figures",
            figures: &[
                "reached", "first_ms", "later_us", "answered", "frames", "bytes", "flows",
            ],
        }],
        topology: Some(|_| Topology::star(HOSTS).expect("there are no more")),
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(|_| DedicatedSetup {
        application: Application::Learning(Learning::default()),
        ..DedicatedSetup::default()
    }),
    applies_to: |device, _| device.speaks_openflow() && !device.makes_taps(),
    seconds: |point| 6.0 + point.number("pings") as f64 * 0.004,
    measure,
    programs: &[("ping", "iputils-ping"), ("ip", "iproute2")],
    ..Experiment::BASE
};

const HOSTS: usize = 4;

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("reached", "Pairs with connectivity", "of 12", Better::Higher),
    figure("first_ms", "Slowest first ping", "ms", Better::Lower),
    figure("later_us", "Later pings, mean", "µs", Better::Lower),
    figure("answered", "Pings answered", "", Better::Higher),
    figure("frames", "Counted per direction, minimum", "frames", Better::Neither),
    figure("bytes", "Bytes of these packets", "bytes", Better::Neither),
    figure("flows", "Flows of ICMP", "", Better::Neither),
];

/// Bytes of a ping's frame without its checksum: 56 of payload, ICMP, IPv4, Ethernet.
const PING_BYTES: u64 = 98;
/// Time limit for a ping.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for flow counters, which some devices collect late.
const SETTLE: Duration = Duration::from_secs(3);

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let found = found(point, &mut SetupHosts { setup, tools })?;
    let conditions = watch.end(&setup.bench)?;
    Ok(found.measured(conditions))
}

/// Hosts at a switch with a learning controller.
trait Hosts {
    /// Clears the ARP cache of every host.
    fn forget(&mut self) -> Result<(), TrialError>;
    /// Pings the host `to` from the host `from`, `count` times.
    fn ping(&mut self, from: usize, to: usize, count: u64) -> Result<PingStats, TrialError>;
    /// Returns the ICMP flows between the first two hosts, when they have counted `enough` frames
    /// or the time limit has passed.
    fn flows(&mut self, enough: u64) -> Result<Vec<FlowStats>, TrialError>;
}

/// Results, with remarks.
struct LearningResult {
    reading: Reading,
    notes: Vec<String>,
}

impl LearningResult {
    fn measured(self, conditions: Conditions) -> TrialResult {
        let mut measured = TrialResult::new(self.reading, conditions);
        self.notes.into_iter().for_each(|note| measured.note(note));
        measured
    }
}

fn found(point: &Point, hosts: &mut dyn Hosts) -> Result<LearningResult, TrialError> {
    hosts.forget()?;
    let mut reading = Reading::at(point);
    let (mut reached, mut slowest) = (0, None::<f64>);
    for from in 0..HOSTS {
        for to in (0..HOSTS).filter(|to| *to != from) {
            let pinged = hosts.ping(from, to, 1)?;
            reached += pinged.answered;
            slowest = pinged.most_ms.into_iter().chain(slowest).reduce(f64::max);
        }
    }
    reading.put("reached", reached as f64);
    match slowest {
        Some(slowest) => reading.put("first_ms", slowest),
        None => reading.lack("first_ms", UNANSWERED),
    }
    let pings = point.number("pings");
    let pinged = hosts.ping(0, 1, pings)?;
    reading.put("answered", pinged.answered as f64);
    match pinged.mean_ms {
        Some(mean) => reading.put("later_us", mean * 1e3),
        None => reading.lack("later_us", UNANSWERED),
    }
    let flows = hosts.flows(pings)?;
    reading.put("flows", flows.len() as f64);
    match flows.iter().min_by_key(|flow| flow.packets) {
        Some(fewest) => {
            reading.put("frames", fewest.packets as f64);
            reading.put("bytes", fewest.bytes as f64);
        }
        None => reading.lack_each(["frames", "bytes"], "the switch reports no such flow"),
    }
    let notes = judge(&flows, pings, reached);
    Ok(LearningResult { reading, notes })
}

/// Reason for absent times.
const UNANSWERED: &str = "nothing was answered";

/// Returns a remark for each deviation from the expected results.
fn judge(flows: &[FlowStats], pings: u64, reached: u64) -> Vec<String> {
    let mut notes = Vec::new();
    let pairs = (HOSTS * (HOSTS - 1)) as u64;
    if reached < pairs {
        notes.push(format!(
            "of {pairs} pairs of hosts {reached} reached each other"
        ));
    }
    for flow in flows {
        // Up to two earlier pings between the same hosts count in the same flow.
        let expected = pings..=pings + 2;
        if !expected.contains(&flow.packets) || flow.bytes != flow.packets * PING_BYTES {
            notes.push(format!(
                "a flow counted {} frames and {} bytes, for {pings} pings of {PING_BYTES} bytes",
                flow.packets, flow.bytes
            ));
        }
    }
    notes
}

/// Returns true for ICMP between these two addresses: echo requests in one direction, or replies in
/// the other (RFC 792: types 8 and 0).
fn is_of_pings(flow: &FlowStats, [one, other]: [Ipv4Addr; 2]) -> bool {
    let fields = [
        Field::Ipv4Src,
        Field::Ipv4Dst,
        Field::IpProto,
        Field::Icmpv4Type,
    ];
    let fields = fields.map(|field| flow.matching.exact(field));
    let [one, other] = [one, other].map(|address| Some(u128::from(address.to_bits())));
    fields == [one, other, Some(1), Some(8)] || fields == [other, one, Some(1), Some(0)]
}

/// Summary that `ping` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct PingStats {
    answered: u64,
    mean_ms: Option<f64>,
    most_ms: Option<f64>,
}

/// Hosts of a test setup.
struct SetupHosts<'a> {
    setup: &'a TestSetup,
    tools: &'a Tools<'a>,
}

impl Hosts for SetupHosts<'_> {
    fn forget(&mut self) -> Result<(), TrialError> {
        for host in self.setup.bench.hosts() {
            let interface = host.interface;
            let program = Program::new("ip")
                .args(["neighbour", "flush", "dev", interface, "nud", "permanent"])
                .log(self.setup.directory.join("ip.log"))
                .inside(&host.namespace);
            self.tools.spawner.run(program, TIMEOUT)?;
        }
        Ok(())
    }

    fn ping(&mut self, from: usize, to: usize, count: u64) -> Result<PingStats, TrialError> {
        if self.tools.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        let hosts = self.setup.bench.hosts();
        let (from, to) = (&hosts[from], &hosts[to]);
        let output = self.setup.directory.join("ping.txt");
        let program = Program::new("ping")
            .args(["-n", "-q", "-i", "0.002", "-W", "2", "-c"])
            .args([count.to_string(), to.address.to_string()])
            .output(&output)
            .log(self.setup.directory.join("ping.log"))
            .inside(&from.namespace);
        let mut process = self.tools.spawner.start(program)?;
        // The program fails if no reply arrives, which is a result.
        process.wait(TIMEOUT)?;
        Ok(read(&process.written()?))
    }

    fn flows(&mut self, enough: u64) -> Result<Vec<FlowStats>, TrialError> {
        let hosts = self.setup.bench.hosts();
        let two = [hosts[0].address, hosts[1].address];
        let clock = self.tools.clock;
        let deadline = clock.now() + SETTLE;
        loop {
            let Some(mut controller) = self.setup.controller() else {
                return Err(TrialError::Impossible("it has no controller".to_owned()));
            };
            let mut flows = controller.flows(FlowStatsRequest::all())?;
            flows.retain(|flow| is_of_pings(flow, two));
            let have_all = flows.len() >= 2 && flows.iter().all(|flow| flow.packets >= enough);
            let now = clock.now();
            if have_all || now >= deadline {
                return Ok(flows);
            }
            clock.sleep_until(now + Duration::from_millis(100));
        }
    }
}

/// Parses the summary of the iputils ping.
fn read(text: &str) -> PingStats {
    let mut pinged = PingStats::default();
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

#[cfg(test)]
mod tests;
