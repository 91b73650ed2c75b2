//! Many chassis on one machine, with dummies as ports: memory and processor time of the programs of
//! a chassis, and of the databases.
//!
//! Every chassis has a tunnel to every other one; no packet crosses them.

use std::net::Ipv4Addr;
use std::time::Duration;

use base::Instant;
use clap::Args;
use testbed::{Namespace, Process};

use super::topology::{SHARED_SWITCHES, shared, shared_host, shared_port};
use super::{InterfaceKind, MIB, OvnCentral, OvnChassis, PATIENCE};
use crate::managed::SwitchKind;
use crate::sample::Sample;
use crate::switch::Site;
use crate::{Failure, Programs, Rounds};

/// Idle time before a measurement of memory, which programs release with a delay, and between the
/// measurements of processor time.
const SETTLE: Duration = Duration::from_secs(5);

/// The number of chassis.
#[derive(Args, Clone, Copy)]
pub(crate) struct ChassisCount {
    /// Chassis, each with a database, a switch and `ovn-controller`.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=250))]
    chassis: u8,
}

/// Takes `rounds` of samples, alternating between the switches.
pub(crate) fn measure(
    programs: &Programs,
    rounds: Rounds,
    ChassisCount { chassis }: ChassisCount,
) -> Result<(), Failure> {
    let site = Site::new(programs)?;
    for _ in 0..rounds.runs {
        for kind in SwitchKind::ALL {
            let namespaces = (1..=chassis).map(|_| Namespace::new());
            let namespaces: Vec<Namespace> = namespaces.collect::<Result<_, _>>()?;
            let central = OvnCentral::start(&site, "ovn-central")?;
            central.execute(&shared(chassis.into()))?;
            central.compile()?;
            ChassisSample::start(&central, kind, &namespaces)?.measure()?;
        }
    }
    Ok(())
}

/// The programs of a chassis. They are killed: a regular end removes each chassis from the database.
struct RunningChassis<'a> {
    controller: Process,
    switch: Process,
    chassis: OvnChassis<'a>,
}

impl RunningChassis<'_> {
    /// Fails if a program has ended.
    fn check(&mut self) -> Result<(), testbed::Failure> {
        for process in [&mut self.controller, &mut self.switch] {
            if !process.is_running() {
                let status = process.wait(Duration::ZERO)?;
                return Err(process.failed(status));
            }
        }
        Ok(())
    }
}

impl Drop for RunningChassis<'_> {
    fn drop(&mut self) {
        for process in [&mut self.controller, &mut self.switch] {
            // The program may have ended.
            let _ = process.kill();
        }
    }
}

/// Resources of all processes of a kind.
#[derive(Clone, Copy, Default)]
struct RoleUsage {
    processor: Duration,
    bytes: u64,
}

impl RoleUsage {
    fn of<'p>(processes: impl Iterator<Item = &'p Process>) -> Result<Self, Failure> {
        let mut all = Self::default();
        for process in processes {
            all.processor += testbed::run_times(process.id())?.ran;
            all.bytes += testbed::proportional_bytes(process.id())?;
        }
        Ok(all)
    }
}

/// The kinds of processes: the name in rows, and whether each chassis has one.
const ROLES: [(&str, bool); 6] = [
    ("switch", true),
    ("controller", true),
    ("database", true),
    ("south", false),
    ("north", false),
    ("northd", false),
];

/// Databases with running chassis.
struct ChassisSample<'a> {
    central: &'a OvnCentral<'a>,
    kind: SwitchKind,
    chassis: Vec<RunningChassis<'a>>,
    began: Instant,
    before: [RoleUsage; ROLES.len()],
}

