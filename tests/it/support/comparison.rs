//! Comporta and Open vSwitch with equal networks and equal configuration, for tests that compare
//! their forwarding.

use packet::build::Stack;
use testbed::{Failure, Process};

use crate::support::context::{TestContext, TestError};
use crate::support::deployment::{Deployment, VswitchdProcess};
use crate::support::frames::encode_frames;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::{appctl, start_ovs_vswitchd};

/// Number of hosts of each network, if a test needs no other number.
const HOSTS: u8 = 4;

/// Source address of the tests' frames, as the beginning of its text. Hosts send frames of their
/// own, which are ignored.
const TEST_SOURCE: &str = "src=02:00:00:00:01:";

/// Frame that ends a round: a rule floods it, after all frames sent before it.
const END_OF_ROUND: &str = "eth(dst=02:00:00:00:02:ff,src=02:00:00:00:02:fe,type=0x88b6)/data(50)";

/// Rule that floods [`END_OF_ROUND`].
const END_OF_ROUND_RULE: &str = "table=0,priority=65535,dl_type=0x88b6,actions=all";

/// Two equal networks, one for each switch.
pub(crate) struct NetworkPair<'g> {
    pub(crate) comporta: TestNetwork<'g>,
    pub(crate) ovs: TestNetwork<'g>,
}

impl<'g> NetworkPair<'g> {
    /// Creates two networks with four hosts each.
    pub(crate) fn new(context: &'g TestContext) -> Result<Self, Failure> {
        Self::with_hosts(context, HOSTS)
    }

    /// Creates two networks with `count` hosts each.
    pub(crate) fn with_hosts(context: &'g TestContext, count: u8) -> Result<Self, Failure> {
        Ok(Self {
            comporta: TestNetwork::new(context, count)?,
            ovs: TestNetwork::new(context, count)?,
        })
    }

    /// Connects the switches' namespaces by veth pairs, with these interface names on both sides.
    pub(crate) fn connect(&self, cables: &[&str]) -> Result<(), Failure> {
        let (comporta, ovs) = (&self.comporta.switch_namespace, &self.ovs.switch_namespace);
        for cable in cables {
            comporta.join(cable, ovs, cable)?;
            comporta.set_up(cable)?;
            ovs.set_up(cable)?;
        }
        Ok(())
    }

    /// Creates a deployment in each network: Comporta's, then Open vSwitch's.
    pub(crate) fn deploy(&self) -> Result<[Deployment<'_, 'g>; 2], TestError> {
        Ok([
            Deployment::in_directory(&self.comporta, "comporta")?,
            Deployment::in_directory(&self.ovs, "ovs")?,
        ])
    }
}

/// Comporta and Open vSwitch, both running.
pub(crate) struct SideBySide<'s, 'g> {
    comporta: &'s Deployment<'s, 'g>,
    ovs: &'s Deployment<'s, 'g>,
    _daemon: VswitchdProcess<'s, 'g>,
    _ovs_vswitchd: Process,
}

impl<'s, 'g> SideBySide<'s, 'g> {
    /// Starts both, each with a bridge `br0` on which host `n` is at port `n`.
    pub(crate) fn start(
        comporta: &'s Deployment<'s, 'g>,
        ovs: &'s Deployment<'s, 'g>,
    ) -> Result<Self, Failure> {
        let (_daemon, _ovs_vswitchd) = (comporta.start_daemon()?, start_ovs_vswitchd(ovs, "")?);
        let both = Self {
            comporta,
            ovs,
            _daemon,
            _ovs_vswitchd,
        };
        both.vsctl("add-br br0 -- set Bridge br0 datapath_type=netdev")?;
        for number in 1..=HOSTS {
            both.vsctl(&format!(
                "add-port br0 p{number} -- set Interface p{number} ofport_request={number}"
            ))?;
        }
        for deployment in both.deployments() {
            deployment.run_tool(&format!("ovs-ofctl add-flow br0 {END_OF_ROUND_RULE}"))?;
        }
        Ok(both)
    }

    /// Comporta's deployment, then Open vSwitch's.
    pub(crate) const fn deployments(&self) -> [&'s Deployment<'s, 'g>; 2] {
        [self.comporta, self.ovs]
    }

    /// Runs the same `ovs-vsctl` command for both.
    pub(crate) fn vsctl(&self, words: &str) -> Result<(), Failure> {
        self.deployments()
            .iter()
            .try_for_each(|deployment| deployment.vsctl(words).map(drop))
    }

    /// Runs the same `ovs-appctl` command for both, asserts equal replies, and returns the reply.
    #[track_caller]
    pub(crate) fn appctl(&self, words: &str) -> Result<String, Failure> {
        let (comporta, ovs) = (appctl(self.comporta, words)?, appctl(self.ovs, words)?);
        assert_eq!(comporta, ovs, "{words}");
        Ok(comporta)
    }

    /// Sends `stacks` from host `from`, asserts that both switches deliver the same, and returns
    /// the delivered frames as [`deliver`] does.
    #[track_caller]
    pub(crate) fn deliver(&self, from: usize, stacks: &[&str]) -> Result<Vec<String>, Failure> {
        self.deliver_bytes(from, &encode_frames(stacks))
    }

    /// Sends encoded frames from host `from`, asserts that both switches deliver the same, and
    /// returns the delivered frames as [`deliver`] does.
    #[track_caller]
    pub(crate) fn deliver_bytes(
        &self,
        from: usize,
        frames: &[Vec<u8>],
    ) -> Result<Vec<String>, Failure> {
        let [comporta, ovs] = self
            .deployments()
            .map(|deployment| deliver(deployment.network, from, frames));
        let (comporta, ovs) = (comporta?, ovs?);
        assert_eq!(comporta, ovs, "Comporta's frames and Open vSwitch's");
        Ok(comporta)
    }

    /// Sends one frame from host `from`, asserts that both switches deliver the same, and returns
    /// the numbers of the hosts that receive it.
    #[track_caller]
    pub(crate) fn receivers(&self, from: usize, stack: &str) -> Result<Vec<u8>, Failure> {
        let lines = self.deliver(from, &[stack])?;
        let number = |line: String| line.as_bytes()[0] - b'0';
        Ok(lines.into_iter().map(number).collect())
    }
}

/// Sends frames from host `from`, and returns a sorted line for each frame that another host
/// receives: the number of the host and the frame.
pub(crate) fn deliver(
    network: &TestNetwork<'_>,
    from: usize,
    frames: &[Vec<u8>],
) -> Result<Vec<String>, Failure> {
    let others = (1..=usize::from(HOSTS)).filter(|number| *number != from);
    let captures = others.map(|number| Ok((number, network.host(number).capture_frames()?)));
    let captures: Vec<_> = captures.collect::<Result<_, Failure>>()?;
    network.host(from).send_bytes(frames)?;
    network.host(from).send(&[END_OF_ROUND])?;
    let mut lines = Vec::new();
    for (number, mut capture) in captures {
        loop {
            let frame = capture.next_frame()?;
            let frame = Stack::dissect(&frame).to_string();
            if frame.contains("type=0x88b6") {
                break;
            }
            if frame.contains(TEST_SOURCE) {
                lines.push(format!("{number} {frame}"));
            }
        }
    }
    // Open vSwitch groups the frames of a batch by flow, which changes their order.
    lines.sort();
    Ok(lines)
}
