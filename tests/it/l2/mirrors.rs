//! Mirrors of bridges, as the database asks for them: what who listens is shown, and what others
//! still have. Open vSwitch stands beside, is asked the same, and shows the same.

use std::collections::BTreeMap;

use testbed::{Failure, Requirement};

use crate::support::command::program;
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::Deployment;
use crate::support::frames::FrameCapture;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::start_ovs_vswitchd;

pub(crate) const TESTS: &[SystemTest] = tests![
    who_listens_is_shown_what_open_vswitch_shows,
    what_is_copied_is_counted_and_what_cannot_be_is_said,
    others_lose_nothing_while_mirrors_come_and_go,
    patches_and_tunnels_are_mirrored_and_mirrored_to,
    ovs_tcpdump_shows_a_port_and_leaves_nothing_behind,
];

/// Four ports, and a mirror that takes nothing yet, to the third.
const FOUR: &str = "add-br br0 -- set Bridge br0 datapath_type=netdev \
    -- add-port br0 p1 -- set Interface p1 ofport_request=1 \
    -- add-port br0 p2 -- set Interface p2 ofport_request=2 \
    -- add-port br0 p3 -- set Interface p3 ofport_request=3 \
    -- add-port br0 p4 -- set Interface p4 ofport_request=4 \
    -- --id=@p get Port p3 -- --id=@m create Mirror name=m output_port=@p \
    -- set Bridge br0 mirrors=@m";

/// Addresses of senders: frames from no other are looked at, so that what hosts say by
/// themselves does not matter.
const SENDERS: [u8; 5] = [2, 0, 0, 0, 0x0c];

/// A bridge, and what is said to it before frames come.
struct Case {
    what: &'static str,
    vsctl: &'static str,
    /// Its rules, in place of all others.
    flows: &'static [&'static str],
}

const NORMAL: &[&str] = &["actions=NORMAL"];

const CASES: [Case; 13] = [
    Case {
        what: "from a port",
        vsctl: "set Mirror m select_src_port=@p1",
        flows: NORMAL,
    },
    Case {
        what: "to a port",
        vsctl: "clear Mirror m select_src_port -- set Mirror m select_dst_port=@p2",
        flows: NORMAL,
    },
    Case {
        what: "of both",
        vsctl: "set Mirror m select_src_port=@p1 select_dst_port=@p1,@p2",
        flows: NORMAL,
    },
    Case {
        what: "all",
        vsctl: "clear Mirror m select_src_port -- clear Mirror m select_dst_port \
            -- set Mirror m select_all=true",
        flows: NORMAL,
    },
    Case {
        what: "of a VLAN",
        vsctl: "set Mirror m select_vlan=10",
        flows: NORMAL,
    },
    Case {
        what: "of access ports in the VLAN",
        vsctl: "set Port p1 tag=10 -- set Port p2 tag=10",
        flows: NORMAL,
    },
    Case {
        what: "to an access port, cut",
        vsctl: "clear Mirror m select_vlan -- set Port p3 tag=30 -- set Mirror m snaplen=100",
        flows: NORMAL,
    },
    Case {
        what: "into a VLAN",
        vsctl: "clear Mirror m output_port -- clear Mirror m snaplen -- set Port p3 tag=20 \
            -- set Mirror m output_vlan=20",
        flows: NORMAL,
    },
    Case {
        what: "into a VLAN that frames are in",
        vsctl: "clear Mirror m output_vlan -- set Mirror m output_vlan=10 snaplen=200 \
            -- set Port p3 tag=10",
        flows: NORMAL,
    },
    Case {
        what: "by rules",
        vsctl: "clear Port p1 tag -- clear Port p2 tag -- clear Port p3 tag \
            -- clear Mirror m output_vlan -- clear Mirror m snaplen \
            -- set Mirror m output_port=@p3",
        flows: &[
            "in_port=1,actions=output:2",
            "in_port=2,actions=mod_vlan_vid:7,output:1,output:4",
            "in_port=4,actions=output:1,mod_vlan_vid:9,output:2",
        ],
    },
    Case {
        what: "of what rules change, where it leaves",
        vsctl: "set Mirror m select_all=false select_dst_port=@p1,@p4",
        flows: &[
            "in_port=1,actions=output:2",
            "in_port=2,actions=mod_vlan_vid:7,output:1,output:4",
            "in_port=4,actions=output:2,mod_vlan_vid:9,output:1",
        ],
    },
    Case {
        what: "of what rules drop",
        vsctl: "clear Mirror m select_dst_port -- set Mirror m select_src_port=@p1,@p4",
        flows: &[
            "priority=9,in_port=1,dl_vlan=30,actions=drop",
            "priority=8,in_port=1,actions=output:2,output:4",
            "in_port=2,actions=output:1",
            "in_port=4,actions=flood",
        ],
    },
    Case {
        what: "two mirrors, of which one sends into a VLAN",
        vsctl: "--id=@n create Mirror name=n select_dst_port=@p2 output_vlan=40 \
            -- add Bridge br0 mirrors @n",
        flows: NORMAL,
    },
];

