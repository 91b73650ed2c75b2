//! Mirrors configured in the database: the copies that a mirror's output receives, and the frames
//! that other ports still receive, compared with Open vSwitch.

use std::collections::BTreeMap;

use testbed::{Failure, Requirement};

use crate::support::command::program;
use crate::support::comparison::NetworkPair;
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::Deployment;
use crate::support::frames::FrameCapture;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::start_ovs_vswitchd;

pub(crate) const TESTS: &[SystemTest] = tests![
    mirrors_copy_the_frames_that_open_vswitch_copies,
    mirror_statistics_count_copies_and_errors_are_reported,
    frames_are_not_lost_while_mirrors_change,
    mirrors_select_and_output_to_patch_ports_and_tunnels,
    ovs_tcpdump_captures_a_port_and_cleans_up,
];

/// Arguments of `ovs-vsctl` for four ports, and a mirror to the third that selects nothing yet.
const FOUR_PORTS: &str = "add-br br0 -- set Bridge br0 datapath_type=netdev \
    -- add-port br0 p1 -- set Interface p1 ofport_request=1 \
    -- add-port br0 p2 -- set Interface p2 ofport_request=2 \
    -- add-port br0 p3 -- set Interface p3 ofport_request=3 \
    -- add-port br0 p4 -- set Interface p4 ofport_request=4 \
    -- --id=@p get Port p3 -- --id=@m create Mirror name=m output_port=@p \
    -- set Bridge br0 mirrors=@m";

/// First bytes of the senders' addresses: other frames, which hosts send on their own, are ignored.
const SENDERS: [u8; 5] = [2, 0, 0, 0, 0x0c];

/// Configuration and rules of a mirror test.
struct MirrorCase {
    name: &'static str,
    vsctl: &'static str,
    /// Rules that replace all others.
    flows: &'static [&'static str],
}

const NORMAL: &[&str] = &["actions=NORMAL"];

const CASES: [MirrorCase; 13] = [
    MirrorCase {
        name: "frames from a port",
        vsctl: "set Mirror m select_src_port=@p1",
        flows: NORMAL,
    },
    MirrorCase {
        name: "frames to a port",
        vsctl: "clear Mirror m select_src_port -- set Mirror m select_dst_port=@p2",
        flows: NORMAL,
    },
    MirrorCase {
        name: "frames from and to ports",
        vsctl: "set Mirror m select_src_port=@p1 select_dst_port=@p1,@p2",
        flows: NORMAL,
    },
    MirrorCase {
        name: "all frames",
        vsctl: "clear Mirror m select_src_port -- clear Mirror m select_dst_port \
            -- set Mirror m select_all=true",
        flows: NORMAL,
    },
    MirrorCase {
        name: "frames of a VLAN",
        vsctl: "set Mirror m select_vlan=10",
        flows: NORMAL,
    },
    MirrorCase {
        name: "frames of access ports in the VLAN",
        vsctl: "set Port p1 tag=10 -- set Port p2 tag=10",
        flows: NORMAL,
    },
    MirrorCase {
        name: "truncated copies to an access port",
        vsctl: "clear Mirror m select_vlan -- set Port p3 tag=30 -- set Mirror m snaplen=100",
        flows: NORMAL,
    },
    MirrorCase {
        name: "copies into a VLAN",
        vsctl: "clear Mirror m output_port -- clear Mirror m snaplen -- set Port p3 tag=20 \
            -- set Mirror m output_vlan=20",
        flows: NORMAL,
    },
    MirrorCase {
        name: "copies into the VLAN of the frames",
        vsctl: "clear Mirror m output_vlan -- set Mirror m output_vlan=10 snaplen=200 \
            -- set Port p3 tag=10",
        flows: NORMAL,
    },
    MirrorCase {
        name: "frames of rules",
        vsctl: "clear Port p1 tag -- clear Port p2 tag -- clear Port p3 tag \
            -- clear Mirror m output_vlan -- clear Mirror m snaplen \
            -- set Mirror m output_port=@p3",
        flows: &[
            "in_port=1,actions=output:2",
            "in_port=2,actions=mod_vlan_vid:7,output:1,output:4",
            "in_port=4,actions=output:1,mod_vlan_vid:9,output:2",
        ],
    },
    MirrorCase {
        name: "frames that rules modify, at egress",
        vsctl: "set Mirror m select_all=false select_dst_port=@p1,@p4",
        flows: &[
            "in_port=1,actions=output:2",
            "in_port=2,actions=mod_vlan_vid:7,output:1,output:4",
            "in_port=4,actions=output:2,mod_vlan_vid:9,output:1",
        ],
    },
    MirrorCase {
        name: "frames that rules drop",
        vsctl: "clear Mirror m select_dst_port -- set Mirror m select_src_port=@p1,@p4",
        flows: &[
            "priority=9,in_port=1,dl_vlan=30,actions=drop",
            "priority=8,in_port=1,actions=output:2,output:4",
            "in_port=2,actions=output:1",
            "in_port=4,actions=flood",
        ],
    },
    MirrorCase {
        name: "two mirrors, one of them into a VLAN",
        vsctl: "--id=@n create Mirror name=n select_dst_port=@p2 output_vlan=40 \
            -- add Bridge br0 mirrors @n",
        flows: NORMAL,
    },
];

