//! Hosts of a logical switch on one chassis.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;

use testbed::{Failure, Process};

use crate::support::command::CommandOutput;
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::ovn::REQUIREMENTS;
use crate::support::stateful::{assert_only_replies_pass, assert_service_works};

pub(crate) const TESTS: &[SystemTest] = tests![
    ovn_connects_hosts_of_a_logical_switch,
    ovn_access_list_permits_replies_only,
    ovn_load_balancer_translates_connections,
];

/// The schemas of the northbound and the southbound database in Debian.
const SCHEMAS: [(&str, &str); 2] = [
    ("ovnnb", "/usr/share/ovn/ovn-nb.ovsschema"),
    ("ovnsb", "/usr/share/ovn/ovn-sb.ovsschema"),
];

/// The address of a load balancer.
const VIRTUAL: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 100);

const SERVICE: u16 = 8080;

/// A chassis with its own databases, and a logical switch with two hosts.
struct OvnChassis<'d, 'r, 'g> {
    deployment: &'d Deployment<'r, 'g>,
    /// Databases, `ovn-northd` and `ovn-controller`.
    processes: Vec<Process>,
}

impl<'d, 'r, 'g> OvnChassis<'d, 'r, 'g> {
    /// Starts OVN over the switch of `deployment`, with hosts 1 and 2 in the logical switch `sw0`.
    fn start(deployment: &'d Deployment<'r, 'g>) -> Result<Self, TestError> {
        if let Err(missing) = testbed::check(&REQUIREMENTS) {
            return Err(TestError::Skip(missing.to_string()));
        }
        let mut chassis = Self {
            deployment,
            processes: Vec::new(),
        };
        for (name, schema) in SCHEMAS {
            chassis.start_database(name, schema)?;
        }
        let [north, south] = [chassis.remote("ovnnb"), chassis.remote("ovnsb")];
        chassis.spawn(&format!(
            "ovn-northd --ovnnb-db={north} --ovnsb-db={south} --unixctl=ovn-northd.ctl"
        ))?;
        // ovn-controller 23.03 crashes on a southbound database without its global row.
        chassis.nbctl(&["--wait=sb", "sync"])?;
        deployment.vsctl(&format!(
            "set open . external_ids:system-id=chassis1 external_ids:ovn-remote={south} \
             external_ids:ovn-encap-type=geneve external_ids:ovn-encap-ip=127.0.0.1 \
             external_ids:ovn-bridge-datapath-type=netdev"
        ))?;
        deployment
            .vsctl("add-br br-int -- set bridge br-int fail_mode=secure datapath_type=netdev")?;
        chassis.spawn(&format!(
            "ovn-controller unix:{}",
            deployment.rundir.join("db.sock").display()
        ))?;
        chassis.add_hosts()?;
        Ok(chassis)
    }

    /// The remote of one of the two databases.
    fn remote(&self, name: &str) -> String {
        let socket = self.deployment.rundir.join(format!("{name}_db.sock"));
        format!("unix:{}", socket.display())
    }

    fn start_database(&mut self, name: &str, schema: &str) -> Result<(), Failure> {
        let context = self.deployment.network.context;
        let create = format!("ovsdb-tool create {name}.db");
        let create = self.deployment.program(&create).arg(schema);
        CommandOutput::run(context, create)?.expect_success()?;
        self.spawn(&format!(
            "ovsdb-server {name}.db --remote=punix:{name}_db.sock --unixctl={name}.ctl"
        ))?;
        let socket = self.deployment.rundir.join(format!("{name}_db.sock"));
        context.wait_until("a database of OVN to accept connections", || {
            Ok(UnixStream::connect(&socket).is_ok())
        })
    }

    fn spawn(&mut self, words: &str) -> Result<(), Failure> {
        let context = self.deployment.network.context;
        let program = words.split(' ').next().unwrap_or(words);
        let log = context.unique_path(&format!("{program}.log"));
        let rundir = &self.deployment.rundir;
        let started = self.deployment.program(words).env("OVN_RUNDIR", rundir);
        self.processes
            .push(context.spawner.start(started.log(log))?);
        Ok(())
    }

    /// Runs `ovn-nbctl`.
    fn nbctl(&self, arguments: &[&str]) -> Result<String, Failure> {
        let north = self.remote("ovnnb");
        let program = self
            .deployment
            .program(&format!("ovn-nbctl --timeout=30 --db={north}"))
            .args(arguments.iter().copied());
        CommandOutput::run(self.deployment.network.context, program)?.expect_success()
    }

    fn add_hosts(&self) -> Result<(), Failure> {
        self.nbctl(&["ls-add", "sw0"])?;
        for (number, port) in [(1, "p1"), (2, "p2")] {
            let host = self.deployment.network.host(number);
            let mac = host.mac.map(|byte| format!("{byte:02x}")).join(":");
            let addresses = format!("{mac} {}", host.address);
            self.nbctl(&["lsp-add", "sw0", port])?;
            self.nbctl(&["lsp-set-addresses", port, &addresses])?;
            self.deployment.vsctl(&format!(
                "add-port br-int {port} -- set interface {port} external_ids:iface-id={port}"
            ))?;
        }
        self.sync()
    }

    /// Waits until the chassis has installed all changes.
    fn sync(&self) -> Result<(), Failure> {
        self.nbctl(&["--wait=hv", "sync"]).map(drop)
    }
}

impl Drop for OvnChassis<'_, '_, '_> {
    fn drop(&mut self) {
        // The controller ends first: it would report databases that are gone.
        while let Some(process) = self.processes.pop() {
            drop(process);
        }
    }
}

fn ovn_connects_hosts_of_a_logical_switch(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon()?;
    let _chassis = OvnChassis::start(&deployment)?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 5)?;
    let log = fs::read_to_string(&daemon.log)?;
    assert!(!log.contains("OFPT_ERROR"), "{log}");
    Ok(())
}

fn ovn_access_list_permits_replies_only(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let chassis = OvnChassis::start(&deployment)?;
    let (inside, outside) = network.host_pair();
    inside.ping_until_reply(outside.address)?;
    let from_inside = "inport == \"p1\" && ip4";
    let to_inside = "outport == \"p1\" && ip4";
    chassis.nbctl(&[
        "acl-add",
        "sw0",
        "from-lport",
        "1000",
        from_inside,
        "allow-related",
    ])?;
    chassis.nbctl(&["acl-add", "sw0", "to-lport", "1000", to_inside, "drop"])?;
    chassis.sync()?;
    assert_only_replies_pass(inside, outside)?;
    Ok(())
}

fn ovn_load_balancer_translates_connections(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let chassis = OvnChassis::start(&deployment)?;
    let (client, server) = network.host_pair();
    client.ping_until_reply(server.address)?;
    client
        .namespace
        .add_neighbour(client.interface, VIRTUAL, server.mac)?;
    let service = format!("{}:{SERVICE}", server.address);
    let virtual_service = format!("{VIRTUAL}:{SERVICE}");
    chassis.nbctl(&["lb-add", "lb0", &virtual_service, &service, "tcp"])?;
    chassis.nbctl(&["ls-lb-add", "sw0", "lb0"])?;
    chassis.sync()?;
    assert_service_works(client, (VIRTUAL, SERVICE), server)?;
    Ok(())
}