/// A frame of 60 bytes or more, from station `sender` of a case, to whom, with a tag of this
/// VLAN if it is any.
fn frame(sender: u8, dst: [u8; 6], vid: u8, length: usize) -> Vec<u8> {
    let tag: &[u8] = if vid == 0 { &[] } else { &[0x81, 0, 0, vid] };
    let mut frame = [&dst[..], &SENDERS, &[sender], tag, &[0x88, 0xb5]].concat();
    frame.extend((0..length).map(|place| place.to_le_bytes()[0]));
    frame
}

const ALL: [u8; 6] = [0xff; 6];

fn station(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0x0c, number]
}

/// A switch, and eyes behind its ports.
struct Scene<'s, 'r, 'g> {
    deployment: &'s Deployment<'r, 'g>,
    captures: Vec<FrameCapture<'g>>,
    /// What each has seen.
    seen: Vec<Vec<Vec<u8>>>,
}

impl<'s, 'r, 'g> Scene<'s, 'r, 'g> {
    fn new(deployment: &'s Deployment<'r, 'g>) -> Result<Self, Failure> {
        let captures = deployment
            .network
            .hosts
            .iter()
            .map(|host| host.capture_frames());
        let captures = captures.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            deployment,
            seen: vec![Vec::new(); captures.len()],
            captures,
        })
    }

    /// Notes what comes to host `number` until a frame has these bytes.
    fn await_at(&mut self, number: usize, is_last: impl Fn(&[u8]) -> bool) -> Result<(), Failure> {
        loop {
            let frame = self.captures[number - 1].next_frame()?;
            let is_ours = frame.bytes().get(6..11) == Some(&SENDERS);
            if is_ours {
                self.seen[number - 1].push(frame.bytes().to_vec());
            }
            if is_ours && is_last(frame.bytes()) {
                return Ok(());
            }
        }
    }

    /// Sends frames from a host, and waits until the last, which goes to all, has come to
    /// another.
    fn send(&mut self, from: usize, frames: &[Vec<u8>], to: usize) -> Result<(), Failure> {
        self.deployment.network.host(from).send_bytes(frames)?;
        let last = frames.last().cloned().unwrap_or_default();
        let last = last[last.len() - 50..].to_vec();
        self.await_at(to, |bytes| bytes.ends_with(&last))
    }

    fn run_tool(&self, words: &str) -> Result<String, Failure> {
        self.deployment.run_tool(words)
    }

    /// Sets a case up, and has frames come: what all hosts have seen of it.
    fn play(&mut self, case: &Case, last: u8) -> Result<Vec<BTreeMap<String, usize>>, Failure> {
        self.deployment
            .vsctl(&format!("{PORTS} -- {}", case.vsctl))?;
        self.run_tool("ovs-ofctl del-flows br0")?;
        for flow in case.flows {
            self.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
        }
        for words in ["fdb/flush br0", "revalidator/wait", "dpctl/del-flows"] {
            self.run_tool(&format!("ovs-appctl {words}"))?;
        }
        self.seen.iter_mut().for_each(Vec::clear);
        // Hosts 2 and 4 make themselves known; what host 4 says is in VLAN 10.
        self.send(2, &[frame(2, ALL, 0, 51)], 1)?;
        self.send(4, &[frame(4, station(2), 10, 52), frame(4, ALL, 10, 54)], 1)?;
        if case.flows == NORMAL {
            self.deployment.network.context.wait_until("stations", || {
                let known = self.run_tool("ovs-appctl fdb/show br0")?;
                let is_known = |number| known.contains(&format!("02:00:00:00:0c:0{number}"));
                Ok(is_known(2) && is_known(4))
            })?;
        }
        let one = [
            frame(1, station(2), 0, 61),
            frame(1, station(4), 10, 62),
            frame(1, ALL, 30, 63),
            frame(1, [0x01, 0x80, 0xc2, 0, 0, 0x0e], 0, 64),
            frame(1, [0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcd], 0, 65),
            frame(1, [0x33, 0x33, 0, 0, 0, 1], 20, 66),
            frame(1, station(2), 0, 1000),
            frame(1, ALL, 0, 68),
        ];
        self.send(1, &one, 2)?;
        // What comes in by the third port, if that is the mirror's, goes nowhere.
        let before = self.received(3)?;
        self.deployment
            .network
            .host(3)
            .send_bytes(&[frame(3, station(1), 0, 71)])?;
        self.deployment
            .network
            .context
            .wait_until("a frame by port 3", || Ok(self.received(3)? > before))?;
        self.send_out(last)?;
        Ok(self.seen.iter().map(|seen| counted(seen)).collect())
    }

    /// Has a controller's frames leave, which are mirrored, too, and waits for the last of them.
    fn send_out(&mut self, last: u8) -> Result<(), Failure> {
        let bytes = |sender, vid| {
            frame(sender, station(2), vid, 99)
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
            self.await_at(number, |bytes| {
                bytes[11] == last && bytes[12..14] == [0x88, 0xb5]
            })?;
        }
        Ok(())
    }

    /// How many frames have come by a port.
    fn received(&self, port: u8) -> Result<u64, Failure> {
        let told = self.run_tool(&format!("ovs-ofctl dump-ports br0 {port}"))?;
        let count = told
            .split("rx pkts=")
            .nth(1)
            .and_then(|rest| rest.split(',').next());
        Ok(count
            .and_then(|count| count.trim().parse().ok())
            .expect("a count"))
    }
}

