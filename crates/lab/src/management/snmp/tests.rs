//! Tests with a real agent (snmpd of Net-SNMP), and with peers that are not agents.

use std::fs;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use testbed::{Clock, Process, Program, Requirement, Spawner};

use super::*;
use crate::management::Poller;

/// Address of the agent in its namespace.
const ADDRESS: &str = "127.0.0.1:1161";

/// Time limit for the agent's start and for its scan of interfaces, which it repeats every fifteen
/// seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Agent that serves the interfaces `p1` and `p2`.
struct Daemon {
    inside: Namespace,
    far: Namespace,
    directory: PathBuf,
    clock: Clock,
    _process: Process,
}

impl Daemon {
    /// Starts an agent with `more` in its configuration. Returns `None` without root; with root, a
    /// missing agent is an error.
    fn start(name: &str, more: &str) -> Option<Self> {
        let needed = [
            Requirement::Namespaces,
            Requirement::Veth,
            Requirement::Program {
                program: "snmpd",
                package: "snmpd",
            },
        ];
        let checked = testbed::check(&needed);
        if !rustix::process::geteuid().is_root() {
            println!("skipped: {checked:?}");
            return None;
        }
        checked.unwrap();
        let directory = format!("snmpd-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        fs::create_dir_all(&directory).unwrap();
        let [inside, far] = [(); 2].map(|()| Namespace::new().unwrap());
        for port in ["p1", "p2"] {
            inside.join(port, &far, port).unwrap();
            inside.set_up(port).unwrap();
            far.set_up(port).unwrap();
        }
        let shown = directory.display();
        let configuration = format!(
            "agentaddress udp:{ADDRESS}\nrocommunity secret\n{}\n",
            more.replace("DIRECTORY", &shown.to_string())
        );
        let file = directory.join("snmpd.conf");
        fs::write(&file, configuration).unwrap();
        let program = Program::new("snmpd")
            .args(["-f", "-r", "-Lo", "-C", "-c"])
            .arg(&file)
            .arg("-p")
            .arg(directory.join("pid"))
            .env("SNMP_PERSISTENT_DIR", &directory)
            .env("MIBS", "")
            .log(directory.join("snmpd.log"))
            .inside(&inside);
        let process = Spawner::new().unwrap().start(program).unwrap();
        let daemon = Self {
            inside,
            far,
            directory,
            clock: Clock::start(),
            _process: process,
        };
        daemon
            .clock
            .wait_for("the agent", TIMEOUT, || {
                Ok(daemon
                    .session(&[])
                    .and_then(|mut snmp| snmp.description())
                    .ok())
            })
            .unwrap();
        Some(daemon)
    }

    fn agent(&self, community: &str, interfaces: &[&str]) -> Agent {
        let path = format!("/proc/self/fd/{}", self.inside.as_fd().as_raw_fd());
        Agent {
            address: ADDRESS.parse().unwrap(),
            community: community.to_owned(),
            interfaces: interfaces.iter().map(ToString::to_string).collect(),
            namespace: Some(path.into()),
        }
    }

    fn session(&self, interfaces: &[&str]) -> Result<Snmp, SnmpError> {
        Snmp::open(&self.agent("secret", interfaces), Duration::from_secs(2))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn snmp_agent_reports_description_and_frame_counts() {
    let Some(daemon) = Daemon::start("counts", "") else {
        return;
    };
    let mut snmp = daemon.session(&["p2", "p1"]).unwrap();
    assert!(snmp.description().unwrap().starts_with("Linux"));
    let before = snmp.sample().unwrap();
    let [p2, p1] = before.interfaces[..] else {
        panic!("{before:?}");
    };
    assert_eq!(p1.in_octets.width, Width::Bits64);
    let sender = daemon.far.raw_sender("p1").unwrap();
    for _ in 0..50 {
        let frame = [[0x02; 6], [0x02; 6]].concat();
        let frame = [&frame[..], &[0x88, 0xb5], &[0; 46]].concat();
        assert_eq!(sender.send(&[frame]).unwrap(), 1);
    }
    let passed = daemon.clock.wait_for("the counters", TIMEOUT, || {
        let after = snmp.sample().unwrap();
        assert!(after.up_time >= before.up_time);
        assert_eq!(after.interfaces[0].frames_since(&p2), Some((0, 0)));
        let passed = after.interfaces[1].frames_since(&p1).unwrap();
        Ok((passed.0 > 0).then_some(passed))
    });
    assert_eq!(passed.unwrap(), (50, 0));
}

#[test]
fn wrong_community_or_interface_is_reported() {
    let Some(daemon) = Daemon::start("refused", "") else {
        return;
    };
    let limit = Duration::from_millis(100);
    let wrong = Snmp::open(&daemon.agent("public", &["p1"]), limit).err();
    assert_eq!(wrong, Some(SnmpError::Silent));
    let missing = daemon.session(&["p1", "p7"]).err().unwrap();
    assert_eq!(
        missing.to_string(),
        "the switch has no SNMP object for an interface 'p7'"
    );
    let agent = daemon.agent("public", &[]);
    let times = [Duration::from_millis(50), limit];
    let poller = Poller::start_as(agent, None, times, &daemon.clock).unwrap();
    let polls = poller.stop();
    assert!(
        polls.unanswered >= 1 && polls.switch.is_empty(),
        "{polls:?}"
    );
    assert_eq!(polls.description, None);
    assert!(polls.reason.unwrap().contains("the community"));
}

/// Agent whose first interface has an octet counter that wraps at 64 bits. snmpd takes its values
/// from a script, which returns another value at the second call.
#[test]
fn counter_of_a_real_agent_may_wrap() {
    let script = "#!/bin/sh\n\
        [ \"$1\" = -g ] || exit 0\n\
        echo \"$2\"; echo counter64\n\
        if [ -e DIRECTORY/asked ]; then echo 7; else echo 18446744073709551600; fi\n";
    // Row of `p1`: the second interface of its namespace, after the loopback interface.
    let row = "1.3.6.1.2.1.31.1.1.1.6.2";
    let more = format!("pass -p 1 .{row} /bin/sh DIRECTORY/octets");
    let Some(daemon) = Daemon::start("wraps", &more) else {
        return;
    };
    let shown = daemon.directory.display().to_string();
    let script = script.replace("DIRECTORY", &shown);
    fs::write(daemon.directory.join("octets"), script).unwrap();
    let mut snmp = daemon.session(&["p1"]).unwrap();
    let before = snmp.sample().unwrap().interfaces[0];
    assert_eq!(before.in_octets.value, 18_446_744_073_709_551_600);
    fs::write(daemon.directory.join("asked"), "").unwrap();
    // The agent caches the value of a script for half a minute.
    let passed = daemon.clock.wait_for("another answer", TIMEOUT, || {
        let after = snmp.sample().unwrap().interfaces[0].in_octets;
        let passed = after.since(before.in_octets);
        Ok(passed.filter(|passed| *passed > 0))
    });
    assert_eq!(passed.unwrap(), 16 + 7);
}

/// Peer that sends `reply` to every request until the address is no longer used.
fn impostor(reply: &'static [u8], limit: Duration) -> Agent {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    socket.set_read_timeout(Some(limit)).unwrap();
    std::thread::spawn(move || {
        let mut room = [0; 1_500];
        while let Ok((_, peer)) = socket.recv_from(&mut room) {
            if !reply.is_empty() {
                let _ = socket.send_to(reply, peer);
            }
        }
    });
    Agent {
        address,
        community: "secret".to_owned(),
        interfaces: vec!["p1".to_owned()],
        namespace: None,
    }
}

#[test]
fn missing_and_malformed_replies_are_distinguished() {
    let limit = Duration::from_millis(50);
    let hold = Duration::from_secs(5);
    let silent = Snmp::open(&impostor(b"", hold), limit).err();
    assert_eq!(silent, Some(SnmpError::Silent));
    for nonsense in [
        &b"hello"[..],
        &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
        &[0; 1_400],
    ] {
        let error = Snmp::open(&impostor(nonsense, hold), limit).err();
        assert!(matches!(error, Some(SnmpError::Senseless(_))), "{error:?}");
    }
    let closed = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let absent = Agent {
        address: closed,
        ..impostor(b"", limit)
    };
    assert_eq!(Snmp::open(&absent, limit).err(), Some(SnmpError::Silent));
}
