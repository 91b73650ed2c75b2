//! The control socket as operators and scripts know it of Open vSwitch: a real `ovs-vswitchd`
//! stands beside, is told the same by its own database, and is asked the same.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::{appctl, start_ovs_vswitchd};
use crate::support::pcap::pcap_frames;

pub(crate) const TESTS: &[SystemTest] = tests![
    answers_are_those_of_open_vswitch,
    a_frames_story_is_that_of_open_vswitch,
    compiled_rules_are_told_as_flows_of_a_data_path,
    what_workers_did_is_told_and_counted_anew,
    garbage_at_the_socket_is_refused_and_others_go_on,
    frames_handed_to_dummies_go_as_in_open_vswitch,
    time_is_stopped_and_put_forward_for_tests,
];

/// Commands of Open vSwitch that are another theme's, or of a library that is not there.
const OTHERS: [&str; 6] = [
    "dpif-netlink/",
    "tnl/",
    "ovs/route/",
    "odp-execute/",
    "dpif-netdev/bond-show",
    "dpdk/",
];

/// Rules that both are given.
const FLOWS: [&str; 6] = [
    "table=0,priority=9,tcp,nw_dst=10.0.0.0/8,actions=dec_ttl,resubmit(,3)",
    "table=3,cookie=0x5,tcp,tp_dst=80,actions=output:2",
    "table=0,priority=8,dl_vlan=5,actions=strip_vlan,output:2",
    "table=0,priority=7,arp,actions=mod_vlan_vid:7,output:2",
    "table=0,priority=6,udp,actions=mod_nw_src:10.9.9.9,output:2",
    "table=0,priority=1,actions=NORMAL",
];

fn set_up(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Bridge br0 datapath_type=netdev fail_mode=secure \
         -- set Interface p1 ofport_request=1 -- set Interface p2 ofport_request=2"
    ))?;
    // Else the one would flood to the bridge's own interface, and the other would not.
    deployment
        .network
        .run("ip link set br0 up")?
        .expect_success()?;
    let shown = || deployment.run_tool("ovs-ofctl show br0");
    deployment
        .network
        .context
        .wait_until("br0 to be up", || Ok(!shown()?.contains("PORT_DOWN")))?;
    for flow in FLOWS {
        deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
    }
    Ok(())
}

/// Questions with the same answer, word for word.
const SAME: [&str; 70] = [
    "stp/show",
    "stp/show br0",
    "stp/tcn",
    "stp/tcn br9",
    "rstp/show",
    "rstp/show br0",
    "rstp/tcn",
    "rstp/tcn br9",
    "dance",
    "version 1",
    "exit 1 2",
    "fdb/show",
    "fdb/show br9",
    "fdb/add",
    "fdb/add br9 p1 0 02:00:00:00:00:99",
    "fdb/add br0 p1 0 nonsense",
    "fdb/add br0 p1 0 02:00:00:00:00:99",
    "fdb/add br0 p1 0 02:00:00:00:00:99",
    "fdb/add br0 p2 0 02:00:00:00:00:99",
    "fdb/add br0 br0 5 02:00:00:00:00:98",
    "fdb/flush",
    "fdb/stats-clear",
    "fdb/stats-clear br0",
    "fdb/stats-clear br9",
    "fdb/del br0 0",
    "fdb/del br9 0 02:00:00:00:00:99",
    "fdb/del br0 0 nonsense",
    "fdb/del br0 0 02:00:00:00:00:11",
    "fdb/del br0 0 02:00:00:00:00:99",
    "fdb/del br0 0 02:00:00:00:00:99",
    "ofproto/list",
    "ofproto/list-tunnels",
    "bridge/dump-flows",
    "bridge/dump-flows br9",
    "bridge/reconnect",
    "bridge/reconnect br0",
    "bridge/reconnect br9",
    "dpif/dump-dps",
    "dpif/dump-flows br9",
    "dpif/show-dp-features br9",
    "dpctl/dump-dps",
    "dpctl/dump-flows foo",
    "dpctl/get-flow ufid:00000000-0000-0000-0000-000000000000",
    "dpctl/del-flows",
    "dpctl/cache-get-size",
    "dpif-netdev/pmd-stats-clear",
    "dpif-netdev/pmd-rxq-rebalance",
    "dpif-netdev/pmd-rxq-rebalance foo",
    "coverage/read-counter foo",
    "coverage/read-counter",
    "revalidator/purge",
    "revalidator/wait",
    "cfm/show",
    "cfm/show p1",
    "cfm/set-fault normal",
    "cfm/set-fault p1 normal",
    "bfd/show",
    "bfd/show p1",
    "bfd/set-forwarding p1 normal",
    "autoattach/status",
    "autoattach/statistics",
    "autoattach/show-isid",
    "vlog/disable-rate-limit",
    "vlog/disable-rate-limit nope",
    "vlog/set nope",
    "vlog/set file:nope",
    "ofproto/trace",
    "ofproto/trace br0",
    "ofproto/trace br1 in_port=1",
    "ofproto/trace foo@bar in_port(1),eth()",
];