/// Names for ports that commands after it may use.
const PORTS: &str = "--id=@p1 get Port p1 -- --id=@p2 get Port p2 -- --id=@p3 get Port p3 \
    -- --id=@p4 get Port p4";

/// From here on senders are of the frames that end cases, another in each.
const LAST: u8 = 100;

/// How often each frame was seen; of those that end cases none, since who is shown a copy of one
/// may be shown it after that.
fn counted(seen: &[Vec<u8>]) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for frame in seen {
        if frame[11] < LAST {
            let header: Vec<_> = frame[..18]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let text = format!("{} of {}", header.join(""), frame.len());
            *counted.entry(text).or_default() += 1;
        }
    }
    counted
}

fn who_listens_is_shown_what_open_vswitch_shows(context: &TestContext) -> TestResult {
    let (our_rig, their_rig) = (TestNetwork::new(context, 4)?, TestNetwork::new(context, 4)?);
    let our_site = Deployment::new(&our_rig)?;
    let their_site = Deployment::in_directory(&their_rig, "theirs")?;
    let _ours = our_site.start_daemon()?;
    let _theirs = start_ovs_vswitchd(&their_site, "")?;
    let mut scenes = Vec::new();
    for deployment in [&our_site, &their_site] {
        deployment.vsctl(FOUR)?;
        deployment
            .network
            .run("ip link set br0 up")?
            .expect_success()?;
        scenes.push(Scene::new(deployment)?);
    }
    for (case, last) in CASES.iter().zip(LAST..) {
        let mut shown = Vec::new();
        for scene in &mut scenes {
            let played = scene.play(case, last);
            shown.push(played.map_err(|failure| format!("{}: {failure}", case.what))?);
        }
        assert!(!shown[0][2].is_empty(), "{}", case.what);
        for (port, (ours, theirs)) in shown[0].iter().zip(&shown[1]).enumerate() {
            assert_eq!(
                ours,
                theirs,
                "{}: port {} (ours, theirs)",
                case.what,
                port + 1
            );
        }
    }
    // The story of a frame tells of copies.
    let question = "ovs-appctl ofproto/trace br0 in_port=1,dl_src=02:00:00:00:0c:01,dl_dst=02:00:00:00:0c:99,dl_type=0x88b5";
    let told = |words: &str| {
        let told = [our_site.run_tool(words)?, their_site.run_tool(words)?];
        Ok::<_, Failure>(told.map(|told| {
            let lines = told.lines().filter(|line| !line.starts_with("Megaflow: "));
            lines.map(str::to_owned).collect::<Vec<_>>()
        }))
    };
    let [ours, theirs] = told(question)?;
    assert_eq!(ours[..ours.len() - 1], theirs[..theirs.len() - 1]);
    // Numbers of the data path, and their order, are each switch's own.
    let sent = |told: &[String]| {
        let last = told.last().cloned().unwrap_or_default();
        let actions = last.trim_start_matches("Datapath actions: ").split(',');
        let outputs = actions.filter(|action| action.parse::<u32>().is_ok());
        outputs.count()
    };
    assert_eq!(sent(&ours), sent(&theirs), "{ours:?}, {theirs:?}");
    let [ours, theirs] = told(&question.replace("in_port=1", "in_port=3"))?;
    assert_eq!(ours, theirs);
    Ok(())
}