impl<'a> ChassisSample<'a> {
    /// Starts all chassis.
    fn start(
        central: &'a OvnCentral<'a>,
        kind: SwitchKind,
        namespaces: &'a [Namespace],
    ) -> Result<Self, Failure> {
        let mut sample = Self {
            central,
            kind,
            chassis: Vec::new(),
            began: central.site.clock.now(),
            before: [RoleUsage::default(); ROLES.len()],
        };
        sample.before = sample.usage()?;
        for (namespace, number) in namespaces.iter().zip(1..) {
            let address = Ipv4Addr::new(172, 16, 0, number);
            let (name, interfaces) = (format!("chassis-{number}"), InterfaceKind::Dummy);
            let chassis = OvnChassis::new(central, &name, address, (kind, interfaces), namespace)?;
            for switch in 0..SHARED_SWITCHES {
                let interface = format!("p{switch}");
                let logical = shared_port(number.into(), switch);
                chassis.add_port(&interface, switch + 1, &logical)?;
            }
            let running = RunningChassis {
                switch: chassis.start_switch()?,
                controller: chassis.start_controller()?,
                chassis,
            };
            sample.chassis.push(running);
        }
        Ok(sample)
    }

    /// Reads the resources of all kinds of processes.
    fn usage(&self) -> Result<[RoleUsage; ROLES.len()], Failure> {
        let [north, south] = &self.central.databases;
        let chassis = || self.chassis.iter();
        Ok([
            RoleUsage::of(chassis().map(|chassis| &chassis.switch))?,
            RoleUsage::of(chassis().map(|chassis| &chassis.controller))?,
            RoleUsage::of(chassis().map(|chassis| &chassis.chassis.managed.database))?,
            RoleUsage::of([south].into_iter())?,
            RoleUsage::of([north].into_iter())?,
            RoleUsage::of([&self.central.northd].into_iter())?,
        ])
    }

    fn print(&self, row: &str, value: f64) {
        let column = self.kind.column();
        Sample { row, column, value }.print();
    }

    /// The number of processes of a kind.
    fn count(&self, is_of_chassis: bool) -> f64 {
        match is_of_chassis {
            true => self.chassis.len() as f64,
            false => 1.0,
        }
    }

    /// Prints the processor time of each kind of process since `before`, in milliseconds.
    fn print_processor(
        &self,
        phase: &str,
        before: &[RoleUsage; ROLES.len()],
    ) -> Result<(), Failure> {
        let usage = self.usage()?;
        for ((role, is_of_chassis), (after, before)) in ROLES.iter().zip(usage.iter().zip(before)) {
            let time = after.processor.saturating_sub(before.processor);
            let each = time.as_secs_f64() * 1e3 / self.count(*is_of_chassis);
            self.print(&format!("{phase}-{role}"), each);
        }
        Ok(())
    }

    /// Takes one sample of everything.
    fn measure(mut self) -> Result<(), Failure> {
        let clock = self.central.site.clock;
        let ports = SHARED_SWITCHES * self.chassis.len();
        clock.wait_for("all logical ports to be up", PATIENCE, || {
            for chassis in &mut self.chassis {
                chassis.check()?;
            }
            let up = self
                .central
                .nbctl("--bare --columns=name find Logical_Switch_Port up=true");
            let up = up.map(|names| names.split_whitespace().count());
            Ok(up.is_ok_and(|up| up >= ports).then_some(()))
        })?;
        self.central.sync()?;
        let elapsed = clock.now().since(self.began);
        self.print("start", elapsed.as_secs_f64());
        self.print_processor("start", &self.before)?;
        clock.sleep_until(clock.now() + SETTLE);
        let idle = self.usage()?;
        for ((role, is_of_chassis), usage) in ROLES.iter().zip(&idle) {
            let each = usage.bytes as f64 / MIB / self.count(*is_of_chassis);
            self.print(&format!("memory-{role}"), each);
        }
        self.add_port()?;
        self.print("flows", self.chassis[0].chassis.flow_count()?);
        Ok(())
    }

    /// Adds a logical port to the first chassis.
    fn add_port(&self) -> Result<(), Failure> {
        let clock = self.central.site.clock;
        let (before, began) = (self.usage()?, clock.now());
        let extra = self.chassis.len() + 1;
        self.central.execute(&shared_host(extra, 0))?;
        let logical = shared_port(extra, 0);
        let first = &self.chassis[0].chassis;
        first.add_port("extra", SHARED_SWITCHES + 1, &logical)?;
        self.central
            .nbctl(&format!("wait-until Logical_Switch_Port {logical} up=true"))?;
        self.central.sync()?;
        let elapsed = clock.now().since(began);
        self.print("port", elapsed.as_secs_f64() * 1e3);
        self.print_processor("port", &before)
    }
}