fn answers_are_those_of_open_vswitch(context: &TestContext) -> TestResult {
    let (here, there) = (TestNetwork::new(context, 2)?, TestNetwork::new(context, 2)?);
    let (ours, other) = (
        Deployment::in_directory(&here, "ours")?,
        Deployment::in_directory(&there, "theirs")?,
    );
    let (_daemon, _theirs) = (ours.start_daemon()?, start_ovs_vswitchd(&other, "")?);
    set_up(&ours)?;
    set_up(&other)?;
    for question in SAME {
        assert_eq!(
            appctl(&ours, question)?,
            appctl(&other, question)?,
            "{question}"
        );
    }
    // The same commands with the same arguments, in the same columns.
    let listed = appctl(&ours, "list-commands")?;
    for line in appctl(&other, "list-commands")?.lines() {
        let name = line.trim_start();
        let is_others = OTHERS.iter().any(|prefix| name.starts_with(prefix));
        assert!(
            is_others || listed.lines().any(|own| own == line),
            "{line}\n{listed}"
        );
    }
    // The same rules, but for those that it hides in its last table.
    for options in ["", "--offload-stats "] {
        let dump = |deployment| {
            let text = appctl(deployment, &format!("bridge/dump-flows {options}br0"))?;
            let mut lines: Vec<_> = text
                .lines()
                .filter(|line| !line.contains("table_id=254"))
                .map(timeless)
                .collect();
            lines.sort();
            Ok::<_, Failure>(lines)
        };
        assert_eq!(dump(&ours)?, dump(&other)?);
    }
    // The same ports; numbers of the data path are whose it is.
    let names = |deployment, question: &str| {
        let text = appctl(deployment, question)?;
        let lines = text.lines().skip(1);
        let words = lines.map(|line| match line.split_once('/') {
            Some((before, behind)) => format!(
                "{before} {}",
                behind.split_once(' ').map_or("", |(_, kind)| kind)
            ),
            None => line.to_owned(),
        });
        Ok::<_, Failure>(words.collect::<Vec<_>>())
    };
    assert_eq!(names(&ours, "dpif/show")?, names(&other, "dpif/show")?);
    let version = appctl(&ours, "version")?;
    assert!(
        version.starts_with("ovs-vswitchd (Comporta, in the place of Open vSwitch) "),
        "{version}"
    );
    Ok(())
}

/// A line without how long ago something was.
fn timeless(line: &str) -> String {
    let words = line
        .split(", ")
        .filter(|word| !word.starts_with("duration="));
    // Of the names of an action that has two, the older.
    words
        .collect::<Vec<_>>()
        .join(", ")
        .replace("pop_vlan", "strip_vlan")
}

/// Frames whose stories are the same.
const FRAMES: [&str; 7] = [
    "br0 in_port=1,tcp,nw_dst=10.0.0.1,nw_ttl=64,tp_dst=80",
    "br0 in_port=p1,tcp,nw_dst=10.0.0.1,nw_ttl=64,tp_dst=80 -generate",
    "br0 in_port=2,dl_src=02:00:00:00:00:09,dl_dst=02:00:00:00:00:01,dl_type=0x88b5",
    "br0 in_port=1,dl_vlan=5,dl_vlan_pcp=3,dl_type=0x88b5",
    "br0 in_port=1,arp,arp_op=1",
    "br0 in_port=1,udp,nw_src=10.0.0.9",
    "br0 in_port=1 0200000000010200000000090806000108000604000102000000000a0a00000102000000000b0a000002",
];