fn what_is_copied_is_counted_and_what_cannot_be_is_said(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 4)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon()?;
    deployment.vsctl(FOUR)?;
    deployment.vsctl(&format!(
        "{PORTS} -- set Mirror m select_vlan=10 select_src_port=@p1"
    ))?;
    let mut capture = network.host(3).capture_frames()?;
    let frames = [
        frame(1, ALL, 10, 50),
        frame(1, ALL, 11, 50),
        frame(1, ALL, 10, 51),
    ];
    network.host(1).send_bytes(&frames)?;
    for wanted in [&frames[0], &frames[2]] {
        assert_eq!(capture.next_frame()?.bytes(), &wanted[..]);
    }
    // Both had a tag.
    deployment.wait_for_column("get Mirror m statistics", "{tx_bytes=137, tx_packets=2}")?;
    // What the mirror had counts on while it changes.
    deployment.vsctl("set Mirror m select_vlan=11 snaplen=40")?;
    network.host(1).send_bytes(&frames[1..2])?;
    assert_eq!(capture.next_frame()?.bytes(), &frames[1][..40]);
    deployment.wait_for_column("get Mirror m statistics", "{tx_bytes=205, tx_packets=3}")?;
    // Why there is none is said of the bridge, and once in the log.
    let status = || deployment.vsctl("get Bridge br0 status");
    assert_eq!(status()?, "{}");
    deployment.vsctl("clear Mirror m output_port")?;
    let why = "not honoured: it has no output: give it output_port or output_vlan";
    assert_eq!(status()?, format!("{{\"mirrors:m\"=\"{why}\"}}"));
    daemon.wait_for_log(&format!("bridge br0: mirrors:m: {why}"))?;
    deployment.vsctl("set Bridge br0 other_config:mac-aging-time=100")?;
    let log = std::fs::read_to_string(&daemon.log)?;
    assert_eq!(log.matches(why).count(), 1, "{log}");
    deployment.vsctl(&format!(
        "{PORTS} -- add-br br1 -- set Mirror m output_port=@p4 output_vlan=7"
    ))?;
    assert!(
        status()?.contains("output_port says where"),
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

fn others_lose_nothing_while_mirrors_come_and_go(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 4)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(FOUR)?;
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
    let said = pings.written()?;
    assert!(rounds > 0 && said.contains(" = 1000/1000/0%,"), "{said}");
    // The port of a mirror takes no part, and does again when the mirror is gone.
    let three = network.host(3);
    assert!(!three.can_ping(one.address)?);
    deployment.vsctl("clear Bridge br0 mirrors")?;
    three.ping_until_reply(one.address)?;
    Ok(())
}

