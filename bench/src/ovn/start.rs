//! Start of a chassis with a hundred thousand flows: from the start of `ovn-controller` until a
//! packet is forwarded, and until all flows are installed; changes of an access list under load; and
//! a restart of the switch.

use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use clap::Args;
use testbed::{Process, Program, Usage};

use super::flow_load::FlowLoad;
use super::topology::{large, logical_port};
use super::{InterfaceKind, MIB, OvnCentral, OvnChassis, PATIENCE};
use crate::managed::{PortLinks, SwitchKind, port};
use crate::sample::Sample;
use crate::switch::Site;
use crate::{Failure, Programs, Rounds};

/// The name of the chassis, and that of the chassis of all other ports.
const HERE: &str = "here";
const THERE: &str = "there";

/// Hosts of the chassis: ports 1 and 2 of the first logical switch.
const HOSTS: usize = 2;

/// The number of times that a rule is added and removed.
const CHANGES: usize = 20;

/// The rule, which no packet of the load matches.
const RULE: &str = "acl-add hosts to-lport 2000";
const RULE_MATCH: &str = "outport == @hosts && udp.dst == 7777";

/// Size of the network.
#[derive(Args, Clone, Copy)]
pub(crate) struct AddressCount {
    /// Networks of the address set, of which each is four flows of a chassis.
    #[arg(long, default_value_t = 22_400)]
    addresses: usize,
}

/// Takes `rounds` of samples, alternating between the switches.
pub(crate) fn measure(
    programs: &Programs,
    rounds: Rounds,
    AddressCount { addresses }: AddressCount,
) -> Result<(), Failure> {
    let site = Site::new(programs)?;
    let links = PortLinks::create(HOSTS)?;
    let central = OvnCentral::start(&site, "ovn-central")?;
    central.execute(&large(addresses))?;
    central.sbctl(&format!("chassis-add {THERE} geneve 172.16.0.2"))?;
    central.compile()?;
    bind_other_ports(&central)?;
    for _ in 0..rounds.runs {
        for kind in SwitchKind::ALL {
            StartSample::prepare(&central, &links, kind)?.measure()?;
            // The next sample finds the databases as this one did.
            central.compile()?;
        }
    }
    Ok(())
}

/// Binds all ports but those of the hosts to the other chassis.
fn bind_other_ports(central: &OvnCentral<'_>) -> Result<(), Failure> {
    let there = central.sbctl(&format!("--bare --columns=_uuid find Chassis name={THERE}"))?;
    let conditions = (1..=HOSTS).map(|host| {
        let name = logical_port(0, host);
        format!(r#",["logical_port","!=","{name}"]"#)
    });
    let conditions: String = conditions.collect();
    let update = format!(
        r#"["OVN_Southbound",{{"op":"update","table":"Port_Binding","row":{{"chassis":["uuid","{}"]}},"where":[["type","==",""]{conditions}]}}]"#,
        there.trim()
    );
    let south = central.remote("sb");
    let program = Program::new("ovsdb-client").args(["transact", &south, &update]);
    let answer = central.run(program)?;
    match answer.contains("error") {
        true => Err(answer.into()),
        false => central.compile(),
    }
}

/// A chassis with a running switch, which `ovn-controller` has not configured yet.
struct StartSample<'a> {
    central: &'a OvnCentral<'a>,
    /// Dropped before its database.
    switch: Process,
    chassis: OvnChassis<'a>,
    load: FlowLoad,
}

impl<'a> StartSample<'a> {
    fn prepare(
        central: &'a OvnCentral<'a>,
        links: &'a PortLinks,
        kind: SwitchKind,
    ) -> Result<Self, Failure> {
        let address = Ipv4Addr::new(172, 16, 0, 1);
        let interfaces = InterfaceKind::System;
        let chassis = OvnChassis::new(central, HERE, address, (kind, interfaces), &links.near)?;
        for host in 1..=HOSTS {
            chassis.add_port(&port(host), host, &logical_port(0, host))?;
        }
        let switch = chassis.start_switch()?;
        // This returns when the switch has the ports.
        chassis
            .managed
            .vsctl("set Open_vSwitch . external_ids:prepared=true")?;
        Ok(Self {
            central,
            switch,
            chassis,
            load: FlowLoad::new(central.site.clock, links)?,
        })
    }

    fn print(&self, row: &str, value: f64) {
        let column = self.chassis.managed.kind.column();
        Sample { row, column, value }.print();
    }