fn a_frames_story_is_that_of_open_vswitch(context: &TestContext) -> TestResult {
    let (here, there) = (TestNetwork::new(context, 2)?, TestNetwork::new(context, 2)?);
    let (ours, other) = (
        Deployment::in_directory(&here, "ours")?,
        Deployment::in_directory(&there, "theirs")?,
    );
    let (_daemon, _theirs) = (ours.start_daemon()?, start_ovs_vswitchd(&other, "")?);
    set_up(&ours)?;
    set_up(&other)?;
    for frame in FRAMES {
        let story = |deployment| {
            let told = appctl(deployment, &format!("ofproto/trace {frame}"))?;
            Ok::<_, Failure>(comparable(&told, &names_of_ports(deployment)?))
        };
        assert_eq!(story(&ours)?, story(&other)?, "{frame}");
    }
    // What was looked at is told: of the first, exactly the same.
    let megaflow = |deployment| {
        let told = appctl(deployment, &format!("ofproto/trace {}", FRAMES[0]))?;
        let line = told.lines().find(|line| line.starts_with("Megaflow: "));
        Ok::<_, Failure>(line.map(str::to_owned))
    };
    assert_eq!(megaflow(&ours)?, megaflow(&other)?);
    // A frame in the words of the data path, whose port says the bridge.
    let number = names_of_ports(&ours)?
        .into_iter()
        .find(|(_, name)| name == "p1");
    let number = number.map(|(number, _)| number).unwrap_or_default();
    let flow = format!(
        "in_port({number}),eth(src=02:00:00:00:00:09,dst=02:00:00:00:00:01),eth_type(0x0800),ipv4(dst=10.0.0.1,proto=6,ttl=64,frag=no),tcp(dst=80)"
    );
    for words in [flow.clone(), format!("netdev@ovs-netdev {flow}")] {
        let told = appctl(&ours, &format!("ofproto/trace {words}"))?;
        assert!(
            told.contains(" 3. tcp,tp_dst=80, priority 32768, cookie 0x5\n    output:2\n"),
            "{told}"
        );
    }
    // What a controller would send out.
    let told = appctl(
        &ours,
        "ofproto/trace-packet-out br0 in_port=1,tcp mod_vlan_vid:5,output:2",
    )?;
    assert!(
        told.contains("Datapath actions: push_vlan(vid=5,pcp=0),"),
        "{told}"
    );
    let refused = appctl(&ours, "ofproto/trace-packet-out br0 in_port=1,tcp group:7")?;
    assert!(refused.contains("the actions cannot be done"), "{refused}");
    Ok(())
}

/// What the data path calls its ports.
fn names_of_ports(deployment: &Deployment<'_, '_>) -> Result<BTreeMap<String, String>, Failure> {
    let shown = appctl(deployment, "dpctl/show")?;
    let ports = shown.lines().filter_map(|line| {
        let (number, name) = line.trim().strip_prefix("port ")?.split_once(": ")?;
        let name = name.split(' ').next()?;
        Some((number.to_owned(), name.to_owned()))
    });
    Ok(ports.collect())
}