fn patches_and_tunnels_are_mirrored_and_mirrored_to(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 4)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let patch = |name: &str, controller: &str| {
        format!(
            "add-port {name} {name}-{controller} -- set Interface {name}-{controller} type=patch options:peer={controller}-{name}"
        )
    };
    deployment.vsctl(&format!(
        "add-br a -- add-port a p1 -- add-port a p3 -- {} -- add-br b -- add-port b p2 -- {}",
        patch("a", "b"),
        patch("b", "a"),
    ))?;
    // What leaves by a patch, and what comes by it.
    deployment.vsctl(
        "--id=@p get Port a-b -- --id=@o get Port p3 -- --id=@m create Mirror name=m \
         select_src_port=@p select_dst_port=@p output_port=@o -- set Bridge a mirrors=@m",
    )?;
    let mut capture = network.host(3).capture_frames()?;
    for (from, length) in [(1, 50), (2, 51)] {
        let sent = frame(1, ALL, 0, length);
        network.host(from).send_bytes(&[&sent])?;
        assert_eq!(next_of_ours(&mut capture)?, sent);
    }
    // Into a patch: the other bridge does with it as with any frame.
    deployment.vsctl(
        "--id=@p get Port p1 -- --id=@o get Port a-b \
         -- set Mirror m select_src_port=@p output_port=@o -- clear Mirror m select_dst_port",
    )?;
    let mut capture = network.host(2).capture_frames()?;
    let sent = frame(1, [0x01, 0x80, 0xc2, 0, 0, 0x0e], 0, 52);
    deployment.vsctl("set Bridge b other_config:forward-bpdu=true")?;
    network.host(1).send_bytes(&[&sent])?;
    assert_eq!(next_of_ours(&mut capture)?, sent);
    // Into a tunnel: its packets go to the fourth host, and carry the frame.
    let fourth = network.host(4).address;
    network
        .run("ip address add 10.1.0.100/24 dev p4")?
        .expect_success()?;
    deployment.vsctl(&format!(
        "add-port a g1 -- set Interface g1 type=gre options:remote_ip={fourth} \
         -- --id=@g get Port g1 -- set Mirror m output_port=@g"
    ))?;
    let mut capture = network.host(4).capture_frames()?;
    // The first are lost until the other end is known.
    context.wait_until("a packet of the tunnel", || {
        network.host(1).send_bytes(&[&sent])?;
        let counted = deployment.run_tool("ovs-ofctl dump-ports a g1")?;
        Ok(!counted.contains("tx pkts=0,"))
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

/// The next frame that no host has said by itself.
fn next_of_ours(capture: &mut FrameCapture<'_>) -> Result<Vec<u8>, Failure> {
    loop {
        let frame = capture.next_frame()?;
        if frame.bytes().get(6..11) == Some(&SENDERS) {
            return Ok(frame.bytes().to_vec());
        }
    }
}

fn ovs_tcpdump_shows_a_port_and_leaves_nothing_behind(context: &TestContext) -> TestResult {
    let needed = |program, package| Requirement::Program { program, package };
    let needs = [
        needed("ovs-tcpdump", "openvswitch-switch"),
        needed("tcpdump", "tcpdump"),
    ];
    if let Err(missing) = testbed::check(&needs) {
        return Err(TestError::Skip(missing.to_string()));
    }
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl("add-br br0 -- add-port br0 p1 -- add-port br0 p2")?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    let words = "ovs-tcpdump -i p1 --db-sock unix:db.sock -n -U icmp";
    let listener = deployment
        .program(words)
        .log(context.unique_path("ovs-tcpdump.log"));
    let mut listener = context.spawner.start(listener)?;
    deployment.wait_for_column("--columns=name --bare list Mirror", "m_p1")?;
    let seen = format!("IP {} > {}: ICMP echo request", one.address, two.address);
    let answer = format!("IP {} > {}: ICMP echo reply", two.address, one.address);
    context.wait_until("what is shown of the port", || {
        one.ping(two.address, 1)?;
        let shown = listener.written()?;
        Ok(shown.contains(&seen) && shown.contains(&answer))
    })?;
    listener.stop_within(WAIT_LIMIT)?;
    assert_eq!(deployment.vsctl("--columns=name --bare list Mirror")?, "");
    assert_eq!(deployment.vsctl("list-ports br0")?, "p1\np2");
    one.ping(two.address, 20)?;
    Ok(())
}