    /// Takes one sample of everything.
    fn measure(mut self) -> Result<(), Failure> {
        let clock = self.central.site.clock;
        let (before, began, calendar) = (self.switch.usage()?, clock.now(), clock.calendar());
        let mut controller = self.chassis.start_controller()?;
        let arrival = self.load.first_arrival(PATIENCE)?;
        let first = arrival.since(began);
        self.print("first-packet", first.as_secs_f64());
        if let Some(connected) = self.connection_time()? {
            let offset = connected.saturating_sub(day_time(calendar));
            self.print(
                "from-connection",
                first.saturating_sub(offset).as_secs_f64(),
            );
        }
        self.central.sync()?;
        self.print("installed", clock.now().since(began).as_secs_f64());
        let after = self.switch.usage()?;
        self.print("processor", processor(after, before));
        let usage = controller.usage()?;
        self.print("controller-processor", processor(usage, Usage::default()));
        self.print(
            "memory",
            testbed::proportional_bytes(self.switch.id())? as f64 / MIB,
        );
        self.print("flows", self.chassis.flow_count()?);
        self.change_rules()?;
        self.restart()?;
        // It removes its chassis from the database.
        controller.stop_within(PATIENCE)?;
        Ok(())
    }

    /// Adds and removes a rule repeatedly under load.
    fn change_rules(&self) -> Result<(), Failure> {
        let clock = self.central.site.clock;
        let (times, load) = self.load.during(|| {
            let mut times = Vec::new();
            for _ in 0..CHANGES {
                let add = RULE.split(' ').chain([RULE_MATCH, "drop"]);
                let add: Vec<&str> = ["--wait=hv"].into_iter().chain(add).collect();
                let remove = format!("--wait=hv {}", RULE.replace("acl-add", "acl-del"));
                let remove = remove.split(' ').chain([RULE_MATCH]);
                for words in [add, remove.collect()] {
                    let then = clock.now();
                    self.central.client("ovn-nbctl", "nb", &words)?;
                    times.push(clock.now().since(then).as_secs_f64());
                }
            }
            Ok(times)
        })?;
        let sum: f64 = times.iter().sum();
        self.print("acl-change", sum / times.len() as f64);
        self.print("acl-packets", load.sent as f64);
        self.print("acl-lost", load.lost as f64);
        Ok(())
    }

    /// Restarts the switch under `ovn-controller`.
    fn restart(&mut self) -> Result<(), Failure> {
        let clock = self.central.site.clock;
        self.switch.stop_within(PATIENCE)?;
        let began = clock.now();
        self.switch = self.chassis.start_switch()?;
        let arrival = self.load.first_arrival(PATIENCE)?;
        self.print("restart", arrival.since(began).as_secs_f64());
        self.central.sync()?;
        let installed = clock.now().since(began);
        self.print("restart-installed", installed.as_secs_f64());
        Ok(())
    }

    /// The time of day at which `ovn-controller` was connected to the bridge, from its log.
    fn connection_time(&self) -> Result<Option<Duration>, Failure> {
        let log = fs::read_to_string(self.chassis.managed.path("ovn-controller.log"))?;
        let line = log
            .lines()
            .find(|line| line.contains("br-int.mgmt: connected"));
        Ok(line.and_then(log_time))
    }
}

/// Processor time in seconds between two readings.
fn processor(after: Usage, before: Usage) -> f64 {
    (after.user + after.system)
        .saturating_sub(before.user + before.system)
        .as_secs_f64()
}

/// The time since midnight, UTC.
fn day_time(calendar: Duration) -> Duration {
    Duration::from_millis(u64::try_from(calendar.as_millis() % 86_400_000).unwrap_or_default())
}

/// Parses the time of day of a log line, as in `2026-01-31T12:34:56.789Z|00001|...`.
fn log_time(line: &str) -> Option<Duration> {
    let (_, rest) = line.split_once('T')?;
    let (time, _) = rest.split_once('Z')?;
    let mut parts = time.split(':');
    let hours: u64 = parts.next()?.parse().ok()?;
    let minutes: u64 = parts.next()?.parse().ok()?;
    let seconds: f64 = parts.next()?.parse().ok()?;
    Some(Duration::from_secs(hours * 3600 + minutes * 60) + Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_time_is_the_time_of_day() {
        let line = "2026-01-31T12:34:56.789Z|00001|rconn|INFO|unix:/x/br-int.mgmt: connected";
        let time = Duration::from_millis(((12 * 60 + 34) * 60 + 56) * 1000 + 789);
        assert_eq!(log_time(line), Some(time));
        assert_eq!(log_time("connected"), None);
    }
}