/// A frame from station `sender`, with a tag of VLAN `vid` unless it is 0, and with `length` bytes
/// of payload.
fn frame(sender: u8, dst: [u8; 6], vid: u8, length: usize) -> Vec<u8> {
    let tag: &[u8] = if vid == 0 { &[] } else { &[0x81, 0, 0, vid] };
    let mut frame = [&dst[..], &SENDERS, &[sender], tag, &[0x88, 0xb5]].concat();
    frame.extend((0..length).map(|index| index.to_le_bytes()[0]));
    frame
}

const BROADCAST: [u8; 6] = [0xff; 6];

fn station_address(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0x0c, number]
}

/// A switch, and captures behind its ports.
struct MirrorTest<'s, 'r, 'g> {
    deployment: &'s Deployment<'r, 'g>,
    captures: Vec<FrameCapture<'g>>,
    /// Frames that each capture received.
    received: Vec<Vec<Vec<u8>>>,
}

impl<'s, 'r, 'g> MirrorTest<'s, 'r, 'g> {
    fn new(deployment: &'s Deployment<'r, 'g>) -> Result<Self, Failure> {
        let captures = deployment
            .network
            .hosts
            .iter()
            .map(|host| host.capture_frames());
        let captures = captures.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            deployment,
            received: vec![Vec::new(); captures.len()],
            captures,
        })
    }

    /// Records the frames at host `number` until `is_last` returns true.
    fn record_until(
        &mut self,
        number: usize,
        is_last: impl Fn(&[u8]) -> bool,
    ) -> Result<(), Failure> {
        loop {
            let frame = self.captures[number - 1].next_frame()?;
            let is_test_frame = frame.bytes().get(6..11) == Some(&SENDERS);
            if is_test_frame {
                self.received[number - 1].push(frame.bytes().to_vec());
            }
            if is_test_frame && is_last(frame.bytes()) {
                return Ok(());
            }
        }
    }

    /// Sends frames from a host, and waits until the last of them, a broadcast, arrives at host
    /// `to`.
    fn send(&mut self, from: usize, frames: &[Vec<u8>], to: usize) -> Result<(), Failure> {
        self.deployment.network.host(from).send_bytes(frames)?;
        let last = frames.last().cloned().unwrap_or_default();
        let last = last[last.len() - 50..].to_vec();
        self.record_until(to, |bytes| bytes.ends_with(&last))
    }

    fn run_tool(&self, words: &str) -> Result<String, Failure> {
        self.deployment.run_tool(words)
    }

    /// Configures a case, sends frames, and returns the count of each frame at each host.
    fn run_case(
        &mut self,
        case: &MirrorCase,
        last: u8,
    ) -> Result<Vec<BTreeMap<String, usize>>, Failure> {
        self.deployment
            .vsctl(&format!("{PORTS} -- {}", case.vsctl))?;
        self.run_tool("ovs-ofctl del-flows br0")?;
        for flow in case.flows {
            self.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
        }
        for words in ["fdb/flush br0", "revalidator/wait", "dpctl/del-flows"] {
            self.run_tool(&format!("ovs-appctl {words}"))?;
        }
        self.received.iter_mut().for_each(Vec::clear);
        // The switch learns the addresses of hosts 2 and 4; the frames of host 4 are in VLAN 10.
        self.send(2, &[frame(2, BROADCAST, 0, 51)], 1)?;
        self.send(
            4,
            &[
                frame(4, station_address(2), 10, 52),
                frame(4, BROADCAST, 10, 54),
            ],
            1,
        )?;
        if case.flows == NORMAL {
            self.deployment
                .network
                .context
                .wait_until("the stations' addresses", || {
                    let entries = self.run_tool("ovs-appctl fdb/show br0")?;
                    let is_learned =
                        |number| entries.contains(&format!("02:00:00:00:0c:0{number}"));
                    Ok(is_learned(2) && is_learned(4))
                })?;
        }
        let one = [
            frame(1, station_address(2), 0, 61),
            frame(1, station_address(4), 10, 62),
            frame(1, BROADCAST, 30, 63),
            frame(1, [0x01, 0x80, 0xc2, 0, 0, 0x0e], 0, 64),
            frame(1, [0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcd], 0, 65),
            frame(1, [0x33, 0x33, 0, 0, 0, 1], 20, 66),
            frame(1, station_address(2), 0, 1000),
            frame(1, BROADCAST, 0, 68),
        ];
        self.send(1, &one, 2)?;
        // Frames by the mirror's output port are dropped.
        let before = self.received_packets(3)?;
        self.deployment
            .network
            .host(3)
            .send_bytes(&[frame(3, station_address(1), 0, 71)])?;
        self.deployment
            .network
            .context
            .wait_until("a frame received by port 3", || {
                Ok(self.received_packets(3)? > before)
            })?;
        self.send_packet_outs(last)?;
        Ok(self
            .received
            .iter()
            .map(|received| frame_counts(received))
            .collect())
    }

    /// Sends packet-outs, which are mirrored as well, and waits for the last of them.
    fn send_packet_outs(&mut self, last: u8) -> Result<(), Failure> {
        let bytes = |sender, vid| {
            frame(sender, station_address(2), vid, 99)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        for (from, packet, actions) in [
            ("1", bytes(8, 10), "output:2"),
            (
                "none",
                bytes(last, 0),
                "output:1,output:2,output:3,output:4",
            ),
        ] {
            self.run_tool(&format!(
                "ovs-ofctl packet-out br0 in_port={from},packet={packet},actions={actions}"
            ))?;
        }
        for number in 1..=4 {
            self.record_until(number, |bytes| {
                bytes[11] == last && bytes[12..14] == [0x88, 0xb5]
            })?;
        }
        Ok(())
    }

    /// Number of frames that a port received.
    fn received_packets(&self, port: u8) -> Result<u64, Failure> {
        let output = self.run_tool(&format!("ovs-ofctl dump-ports br0 {port}"))?;
        let count = output
            .split("rx pkts=")
            .nth(1)
            .and_then(|rest| rest.split(',').next());
        Ok(count
            .and_then(|count| count.trim().parse().ok())
            .expect("the statistics have a packet count"))
    }
}

