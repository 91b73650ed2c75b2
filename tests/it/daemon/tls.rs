//! TLS with real peers: `ovs-testcontroller`, `ovs-ofctl` and `ovsdb-server`, by keys that
//! `ovs-pki` made.

use std::path::PathBuf;

use testbed::Failure;

use crate::support::command::{CommandOutput, program};
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    a_controller_by_tls_is_known_by_its_authority,
    a_peer_that_comes_by_tls_must_show_who_it_is,
    an_authority_is_learned_from_the_first_controller,
    a_database_is_met_by_tls,
    a_switch_without_a_database_goes_to_a_controller_by_tls,
];

/// Two authorities, of controllers and of switches, and a key signed by each.
struct Keys {
    directory: PathBuf,
}

impl Keys {
    fn new(context: &TestContext) -> Result<Self, Failure> {
        let directory = context.directory().join("keys");
        std::fs::create_dir_all(&directory).map_err(Failure::to("make a directory"))?;
        let keys = Self { directory };
        for words in ["init", "req+sign switch switch", "req+sign ctl controller"] {
            let told = format!("ovs-pki --batch --dir=pki --log=pki.log {words}");
            let made = program(&told).directory(&keys.directory);
            CommandOutput::run_within(WAIT_LIMIT * 2, context, made)?.expect_success()?;
        }
        Ok(keys)
    }

    fn file(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    /// The certificate of an authority.
    fn authority(&self, of: &str) -> String {
        self.file(&format!("pki/{of}ca/cacert.pem"))
    }

    /// What a switch shows, and by what it knows others, in the form of `ovs-vsctl set-ssl`.
    fn of_switch(&self, authority: &str) -> String {
        let (key, certificate) = (
            self.file("switch-privkey.pem"),
            self.file("switch-cert.pem"),
        );
        format!("{key} {certificate} {authority}")
    }

    /// The same in the form of options.
    fn options(&self, own: &str, of: &str) -> String {
        let (key, certificate) = (format!("{own}-privkey.pem"), format!("{own}-cert.pem"));
        format!(
            "-p {} -c {} -C {}",
            self.file(&key),
            self.file(&certificate),
            self.authority(of)
        )
    }
}

const IS_CONNECTED: &str = "--columns=is_connected --bare list Controller";

fn a_controller_by_tls_is_known_by_its_authority(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let keys = Keys::new(context)?;
    let _daemon = deployment.start_daemon()?;
    let words = format!(
        "ovs-testcontroller -O OpenFlow13 pssl:6653:127.0.0.1 {}",
        keys.options("ctl", "switch")
    );
    let _peer = context.spawner.start(deployment.program(&words))?;
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set-controller br0 ssl:127.0.0.1:6653"
    ))?;
    let problem = |part: &str| {
        context.wait_until(part, || {
            let told = deployment.vsctl("get Controller br0 status")?;
            Ok(told.contains("last_error=") && told.contains(part))
        })
    };
    // Without keys, with keys that are not there, and by the wrong authority: why is said.
    problem("TLS needs a private key")?;
    deployment.vsctl(&format!(
        "set-ssl {}",
        keys.of_switch("/nonexistent/ca.pem")
    ))?;
    problem("/nonexistent/ca.pem")?;
    let known = keys.file("known.pem");
    std::fs::copy(keys.authority("switch"), &known)?;
    deployment.vsctl(&format!("del-ssl -- set-ssl {}", keys.of_switch(&known)))?;
    problem("certificate")?;
    assert_eq!(deployment.vsctl(IS_CONNECTED)?, "false");
    // What a file holds is read anew, without a word.
    std::fs::copy(keys.authority("controller"), &known)?;
    deployment.wait_for_column(IS_CONNECTED, "true")?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    context.wait_until("no problem", || {
        Ok(!deployment
            .vsctl("get Controller br0 status")?
            .contains("last_error"))
    })?;
    Ok(())
}

fn a_peer_that_comes_by_tls_must_show_who_it_is(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let keys = Keys::new(context)?;
    let _daemon = deployment.start_daemon()?;
    let ssl = keys.of_switch(&keys.authority("controller"));
    deployment.vsctl(&format!(
        "set-ssl {ssl} -- {TWO_PORTS} -- set-controller br0 pssl:6654:127.0.0.1"
    ))?;
    let show = |options: &str| {
        let words = format!("ovs-ofctl {options} show ssl:127.0.0.1:6654");
        CommandOutput::run(context, deployment.program(&words))
    };
    let told = show(&keys.options("ctl", "switch"))?.expect_success()?;
    assert!(told.contains("(p1)"), "{told}");
    // A switch's certificate is none of a controller.
    show(&keys.options("switch", "switch"))?.expect_failure()?;
    let plain = deployment.program("ovs-ofctl --timeout=5 show tcp:127.0.0.1:6654");
    CommandOutput::run(context, plain)?.expect_failure()?;
    show(&keys.options("ctl", "switch"))?.expect_success()?;
    Ok(())
}

fn an_authority_is_learned_from_the_first_controller(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    let keys = Keys::new(context)?;
    let _daemon = deployment.start_daemon()?;
    let words = format!(
        "ovs-testcontroller -O OpenFlow13 pssl:6653:127.0.0.1 {} --peer-ca-cert={}",
        keys.options("ctl", "switch"),
        keys.authority("controller")
    );
    let _peer = context.spawner.start(deployment.program(&words))?;
    let learned = keys.file("learned.pem");
    let ssl = keys.of_switch(&learned);
    deployment.vsctl(&format!(
        "--bootstrap set-ssl {ssl} -- add-br br0 -- set-controller br0 ssl:127.0.0.1:6653"
    ))?;
    deployment.wait_for_column(IS_CONNECTED, "true")?;
    let body = |path: &str| {
        let text = std::fs::read_to_string(path).map_err(Failure::to("read a certificate"))?;
        let start = text.find("-----BEGIN").unwrap_or_default();
        Ok::<_, Failure>(text[start..].trim().to_owned())
    };
    assert_eq!(body(&learned)?, body(&keys.authority("controller"))?);
    Ok(())
}

fn a_database_is_met_by_tls(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let keys = Keys::new(context)?;
    deployment.kill_database()?;
    let options = format!(
        "--remote=pssl:6640:127.0.0.1 {}",
        keys.options("ctl", "switch")
    );
    deployment.start_database_with(&options)?;
    let daemon = deployment.start_daemon_with(&format!(
        "ssl:127.0.0.1:6640 {}",
        keys.options("switch", "controller")
    ))?;
    daemon.wait_for_log("INFO ready")?;
    deployment.vsctl(TWO_PORTS)?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    Ok(())
}

fn a_switch_without_a_database_goes_to_a_controller_by_tls(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let keys = Keys::new(context)?;
    let words = format!(
        "ovs-testcontroller -O OpenFlow13 pssl:6653:127.0.0.1 {}",
        keys.options("ctl", "switch")
    );
    let directory = context.directory();
    let controller = program(&words)
        .env("OVS_RUNDIR", directory)
        .inside(&network.switch_namespace);
    let _peer = context
        .spawner
        .start(controller.log(context.unique_path("peer.log")))?;
    let switch = network.start_switch(&format!(
        "--bridge br0 --port p1 --port p2 --controller ssl:127.0.0.1:6653 --fail-mode secure \
         --private-key {} --certificate {} --ca-cert {}",
        keys.file("switch-privkey.pem"),
        keys.file("switch-cert.pem"),
        keys.authority("controller")
    ))?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    assert!(switch.ofctl("dump-flows br0")?.contains("actions="));
    Ok(())
}
