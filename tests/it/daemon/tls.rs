//! TLS with real peers: `ovs-testcontroller`, `ovs-ofctl` and `ovsdb-server`, with keys from
//! `ovs-pki`.

use std::path::PathBuf;

use testbed::Failure;

use crate::support::command::{CommandOutput, program};
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    tls_controller_is_verified_by_its_authority,
    tls_listener_requires_a_controller_certificate,
    ca_certificate_is_bootstrapped_from_the_first_controller,
    database_connection_uses_tls,
    switch_without_a_database_connects_to_a_controller_by_tls,
];

/// Two certificate authorities, of controllers and of switches, and a key signed by each.
struct TlsKeys {
    directory: PathBuf,
}

impl TlsKeys {
    fn new(context: &TestContext) -> Result<Self, Failure> {
        let directory = context.directory().join("keys");
        std::fs::create_dir_all(&directory).map_err(Failure::to("create a directory"))?;
        let keys = Self { directory };
        for words in ["init", "req+sign switch switch", "req+sign ctl controller"] {
            let command = format!("ovs-pki --batch --dir=pki --log=pki.log {words}");
            let program = program(&command).directory(&keys.directory);
            CommandOutput::run_within(WAIT_LIMIT * 2, context, program)?.expect_success()?;
        }
        Ok(keys)
    }

    fn file(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    /// Path of an authority's certificate.
    fn authority(&self, kind: &str) -> String {
        self.file(&format!("pki/{kind}ca/cacert.pem"))
    }

    /// Arguments of `ovs-vsctl set-ssl` for a switch that trusts this authority.
    fn switch_arguments(&self, authority: &str) -> String {
        let (key, certificate) = (
            self.file("switch-privkey.pem"),
            self.file("switch-cert.pem"),
        );
        format!("{key} {certificate} {authority}")
    }

    /// Command line options for a program with this key, which trusts the authority of `peers`.
    fn options(&self, own: &str, peers: &str) -> String {
        let (key, certificate) = (format!("{own}-privkey.pem"), format!("{own}-cert.pem"));
        format!(
            "-p {} -c {} -C {}",
            self.file(&key),
            self.file(&certificate),
            self.authority(peers)
        )
    }
}

const IS_CONNECTED: &str = "--columns=is_connected --bare list Controller";

fn tls_controller_is_verified_by_its_authority(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let keys = TlsKeys::new(context)?;
    let _daemon = deployment.start_daemon()?;
    let words = format!(
        "ovs-testcontroller -O OpenFlow13 pssl:6653:127.0.0.1 {}",
        keys.options("ctl", "switch")
    );
    let _controller = context.spawner.start(deployment.program(&words))?;
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set-controller br0 ssl:127.0.0.1:6653"
    ))?;
    let wait_for_error = |part: &str| {
        context.wait_until(part, || {
            let status = deployment.vsctl("get Controller br0 status")?;
            Ok(status.contains("last_error=") && status.contains(part))
        })
    };
    // Errors name a missing key, an unreadable file, and an unknown authority.
    wait_for_error("TLS needs a private key")?;
    deployment.vsctl(&format!(
        "set-ssl {}",
        keys.switch_arguments("/nonexistent/ca.pem")
    ))?;
    wait_for_error("/nonexistent/ca.pem")?;
    let trusted = keys.file("known.pem");
    std::fs::copy(keys.authority("switch"), &trusted)?;
    deployment.vsctl(&format!(
        "del-ssl -- set-ssl {}",
        keys.switch_arguments(&trusted)
    ))?;
    wait_for_error("certificate")?;
    assert_eq!(deployment.vsctl(IS_CONNECTED)?, "false");
    // A changed file is read again automatically.
    std::fs::copy(keys.authority("controller"), &trusted)?;
    deployment.wait_for_column(IS_CONNECTED, "true")?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    context.wait_until("a status without an error", || {
        Ok(!deployment
            .vsctl("get Controller br0 status")?
            .contains("last_error"))
    })?;
    Ok(())
}

fn tls_listener_requires_a_controller_certificate(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let keys = TlsKeys::new(context)?;
    let _daemon = deployment.start_daemon()?;
    let ssl = keys.switch_arguments(&keys.authority("controller"));
    deployment.vsctl(&format!(
        "set-ssl {ssl} -- {TWO_PORTS} -- set-controller br0 pssl:6654:127.0.0.1"
    ))?;
    let show = |options: &str| {
        let words = format!("ovs-ofctl {options} show ssl:127.0.0.1:6654");
        CommandOutput::run(context, deployment.program(&words))
    };
    let output = show(&keys.options("ctl", "switch"))?.expect_success()?;
    assert!(output.contains("(p1)"), "{output}");
    // A switch's certificate does not authenticate a controller.
    show(&keys.options("switch", "switch"))?.expect_failure()?;
    let plain = deployment.program("ovs-ofctl --timeout=5 show tcp:127.0.0.1:6654");
    CommandOutput::run(context, plain)?.expect_failure()?;
    show(&keys.options("ctl", "switch"))?.expect_success()?;
    Ok(())
}

fn ca_certificate_is_bootstrapped_from_the_first_controller(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    let keys = TlsKeys::new(context)?;
    let _daemon = deployment.start_daemon()?;
    let words = format!(
        "ovs-testcontroller -O OpenFlow13 pssl:6653:127.0.0.1 {} --peer-ca-cert={}",
        keys.options("ctl", "switch"),
        keys.authority("controller")
    );
    let _controller = context.spawner.start(deployment.program(&words))?;
    let bootstrapped = keys.file("learned.pem");
    let ssl = keys.switch_arguments(&bootstrapped);
    deployment.vsctl(&format!(
        "--bootstrap set-ssl {ssl} -- add-br br0 -- set-controller br0 ssl:127.0.0.1:6653"
    ))?;
    deployment.wait_for_column(IS_CONNECTED, "true")?;
    let certificate = |path: &str| {
        let text = std::fs::read_to_string(path).map_err(Failure::to("read a certificate"))?;
        let start = text.find("-----BEGIN").unwrap_or_default();
        Ok::<_, Failure>(text[start..].trim().to_owned())
    };
    assert_eq!(
        certificate(&bootstrapped)?,
        certificate(&keys.authority("controller"))?
    );
    Ok(())
}

fn database_connection_uses_tls(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let keys = TlsKeys::new(context)?;
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

fn switch_without_a_database_connects_to_a_controller_by_tls(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let keys = TlsKeys::new(context)?;
    let words = format!(
        "ovs-testcontroller -O OpenFlow13 pssl:6653:127.0.0.1 {}",
        keys.options("ctl", "switch")
    );
    let directory = context.directory();
    let controller = program(&words)
        .env("OVS_RUNDIR", directory)
        .inside(&network.switch_namespace);
    let _controller = context
        .spawner
        .start(controller.log(context.unique_path("controller.log")))?;
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