/// Names of ports for further commands of `ovs-vsctl`.
const PORTS: &str = "--id=@p1 get Port p1 -- --id=@p2 get Port p2 -- --id=@p3 get Port p3 \
    -- --id=@p4 get Port p4";

/// First number of the senders of the frames that end a case; each case has another.
const FIRST_END_SENDER: u8 = 100;

/// Count of each frame, except for those that end a case: a copy of one may arrive after it.
fn frame_counts(received: &[Vec<u8>]) -> BTreeMap<String, usize> {
    let mut frame_counts = BTreeMap::new();
    for frame in received {
        if frame[11] < FIRST_END_SENDER {
            let header: Vec<_> = frame[..18]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let text = format!("{} of {}", header.join(""), frame.len());
            *frame_counts.entry(text).or_default() += 1;
        }
    }
    frame_counts
}

fn mirrors_copy_the_frames_that_open_vswitch_copies(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let _daemon = comporta.start_daemon()?;
    let _ovs_vswitchd = start_ovs_vswitchd(&ovs, "")?;
    let mut switches = Vec::new();
    for deployment in [&comporta, &ovs] {
        deployment.vsctl(FOUR_PORTS)?;
        deployment
            .network
            .run("ip link set br0 up")?
            .expect_success()?;
        switches.push(MirrorTest::new(deployment)?);
    }
    for (case, last) in CASES.iter().zip(FIRST_END_SENDER..) {
        let mut results = Vec::new();
        for switch in &mut switches {
            let result = switch.run_case(case, last);
            results.push(result.map_err(|failure| format!("{}: {failure}", case.name))?);
        }
        assert!(!results[0][2].is_empty(), "{}", case.name);
        for (port, (comporta_lines, ovs_lines)) in results[0].iter().zip(&results[1]).enumerate() {
            assert_eq!(
                comporta_lines,
                ovs_lines,
                "{}: port {} (Comporta, Open vSwitch)",
                case.name,
                port + 1
            );
        }
    }
    // A trace contains the copies.
    let command = "ovs-appctl ofproto/trace br0 in_port=1,dl_src=02:00:00:00:0c:01,dl_dst=02:00:00:00:0c:99,dl_type=0x88b5";
    let trace = |words: &str| {
        let output = [comporta.run_tool(words)?, ovs.run_tool(words)?];
        Ok::<_, Failure>(output.map(|output| {
            let lines = output
                .lines()
                .filter(|line| !line.starts_with("Megaflow: "));
            lines.map(str::to_owned).collect::<Vec<_>>()
        }))
    };
    let [comporta_lines, ovs_lines] = trace(command)?;
    assert_eq!(
        comporta_lines[..comporta_lines.len() - 1],
        ovs_lines[..ovs_lines.len() - 1]
    );
    // Datapath port numbers and their order differ between the switches.
    let output_count = |lines: &[String]| {
        let last = lines.last().cloned().unwrap_or_default();
        let actions = last.trim_start_matches("Datapath actions: ").split(',');
        let outputs = actions.filter(|action| action.parse::<u32>().is_ok());
        outputs.count()
    };
    assert_eq!(
        output_count(&comporta_lines),
        output_count(&ovs_lines),
        "{comporta_lines:?}, {ovs_lines:?}"
    );
    let [comporta_lines, ovs_lines] = trace(&command.replace("in_port=1", "in_port=3"))?;
    assert_eq!(comporta_lines, ovs_lines);
    Ok(())
}