/// A story without what was looked at, with ports by their names.
fn comparable(told: &str, ports: &BTreeMap<String, String>) -> String {
    let lines = told.lines().filter(|line| !line.starts_with("Megaflow: "));
    let lines = lines.map(|line| match line.strip_prefix("Datapath actions: ") {
        // An inner tag that is not there, and the name of an action that has two.
        None => line
            .replace(",vlan_tci1=0x0000", "")
            .replace("pop_vlan", "strip_vlan"),
        Some(actions) => {
            let mut names: Vec<_> = actions
                .split(',')
                .map(|action| ports.get(action).map_or(action, String::as_str))
                .collect();
            names.sort_unstable();
            names.join(",")
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn compiled_rules_are_told_as_flows_of_a_data_path(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    deployment.run_tool(
        "ovs-ofctl add-flow br0 in_port=1,tcp,nw_dst=10.0.0.0/8,actions=dec_ttl,output:2",
    )?;
    let told = appctl(&deployment, "dpif/dump-flows --names br0")?;
    let wanted = "table(0),priority(32768),in_port(p1),eth_type(0x0800),ipv4(dst=10.0.0.0/255.0.0.0,proto=6), \
                  packets:0, bytes:0, used:never, actions:dec_ttl,output:2\n";
    assert!(told.contains(wanted), "{told}");
    assert_eq!(appctl(&deployment, "dpctl/dump-flows --names")?, told);
    network
        .host(1)
        .send(&["eth(dst=02:00:00:00:00:02) / ipv4(dst=10.0.0.1,ttl=64) / tcp"])?;
    context.wait_until("the frame to be counted", || {
        let told = appctl(&deployment, "dpif/dump-flows br0")?;
        Ok(told.contains("packets:1, bytes:"))
    })?;
    let shown = appctl(&deployment, "dpctl/show -s")?;
    assert!(
        shown.contains("  flows: 2\n") && shown.contains(": br0 (tap)\n"),
        "{shown}"
    );
    assert!(shown.contains("    collisions:?\n"), "{shown}");
    for refused in [
        "dpctl/add-flow in_port(1) 2",
        "dpctl/add-if ovs-netdev p9",
        "dpctl/dump-conntrack",
        "dpctl/parse-actions 1",
    ] {
        let said = appctl(&deployment, refused)?;
        assert!(
            said.ends_with("(Operation not supported)\n"),
            "{refused}: {said}"
        );
    }
    Ok(())
}

fn what_workers_did_is_told_and_counted_anew(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let nothing = appctl(&deployment, "dpif-netdev/pmd-stats-show")?;
    assert_eq!(nothing, "please specify an existing datapath\n");
    deployment.vsctl(TWO_PORTS)?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    let received = || {
        let told = appctl(&deployment, "dpif-netdev/pmd-stats-show")?;
        let lines = told.lines();
        let counts = lines.filter_map(|line| line.trim().strip_prefix("packets received: "));
        Ok::<_, Failure>(
            counts
                .filter_map(|count| count.parse::<u64>().ok())
                .sum::<u64>(),
        )
    };
    let before = received()?;
    assert!(before >= 2, "{before}");
    appctl(&deployment, "dpif-netdev/pmd-stats-clear")?;
    assert!(received()? < before);
    let queues = appctl(&deployment, "dpif-netdev/pmd-rxq-show")?;
    let wanted = "  port: p1                queue-id:  0 (enabled)   pmd usage: NOT AVAIL\n";
    assert!(
        queues.contains("pmd thread numa_id 0 core_id ") && queues.contains(wanted),
        "{queues}"
    );
    let upcalls = appctl(&deployment, "upcall/show")?;
    assert!(
        upcalls.starts_with("netdev@ovs-netdev:\n  flows         : (current 1)\n"),
        "{upcalls}"
    );
    assert!(appctl(&deployment, "memory/show")?.contains("ports:3 rules:1 "));
    assert!(appctl(&deployment, "coverage/show")?.ends_with(" events never hit\n"));
    assert_eq!(
        appctl(
            &deployment,
            "coverage/read-counter control_messages_refused"
        )?,
        "0\n"
    );
    Ok(())
}

fn garbage_at_the_socket_is_refused_and_others_go_on(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon()?;
    let pid = fs::read_to_string(deployment.rundir.join("ovs-vswitchd.pid"))?;
    let socket = deployment
        .rundir
        .join(format!("ovs-vswitchd.{}.ctl", pid.trim()));
    let long = format!(r#"{{"id":0,"method":"{}"#, "a".repeat(1 << 17));
    let garbage: [&[u8]; 6] = [
        b"GET / HTTP/1.0\r\n\r\n",
        b"\xff\xfe\x00\x01",
        br#"{"id":0,"method":7,"params":[]}"#,
        br#"{"id":0,"method":"version","params":[1]}"#,
        b"[[[[",
        long.as_bytes(),
    ];
    // One that says nothing more keeps nobody waiting.
    let mut silent = UnixStream::connect(&socket)?;
    silent.write_all(b"{\"id\":")?;
    for bytes in garbage {
        let mut stream = UnixStream::connect(&socket)?;
        stream.set_read_timeout(Some(WAIT_LIMIT))?;
        // It may have been left before all was said.
        let _ = stream
            .write_all(bytes)
            .and_then(|()| stream.shutdown(Shutdown::Write));
        let mut said = String::new();
        let _ = stream.read_to_string(&mut said);
        assert!(
            said.is_empty() || said.contains(r#""result":null,"error":"#),
            "{said}"
        );
    }
    daemon.wait_for_log("a client of the control socket was left: no request of JSON-RPC")?;
    daemon.wait_for_log("the request is too long")?;
    assert!(appctl(&deployment, "version")?.contains("Comporta"));
    Ok(())
}

/// Frames that are handed to a dummy, and questions about what came of them.
const HANDED: [&str; 13] = [
    "netdev-dummy/receive p1 in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800),ipv4(src=10.0.0.9,dst=10.0.0.1,proto=6,tos=0,ttl=64,frag=no),tcp(src=9,dst=80) --len 100",
    "netdev-dummy/receive p1 in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800),ipv4(src=10.0.0.9,dst=10.0.0.1,proto=6,tos=0,ttl=64,frag=no),tcp(src=9,dst=80)",
    "netdev-dummy/receive p1 0200000000010200000000090806000108000604000102000000000a0a00000102000000000b0a000002",
    "netdev-dummy/receive p9 00",
    "netdev-dummy/receive p1 zz",
    "netdev-dummy/receive p1",
    "netdev-dummy/conn-state p1",
    "netdev-dummy/set-admin-state p1 down",
    "netdev-dummy/set-admin-state p1 up",
    "netdev-dummy/set-admin-state p1 sideways",
    "netdev-dummy/set-admin-state p9 up",
    "time/warp x",
    "time/warp",
];

fn frames_handed_to_dummies_go_as_in_open_vswitch(context: &TestContext) -> TestResult {
    let (here, there) = (TestNetwork::new(context, 1)?, TestNetwork::new(context, 1)?);
    let (ours, other) = (
        Deployment::in_directory(&here, "ours")?,
        Deployment::in_directory(&there, "theirs")?,
    );
    let dummy = "--enable-dummy=override";
    let (daemon, _theirs) = (
        ours.start_daemon_with(dummy)?,
        start_ovs_vswitchd(&other, dummy)?,
    );
    daemon.wait_for_log("INFO ready")?;
    for deployment in [&ours, &other] {
        let pcap = deployment.rundir.join("p2.pcap");
        deployment.vsctl(&format!(
            "{TWO_PORTS} -- set Bridge br0 datapath_type=dummy fail_mode=secure \
             -- set Interface p1 type=dummy ofport_request=1 -- set Interface p2 type=dummy ofport_request=2 options:tx_pcap={}",
            pcap.display()
        ))?;
        for flow in FLOWS {
            deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
        }
        // No interface of the system has these names.
        let links = deployment.network.run("ip -o link")?.expect_success()?;
        assert!(!links.contains("br0") && !links.contains("p2"), "{links}");
    }
    for question in HANDED {
        assert_eq!(
            appctl(&ours, question)?,
            appctl(&other, question)?,
            "{question}"
        );
    }
    let counted = |deployment| {
        let text = appctl(deployment, "bridge/dump-flows br0")?;
        let lines = text.lines().filter(|line| !line.contains("table_id=254"));
        let mut lines: Vec<_> = lines.map(timeless).collect();
        lines.sort();
        Ok::<_, Failure>(lines)
    };
    context.wait_until("the same counts of the same frames", || {
        Ok(counted(&ours)? == counted(&other)?)
    })?;
    assert!(
        counted(&ours)?
            .iter()
            .any(|line| line.contains("n_packets=2, n_bytes=218, priority=9"))
    );
    // What left is the same, but for when, and what a flow does not say behind its TCP flags.
    let left = |deployment: &Deployment<'_, '_>| {
        let file =
            fs::read(deployment.rundir.join("p2.pcap")).map_err(Failure::to("read a capture"))?;
        Ok::<_, Failure>(pcap_frames(&file))
    };
    context.wait_until("all frames to be written down", || {
        Ok(left(&ours)?.len() == 3 && left(&other)?.len() == 3)
    })?;
    assert_eq!(heads(left(&ours)?), heads(left(&other)?));
    let ports = |deployment| {
        let text = appctl(deployment, "dpif/show")?;
        Ok::<_, Failure>(text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(ports(&ours)?, ports(&other)?);
    Ok(())
}

/// The lengths of frames, and their beginnings up to TCP's flags.
fn heads(frames: Vec<Vec<u8>>) -> Vec<(usize, Vec<u8>)> {
    let head = |frame: Vec<u8>| (frame.len(), frame.into_iter().take(48).collect());
    frames.into_iter().map(head).collect()
}

fn time_is_stopped_and_put_forward_for_tests(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon_with("--enable-dummy")?;
    daemon.wait_for_log("INFO ready")?;
    deployment.vsctl("add-br br0 -- set Bridge br0 datapath_type=dummy fail_mode=secure -- add-port br0 d1 -- set Interface d1 type=dummy")?;
    assert_eq!(appctl(&deployment, "time/stop")?, "");
    deployment.run_tool("ovs-ofctl add-flow br0 idle_timeout=600,actions=NORMAL")?;
    appctl(
        &deployment,
        "netdev-dummy/receive d1 02000000000102000000000988b50000",
    )?;
    context.wait_until("the sender to be learned", || {
        Ok(appctl(&deployment, "fdb/show br0")?.contains("02:00:00:00:00:09"))
    })?;
    assert_eq!(appctl(&deployment, "time/warp 200000 1000")?, "warped\n");
    let flows = appctl(&deployment, "bridge/dump-flows br0")?;
    assert!(flows.starts_with("duration=200s, "), "{flows}");
    appctl(&deployment, "time/warp 150000")?;
    assert!(!appctl(&deployment, "fdb/show br0")?.contains("02:00:00:00:00:09"));
    assert!(appctl(&deployment, "bridge/dump-flows br0")?.contains("NORMAL"));
    appctl(&deployment, "time/warp 300000")?;
    assert_eq!(appctl(&deployment, "bridge/dump-flows br0")?, "");
    Ok(())
}
