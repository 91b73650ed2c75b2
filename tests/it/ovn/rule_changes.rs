//! Changes of an access list under load.

use std::net::{SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use testbed::{Clock, Failure};

use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::host::TestHost;
use crate::support::ovn::{OvnCloud, OvnNetwork};

pub(crate) const TESTS: &[SystemTest] =
    tests![ovn_rule_changes_lose_no_packet_that_old_and_new_rules_permit,];

/// The UDP ports of the load, and of packets that a rule drops at times.
const PERMITTED: u16 = 5000;
const CHANGING: u16 = 7777;

/// The number of times that a rule is added and removed.
const CHANGES: u32 = 20;

/// The datagrams on their way at most: the queues between the hosts hold more.
const WINDOW: u32 = 64;

/// The interval of datagrams, and the number of those between two changes at least.
const INTERVAL: Duration = Duration::from_micros(500);
const BETWEEN: u32 = 20;

/// Numbered UDP datagrams from one host to another.
struct DatagramStream {
    clock: Clock,
    sender: UdpSocket,
    receiver: UdpSocket,
    to: SocketAddrV4,
    sent: AtomicU32,
}

impl DatagramStream {
    fn open(from: &TestHost<'_>, to: &TestHost<'_>, port: u16) -> Result<Self, Failure> {
        let bind = |host: &TestHost<'_>, port| {
            let address = SocketAddrV4::new(host.address, port);
            let socket = host.namespace.run(|| UdpSocket::bind(address))?;
            let socket = socket.map_err(Failure::to("open a UDP socket"))?;
            let failure = Failure::to("configure a UDP socket");
            socket.set_nonblocking(true).map_err(failure)?;
            Ok::<_, Failure>(socket)
        };
        Ok(Self {
            clock: Clock::start(),
            sender: bind(from, 0)?,
            receiver: bind(to, port)?,
            to: SocketAddrV4::new(to.address, port),
            sent: AtomicU32::new(0),
        })
    }

    /// Sends the next datagram; returns its number.
    fn send(&self) -> Result<u32, Failure> {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        self.sender
            .send_to(&number.to_be_bytes(), self.to)
            .map_err(Failure::to("send a datagram"))?;
        Ok(number)
    }

    /// Returns the number of the next datagram that has arrived.
    fn receive(&self) -> Option<u32> {
        let mut number = [0; 4];
        let length = self.receiver.recv(&mut number).ok()?;
        (length == number.len()).then_some(u32::from_be_bytes(number))
    }

    /// Waits for the next datagram.
    fn wait(&self) -> Result<u32, Failure> {
        let what = format!("a datagram at {}", self.to);
        self.clock
            .wait_for(&what, WAIT_LIMIT, || Ok(self.receive()))
    }

    /// Sends datagrams until `is_over`, and asserts that all arrive in their order.
    fn expect_no_loss(&self, is_over: &AtomicBool) -> Result<(), Failure> {
        let mut expected = 0;
        while !is_over.load(Ordering::Relaxed) {
            let number = self.send()?;
            self.clock.sleep_until(self.clock.now() + INTERVAL);
            while let Some(arrived) = self.receive() {
                assert_eq!(arrived, expected, "a datagram is lost");
                expected += 1;
            }
            if number + 1 - expected == WINDOW {
                assert_eq!(self.wait()?, expected, "a datagram is lost");
                expected += 1;
            }
        }
        while expected < self.sent.load(Ordering::Relaxed) {
            assert_eq!(self.wait()?, expected, "a datagram is lost");
            expected += 1;
        }
        Ok(())
    }
}

/// Adds and removes a rule, with datagrams of `load` before each change. Returns the numbers of the
/// datagrams of `changing` that were sent without the rule, which drops it, and of those that
/// arrived.
fn change_rules(
    context: &TestContext,
    cloud: &OvnCloud<'_, '_>,
    load: &DatagramStream,
    changing: &DatagramStream,
) -> Result<[Vec<u32>; 2], Failure> {
    let (mut permitted, mut arrived) = (Vec::new(), Vec::new());
    let rule = format!("to-lport 2000 'outport == \"p2\" && udp.dst == {CHANGING}'");
    for _ in 0..CHANGES {
        for command in [
            format!("--wait=hv acl-add sw0 {rule} drop"),
            format!("--wait=hv acl-del sw0 {rule}"),
        ] {
            let sent = load.sent.load(Ordering::Relaxed);
            context.wait_until("datagrams between two changes", || {
                Ok(load.sent.load(Ordering::Relaxed) >= sent + BETWEEN)
            })?;
            cloud.nbctl(&command)?;
            let number = changing.send()?;
            if command.contains("acl-del") {
                permitted.push(number);
                // The datagram before this one, if it was not dropped, arrives first.
                arrived.push(changing.wait()?);
            }
        }
    }
    Ok([permitted, arrived])
}

fn ovn_rule_changes_lose_no_packet_that_old_and_new_rules_permit(
    context: &TestContext,
) -> TestResult {
    let network = OvnNetwork::new(context, &[&[1], &[2]])?;
    let deployments = network.deploy()?;
    let cloud = OvnCloud::start(&network, &deployments)?;
    cloud.add_switch("sw0")?;
    cloud.add_hosts("sw0", &[1, 2])?;
    cloud.nbctl(
        "acl-add sw0 to-lport 1001 'outport == \"p2\" && (udp || icmp4)' allow-related \
         -- acl-add sw0 to-lport 1000 'outport == \"p2\" && ip4' drop",
    )?;
    cloud.sync()?;
    let (one, two) = (network.host(1), network.host(2));
    one.ping_until_reply(two.address)?;
    let load = DatagramStream::open(one, two, PERMITTED)?;
    let changing = DatagramStream::open(one, two, CHANGING)?;
    let is_over = AtomicBool::new(false);
    let [permitted, arrived] = thread::scope(|scope| {
        let running = scope.spawn(|| load.expect_no_loss(&is_over));
        let changed = change_rules(context, &cloud, &load, &changing);
        is_over.store(true, Ordering::Relaxed);
        running.join().expect("all datagrams arrive")?;
        changed
    })?;
    assert_eq!(arrived, permitted);
    cloud.expect_clean_run();
    Ok(())
}