fn mirror_statistics_count_copies_and_errors_are_reported(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 4)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon()?;
    deployment.vsctl(FOUR_PORTS)?;
    deployment.vsctl(&format!(
        "{PORTS} -- set Mirror m select_vlan=10 select_src_port=@p1"
    ))?;
    let mut capture = network.host(3).capture_frames()?;
    let frames = [
        frame(1, BROADCAST, 10, 50),
        frame(1, BROADCAST, 11, 50),
        frame(1, BROADCAST, 10, 51),
    ];
    network.host(1).send_bytes(&frames)?;
    for expected in [&frames[0], &frames[2]] {
        assert_eq!(capture.next_frame()?.bytes(), &expected[..]);
    }
    // Both frames had a tag.
    deployment.wait_for_column("get Mirror m statistics", "{tx_bytes=137, tx_packets=2}")?;
    // Statistics continue while the mirror changes.
    deployment.vsctl("set Mirror m select_vlan=11 snaplen=40")?;
    network.host(1).send_bytes(&frames[1..2])?;
    assert_eq!(capture.next_frame()?.bytes(), &frames[1][..40]);
    deployment.wait_for_column("get Mirror m statistics", "{tx_bytes=205, tx_packets=3}")?;
    // The status of the bridge names the error, and the log contains it once.
    let status = || deployment.vsctl("get Bridge br0 status");
    assert_eq!(status()?, "{}");
    deployment.vsctl("clear Mirror m output_port")?;
    let error = "ignored: no output: set output_port or output_vlan";
    assert_eq!(status()?, format!("{{\"mirrors:m\"=\"{error}\"}}"));
    daemon.wait_for_log(&format!("bridge br0: mirrors:m: {error}"))?;
    deployment.vsctl("set Bridge br0 other_config:mac-aging-time=100")?;
    let log = std::fs::read_to_string(&daemon.log)?;
    assert_eq!(log.matches(error).count(), 1, "{log}");
    deployment.vsctl(&format!(
        "{PORTS} -- add-br br1 -- set Mirror m output_port=@p4 output_vlan=7"
    ))?;
    assert!(
        status()?.contains("output_port takes precedence"),
        "{}",
        status()?
    );
    deployment.vsctl(
        "--id=@o get Port br1 -- clear Mirror m output_vlan -- set Mirror m output_port=@o",
    )?;
    assert!(
        status()?.contains("output_port: br1 is no port of br0"),
        "{}",
        status()?
    );
    deployment.vsctl("clear Bridge br0 mirrors")?;
    assert_eq!(status()?, "{}");
    Ok(())
}

