//! TLS with real peers: `ovs-testcontroller`, `ovs-ofctl` and `ovsdb-server`, by keys that
//! `ovs-pki` made.

use std::path::PathBuf;

use testbed::Failure;

use crate::ground::{Ground, Outcome, PATIENCE, Rule, rules};
use crate::rig::{Ran, Rig, program};
use crate::site::{Site, TWO};

pub(crate) const RULES: &[Rule] = rules![
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
    fn new(ground: &Ground) -> Result<Self, Failure> {
        let directory = ground.directory().join("keys");
        std::fs::create_dir_all(&directory).map_err(Failure::to("make a directory"))?;
        let keys = Self { directory };
        for words in ["init", "req+sign switch switch", "req+sign ctl controller"] {
            let told = format!("ovs-pki --batch --dir=pki --log=pki.log {words}");
            let made = program(&told).directory(&keys.directory);
            Ran::within(PATIENCE * 2, ground, made)?.good()?;
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

fn a_controller_by_tls_is_known_by_its_authority(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let keys = Keys::new(ground)?;
    let _daemon = site.daemon()?;
    let words = format!(
        "ovs-testcontroller -O OpenFlow13 pssl:6653:127.0.0.1 {}",
        keys.options("ctl", "switch")
    );
    let _peer = ground.spawner.start(site.program(&words))?;
    site.vsctl(&format!("{TWO} -- set-controller br0 ssl:127.0.0.1:6653"))?;
    let problem = |part: &str| {
        ground.wait_until(part, || {
            let told = site.vsctl("get Controller br0 status")?;
            Ok(told.contains("last_error=") && told.contains(part))
        })
    };
    // Without keys, with keys that are not there, and by the wrong authority: why is said.
    problem("TLS needs a private key")?;
    site.vsctl(&format!(
        "set-ssl {}",
        keys.of_switch("/nonexistent/ca.pem")
    ))?;
    problem("/nonexistent/ca.pem")?;
    let known = keys.file("known.pem");
    std::fs::copy(keys.authority("switch"), &known)?;
    site.vsctl(&format!("del-ssl -- set-ssl {}", keys.of_switch(&known)))?;
    problem("certificate")?;
    assert_eq!(site.vsctl(IS_CONNECTED)?, "false");
    // What a file holds is read anew, without a word.
    std::fs::copy(keys.authority("controller"), &known)?;
    site.wait_for_column(IS_CONNECTED, "true")?;
    let (one, two) = rig.pair();
    one.reach(two.address)?;
    ground.wait_until("no problem", || {
        Ok(!site
            .vsctl("get Controller br0 status")?
            .contains("last_error"))
    })?;
    Ok(())
}

fn a_peer_that_comes_by_tls_must_show_who_it_is(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let keys = Keys::new(ground)?;
    let _daemon = site.daemon()?;
    let ssl = keys.of_switch(&keys.authority("controller"));
    site.vsctl(&format!(
        "set-ssl {ssl} -- {TWO} -- set-controller br0 pssl:6654:127.0.0.1"
    ))?;
    let show = |options: &str| {
        let words = format!("ovs-ofctl {options} show ssl:127.0.0.1:6654");
        Ran::of(ground, site.program(&words))
    };
    let told = show(&keys.options("ctl", "switch"))?.good()?;
    assert!(told.contains("(p1)"), "{told}");
    // A switch's certificate is none of a controller.
    show(&keys.options("switch", "switch"))?.bad()?;
    let plain = site.program("ovs-ofctl --timeout=5 show tcp:127.0.0.1:6654");
    Ran::of(ground, plain)?.bad()?;
    show(&keys.options("ctl", "switch"))?.good()?;
    Ok(())
}

fn an_authority_is_learned_from_the_first_controller(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let site = Site::new(&rig)?;
    let keys = Keys::new(ground)?;
    let _daemon = site.daemon()?;
    let words = format!(
        "ovs-testcontroller -O OpenFlow13 pssl:6653:127.0.0.1 {} --peer-ca-cert={}",
        keys.options("ctl", "switch"),
        keys.authority("controller")
    );
    let _peer = ground.spawner.start(site.program(&words))?;
    let learned = keys.file("learned.pem");
    let ssl = keys.of_switch(&learned);
    site.vsctl(&format!(
        "--bootstrap set-ssl {ssl} -- add-br br0 -- set-controller br0 ssl:127.0.0.1:6653"
    ))?;
    site.wait_for_column(IS_CONNECTED, "true")?;
    let body = |path: &str| {
        let text = std::fs::read_to_string(path).map_err(Failure::to("read a certificate"))?;
        let start = text.find("-----BEGIN").unwrap_or_default();
        Ok::<_, Failure>(text[start..].trim().to_owned())
    };
    assert_eq!(body(&learned)?, body(&keys.authority("controller"))?);
    Ok(())
}

fn a_database_is_met_by_tls(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let keys = Keys::new(ground)?;
    site.kill_database()?;
    let options = format!(
        "--remote=pssl:6640:127.0.0.1 {}",
        keys.options("ctl", "switch")
    );
    site.start_database_with(&options)?;
    let daemon = site.daemon_with(&format!(
        "ssl:127.0.0.1:6640 {}",
        keys.options("switch", "controller")
    ))?;
    daemon.says("INFO ready")?;
    site.vsctl(TWO)?;
    rig.host(1).reach(rig.host(2).address)?;
    Ok(())
}

fn a_switch_without_a_database_goes_to_a_controller_by_tls(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let keys = Keys::new(ground)?;
    let words = format!(
        "ovs-testcontroller -O OpenFlow13 pssl:6653:127.0.0.1 {}",
        keys.options("ctl", "switch")
    );
    let directory = ground.directory();
    let peer = program(&words)
        .env("OVS_RUNDIR", directory)
        .inside(&rig.home);
    let _peer = ground.spawner.start(peer.log(ground.file("peer.log")))?;
    let switch = rig.start(&format!(
        "--bridge br0 --port p1 --port p2 --controller ssl:127.0.0.1:6653 --fail-mode secure \
         --private-key {} --certificate {} --ca-cert {}",
        keys.file("switch-privkey.pem"),
        keys.file("switch-cert.pem"),
        keys.authority("controller")
    ))?;
    rig.host(1).reach(rig.host(2).address)?;
    assert!(switch.ofctl("dump-flows br0")?.contains("actions="));
    Ok(())
}