fn frames_are_not_lost_while_mirrors_change(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 4)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(FOUR_PORTS)?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    let words = format!("fping -q -c 1000 -p 2 -t 5000 {}", two.address);
    let log = context.unique_path("fping");
    let mut pings = context
        .spawner
        .start(program(&words).inside(&one.namespace).log(log))?;
    let mut rounds = 0;
    while pings.is_running() {
        deployment.vsctl("set Mirror m select_all=true")?;
        deployment.vsctl("--id=@m get Mirror m -- remove Bridge br0 mirrors @m")?;
        deployment.vsctl("--id=@p get Port p3 -- --id=@m create Mirror name=m output_port=@p -- set Bridge br0 mirrors=@m")?;
        rounds += 1;
    }
    let output = pings.written()?;
    assert!(
        rounds > 0 && output.contains(" = 1000/1000/0%,"),
        "{output}"
    );
    // The output port of a mirror forwards no frames, until the mirror is removed.
    let three = network.host(3);
    assert!(!three.can_ping(one.address)?);
    deployment.vsctl("clear Bridge br0 mirrors")?;
    three.ping_until_reply(one.address)?;
    Ok(())
}

fn mirrors_select_and_output_to_patch_ports_and_tunnels(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 4)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let patch = |name: &str, peer: &str| {
        format!(
            "add-port {name} {name}-{peer} -- set Interface {name}-{peer} type=patch options:peer={peer}-{name}"
        )
    };
    deployment.vsctl(&format!(
        "add-br a -- add-port a p1 -- add-port a p3 -- {} -- add-br b -- add-port b p2 -- {}",
        patch("a", "b"),
        patch("b", "a"),
    ))?;
    // Frames sent and received by a patch port.
    deployment.vsctl(
        "--id=@p get Port a-b -- --id=@o get Port p3 -- --id=@m create Mirror name=m \
         select_src_port=@p select_dst_port=@p output_port=@o -- set Bridge a mirrors=@m",
    )?;
    let mut capture = network.host(3).capture_frames()?;
    for (from, length) in [(1, 50), (2, 51)] {
        let sent = frame(1, BROADCAST, 0, length);
        network.host(from).send_bytes(&[&sent])?;
        assert_eq!(next_test_frame(&mut capture)?, sent);
    }
    // A patch port as the output: the other bridge forwards the copies like other frames.
    deployment.vsctl(
        "--id=@p get Port p1 -- --id=@o get Port a-b \
         -- set Mirror m select_src_port=@p output_port=@o -- clear Mirror m select_dst_port",
    )?;
    let mut capture = network.host(2).capture_frames()?;
    let sent = frame(1, [0x01, 0x80, 0xc2, 0, 0, 0x0e], 0, 52);
    deployment.vsctl("set Bridge b other_config:forward-bpdu=true")?;
    network.host(1).send_bytes(&[&sent])?;
    assert_eq!(next_test_frame(&mut capture)?, sent);
    // A tunnel as the output: its packets carry the frame to host 4.
    let fourth = network.host(4).address;
    network
        .run("ip address add 10.1.0.100/24 dev p4")?
        .expect_success()?;
    deployment.vsctl(&format!(
        "add-port a g1 -- set Interface g1 type=gre options:remote_ip={fourth} \
         -- --id=@g get Port g1 -- set Mirror m output_port=@g"
    ))?;
    let mut capture = network.host(4).capture_frames()?;
    // The first packets are dropped until the tunnel's neighbour is resolved.
    context.wait_until("a packet of the tunnel", || {
        network.host(1).send_bytes(&[&sent])?;
        let frame_counts = deployment.run_tool("ovs-ofctl dump-ports a g1")?;
        Ok(!frame_counts.contains("tx pkts=0,"))
    })?;
    loop {
        let frame = capture.next_frame()?;
        if frame.bytes().ends_with(&sent) {
            assert_eq!(
                frame.bytes().len(),
                sent.len() + 14 + 20 + 4,
                "Ethernet, IPv4, GRE"
            );
            return Ok(());
        }
    }
}

/// The next frame of the tests' senders.
fn next_test_frame(capture: &mut FrameCapture<'_>) -> Result<Vec<u8>, Failure> {
    loop {
        let frame = capture.next_frame()?;
        if frame.bytes().get(6..11) == Some(&SENDERS) {
            return Ok(frame.bytes().to_vec());
        }
    }
}

fn ovs_tcpdump_captures_a_port_and_cleans_up(context: &TestContext) -> TestResult {
    let requirement = |program, package| Requirement::Program { program, package };
    let requirements = [
        requirement("ovs-tcpdump", "openvswitch-switch"),
        requirement("tcpdump", "tcpdump"),
    ];
    if let Err(missing) = testbed::check(&requirements) {
        return Err(TestError::Skip(missing.to_string()));
    }
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl("add-br br0 -- add-port br0 p1 -- add-port br0 p2")?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    let words = "ovs-tcpdump -i p1 --db-sock unix:db.sock -n -U icmp";
    let tcpdump = deployment
        .program(words)
        .log(context.unique_path("ovs-tcpdump.log"));
    let mut tcpdump = context.spawner.start(tcpdump)?;
    deployment.wait_for_column("--columns=name --bare list Mirror", "m_p1")?;
    let received = format!("IP {} > {}: ICMP echo request", one.address, two.address);
    let reply = format!("IP {} > {}: ICMP echo reply", two.address, one.address);
    context.wait_until("the captured packets", || {
        one.ping(two.address, 1)?;
        let output = tcpdump.written()?;
        Ok(output.contains(&received) && output.contains(&reply))
    })?;
    tcpdump.stop_within(WAIT_LIMIT)?;
    assert_eq!(deployment.vsctl("--columns=name --bare list Mirror")?, "");
    assert_eq!(deployment.vsctl("list-ports br0")?, "p1\np2");
    one.ping(two.address, 20)?;
    Ok(())
}
