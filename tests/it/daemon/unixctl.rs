//! The control socket: replies to commands, compared with a real `ovs-vswitchd` with the same
//! configuration.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use testbed::Failure;

use crate::support::comparison::NetworkPair;
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::{appctl, start_ovs_vswitchd};
use crate::support::pcap::pcap_frames;

pub(crate) const TESTS: &[SystemTest] = tests![
    control_socket_replies_like_open_vswitch,
    traces_match_open_vswitch,
    flows_of_real_ports_are_listed_on_request,
    worker_statistics_are_reported_and_cleared,
    control_socket_refuses_garbage_and_serves_other_clients,
    frames_of_dummy_ports_are_forwarded_like_by_open_vswitch,
    time_commands_stop_and_advance_the_clock,
];

/// Commands of Open vSwitch that other files test, or that belong to libraries which Comporta
/// lacks.
const EXCLUDED_PREFIXES: [&str; 6] = [
    "dpif-netlink/",
    "tnl/",
    "ovs/route/",
    "odp-execute/",
    "dpif-netdev/bond-show",
    "dpdk/",
];

/// Rules of both switches.
const FLOWS: [&str; 6] = [
    "table=0,priority=9,tcp,nw_dst=10.0.0.0/8,actions=dec_ttl,resubmit(,3)",
    "table=3,cookie=0x5,tcp,tp_dst=80,actions=output:2",
    "table=0,priority=8,dl_vlan=5,actions=strip_vlan,output:2",
    "table=0,priority=7,arp,actions=mod_vlan_vid:7,output:2",
    "table=0,priority=6,udp,actions=mod_nw_src:10.9.9.9,output:2",
    "table=0,priority=1,actions=NORMAL",
];

fn add_bridge(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Bridge br0 datapath_type=netdev fail_mode=secure \
         -- set Interface p1 ofport_request=1 -- set Interface p2 ofport_request=2"
    ))?;
    // While the host port is down, only one of the switches floods to it.
    deployment
        .network
        .run("ip link set br0 up")?
        .expect_success()?;
    let output = || deployment.run_tool("ovs-ofctl show br0");
    deployment
        .network
        .context
        .wait_until("the host port to be up", || {
            Ok(!output()?.contains("PORT_DOWN"))
        })?;
    for flow in FLOWS {
        deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
    }
    Ok(())
}

/// Commands with equal replies.
const EQUAL_COMMANDS: [&str; 70] = [
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

fn control_socket_replies_like_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 2)?;
    let [comporta, ovs] = pair.deploy()?;
    let (_daemon, _ovs_vswitchd) = (comporta.start_daemon()?, start_ovs_vswitchd(&ovs, "")?);
    add_bridge(&comporta)?;
    add_bridge(&ovs)?;
    for command in EQUAL_COMMANDS {
        assert_eq!(
            appctl(&comporta, command)?,
            appctl(&ovs, command)?,
            "{command}"
        );
    }
    // The same commands with the same arguments, in the same columns.
    let listed = appctl(&comporta, "list-commands")?;
    for line in appctl(&ovs, "list-commands")?.lines() {
        let name = line.trim_start();
        let is_excluded = EXCLUDED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix));
        assert!(
            is_excluded || listed.lines().any(|text| text == line),
            "{line}\n{listed}"
        );
    }
    // The same rules, except for the hidden ones of Open vSwitch's last table.
    for options in ["", "--offload-stats "] {
        let dump = |deployment| {
            let text = appctl(deployment, &format!("bridge/dump-flows {options}br0"))?;
            let mut lines: Vec<_> = text
                .lines()
                .filter(|line| !line.contains("table_id=254"))
                .map(without_duration)
                .collect();
            lines.sort();
            Ok::<_, Failure>(lines)
        };
        assert_eq!(dump(&comporta)?, dump(&ovs)?);
    }
    // The same ports; datapath port numbers differ.
    let port_lines = |deployment, command: &str| {
        let text = appctl(deployment, command)?;
        let lines = text.lines().skip(1);
        let words = lines.map(|line| match line.split_once('/') {
            Some((before, after)) => format!(
                "{before} {}",
                after.split_once(' ').map_or("", |(_, kind)| kind)
            ),
            None => line.to_owned(),
        });
        Ok::<_, Failure>(words.collect::<Vec<_>>())
    };
    assert_eq!(
        port_lines(&comporta, "dpif/show")?,
        port_lines(&ovs, "dpif/show")?
    );
    let version = appctl(&comporta, "version")?;
    assert!(
        version.starts_with("ovs-vswitchd (Comporta, in the place of Open vSwitch) "),
        "{version}"
    );
    Ok(())
}

/// A line without its duration, and with the older of two names of an action.
fn without_duration(line: &str) -> String {
    let words = line
        .split(", ")
        .filter(|word| !word.starts_with("duration="));
    // The older name of the action.
    words
        .collect::<Vec<_>>()
        .join(", ")
        .replace("pop_vlan", "strip_vlan")
}

/// Frames with equal traces.
const TRACED_FRAMES: [&str; 7] = [
    "br0 in_port=1,tcp,nw_dst=10.0.0.1,nw_ttl=64,tp_dst=80",
    "br0 in_port=p1,tcp,nw_dst=10.0.0.1,nw_ttl=64,tp_dst=80 -generate",
    "br0 in_port=2,dl_src=02:00:00:00:00:09,dl_dst=02:00:00:00:00:01,dl_type=0x88b5",
    "br0 in_port=1,dl_vlan=5,dl_vlan_pcp=3,dl_type=0x88b5",
    "br0 in_port=1,arp,arp_op=1",
    "br0 in_port=1,udp,nw_src=10.0.0.9",
    "br0 in_port=1 0200000000010200000000090806000108000604000102000000000a0a00000102000000000b0a000002",
];

fn traces_match_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 2)?;
    let [comporta, ovs] = pair.deploy()?;
    let (_daemon, _ovs_vswitchd) = (comporta.start_daemon()?, start_ovs_vswitchd(&ovs, "")?);
    add_bridge(&comporta)?;
    add_bridge(&ovs)?;
    for frame in TRACED_FRAMES {
        let trace = |deployment| {
            let output = appctl(deployment, &format!("ofproto/trace {frame}"))?;
            Ok::<_, Failure>(comparable_trace(&output, &datapath_port_names(deployment)?))
        };
        assert_eq!(trace(&comporta)?, trace(&ovs)?, "{frame}");
    }
    // The megaflow of the first frame is equal.
    let megaflow = |deployment| {
        let output = appctl(deployment, &format!("ofproto/trace {}", TRACED_FRAMES[0]))?;
        let line = output.lines().find(|line| line.starts_with("Megaflow: "));
        Ok::<_, Failure>(line.map(str::to_owned))
    };
    assert_eq!(megaflow(&comporta)?, megaflow(&ovs)?);
    // A datapath flow, whose port identifies the bridge.
    let number = datapath_port_names(&comporta)?
        .into_iter()
        .find(|(_, name)| name == "p1");
    let number = number.map(|(number, _)| number).unwrap_or_default();
    let flow = format!(
        "in_port({number}),eth(src=02:00:00:00:00:09,dst=02:00:00:00:00:01),eth_type(0x0800),ipv4(dst=10.0.0.1,proto=6,ttl=64,frag=no),tcp(dst=80)"
    );
    for words in [flow.clone(), format!("netdev@ovs-netdev {flow}")] {
        let output = appctl(&comporta, &format!("ofproto/trace {words}"))?;
        assert!(
            output.contains(" 3. tcp,tp_dst=80, priority 32768, cookie 0x5\n    output:2\n"),
            "{output}"
        );
    }
    // A packet-out.
    let output = appctl(
        &comporta,
        "ofproto/trace-packet-out br0 in_port=1,tcp mod_vlan_vid:5,output:2",
    )?;
    assert!(
        output.contains("Datapath actions: push_vlan(vid=5,pcp=0),"),
        "{output}"
    );
    let refused = appctl(
        &comporta,
        "ofproto/trace-packet-out br0 in_port=1,tcp group:7",
    )?;
    assert!(refused.contains("invalid actions"), "{refused}");
    Ok(())
}

/// Names of datapath ports by number.
fn datapath_port_names(
    deployment: &Deployment<'_, '_>,
) -> Result<BTreeMap<String, String>, Failure> {
    let output = appctl(deployment, "dpctl/show")?;
    let ports = output.lines().filter_map(|line| {
        let (number, name) = line.trim().strip_prefix("port ")?.split_once(": ")?;
        let name = name.split(' ').next()?;
        Some((number.to_owned(), name.to_owned()))
    });
    Ok(ports.collect())
}

/// A trace without the megaflow, and with names instead of datapath port numbers.
fn comparable_trace(output: &str, ports: &BTreeMap<String, String>) -> String {
    let lines = output
        .lines()
        .filter(|line| !line.starts_with("Megaflow: "));
    let lines = lines.map(|line| match line.strip_prefix("Datapath actions: ") {
        // An absent inner tag, and an action with two names.
        None => line
            .replace(",vlan_tci1=0x0000", "")
            .replace("pop_vlan", "strip_vlan"),
        Some(actions) => {
            let mut port_lines: Vec<_> = actions
                .split(',')
                .map(|action| ports.get(action).map_or(action, String::as_str))
                .collect();
            port_lines.sort_unstable();
            port_lines.join(",")
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn flows_of_real_ports_are_listed_on_request(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    deployment.run_tool(
        "ovs-ofctl add-flow br0 in_port=1,udp,nw_dst=10.0.0.0/8,actions=dec_ttl,output:2",
    )?;
    // The first list has workers count frames.
    let output = appctl(&deployment, "dpctl/dump-flows --names")?;
    assert!(!output.contains("dst=10.0.0.1/255.0.0.0"), "{output}");
    for (address, port) in [("10.0.0.1", 7), ("10.9.0.1", 8), ("10.9.0.1", 9)] {
        let stack =
            format!("eth(dst=02:00:00:00:00:02) / ipv4(dst={address},ttl=64) / udp(dst={port})");
        network.host(1).send(&[stack.as_str()])?;
    }
    // One megaflow has all of them: its rule examines a prefix, and no port.
    let is_listed = |line: &str| {
        line.starts_with("recirc_id(0),in_port(p1),")
            && line.contains("ipv4(dst=10.0.0.1/255.0.0.0,proto=17,ttl=64,frag=no), packets:3, ")
            && line.ends_with("actions:set(ipv4(ttl=63)),p2")
    };
    for command in ["dpctl/dump-flows --names", "dpif/dump-flows --names br0"] {
        context.wait_until("the flow of the frames", || {
            Ok(appctl(&deployment, command)?.lines().any(is_listed))
        })?;
    }
    let filtered = |filter: &str| {
        let words = format!("dpctl/dump-flows --names filter={filter}");
        Ok::<_, Failure>(appctl(&deployment, &words)?.lines().any(is_listed))
    };
    assert!(filtered("udp,in_port=p1")? && !filtered("tcp")?);
    // A change of the rules changes the actions of the flow.
    deployment.run_tool("ovs-ofctl mod-flows br0 in_port=1,udp,nw_dst=10.0.0.0/8,actions=drop")?;
    context.wait_until("the changed actions", || {
        let output = appctl(&deployment, "dpctl/dump-flows --names")?;
        let mut lines = output.lines();
        Ok(lines
            .any(|line| line.contains("dst=10.0.0.1/255.0.0.0") && line.ends_with("actions:drop")))
    })?;
    appctl(&deployment, "dpctl/del-flows")?;
    let output = appctl(&deployment, "dpctl/dump-flows --names")?;
    assert!(!output.contains("dst=10.0.0.1/255.0.0.0"), "{output}");
    let output = appctl(&deployment, "dpctl/show -s")?;
    assert!(
        output.contains("  flows: 2\n") && output.contains(": br0 (tap)\n"),
        "{output}"
    );
    assert!(output.contains("    collisions:?\n"), "{output}");
    for refused in ["dpctl/add-if ovs-netdev p9", "dpctl/parse-actions 1"] {
        let error_text = appctl(&deployment, refused)?;
        assert!(
            error_text.ends_with("(Operation not supported)\n"),
            "{refused}: {error_text}"
        );
    }
    Ok(())
}

fn worker_statistics_are_reported_and_cleared(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let error = appctl(&deployment, "dpif-netdev/pmd-stats-show")?;
    assert_eq!(error, "please specify an existing datapath\n");
    deployment.vsctl(TWO_PORTS)?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    let received = || {
        let output = appctl(&deployment, "dpif-netdev/pmd-stats-show")?;
        let lines = output.lines();
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
    let expected = "  port: p1                queue-id:  0 (enabled)   pmd usage: NOT AVAIL\n";
    assert!(
        queues.contains("pmd thread numa_id 0 core_id ") && queues.contains(expected),
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

fn control_socket_refuses_garbage_and_serves_other_clients(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon()?;
    let pid = fs::read_to_string(deployment.rundir.join("ovs-vswitchd.pid"))?;
    let socket = deployment
        .rundir
        .join(format!("ovs-vswitchd.{}.ctl", pid.trim()));
    let long = format!(r#"{{"id":0,"method":"{}"#, "a".repeat(1 << 21));
    let garbage: [&[u8]; 6] = [
        b"GET / HTTP/1.0\r\n\r\n",
        b"\xff\xfe\x00\x01",
        br#"{"id":0,"method":7,"params":[]}"#,
        br#"{"id":0,"method":"version","params":[1]}"#,
        b"[[[[",
        long.as_bytes(),
    ];
    // A client with an incomplete request delays no other.
    let mut silent = UnixStream::connect(&socket)?;
    silent.write_all(b"{\"id\":")?;
    for bytes in garbage {
        let mut stream = UnixStream::connect(&socket)?;
        stream.set_read_timeout(Some(WAIT_LIMIT))?;
        // The daemon may close the connection before it received all bytes.
        let _ = stream
            .write_all(bytes)
            .and_then(|()| stream.shutdown(Shutdown::Write));
        let mut error_text = String::new();
        let _ = stream.read_to_string(&mut error_text);
        assert!(
            error_text.is_empty() || error_text.contains(r#""result":null,"error":"#),
            "{error_text}"
        );
    }
    daemon.wait_for_log("control-socket client disconnected: not a JSON-RPC request")?;
    daemon.wait_for_log("the request is too long")?;
    assert!(appctl(&deployment, "version")?.contains("Comporta"));
    Ok(())
}

/// Commands that inject frames into a dummy port, and that query it.
const DUMMY_COMMANDS: [&str; 13] = [
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

fn frames_of_dummy_ports_are_forwarded_like_by_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 1)?;
    let [comporta, ovs] = pair.deploy()?;
    let dummy = "--enable-dummy=override";
    let (daemon, _ovs_vswitchd) = (
        comporta.start_daemon_with(dummy)?,
        start_ovs_vswitchd(&ovs, dummy)?,
    );
    daemon.wait_for_log("INFO ready")?;
    for deployment in [&comporta, &ovs] {
        let pcap = deployment.rundir.join("p2.pcap");
        deployment.vsctl(&format!(
            "{TWO_PORTS} -- set Bridge br0 datapath_type=dummy fail_mode=secure \
             -- set Interface p1 type=dummy ofport_request=1 -- set Interface p2 type=dummy ofport_request=2 options:tx_pcap={}",
            pcap.display()
        ))?;
        for flow in FLOWS {
            deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
        }
        // The host has no interfaces with these names.
        let links = deployment.network.run("ip -o link")?.expect_success()?;
        assert!(!links.contains("br0") && !links.contains("p2"), "{links}");
    }
    for command in DUMMY_COMMANDS {
        assert_eq!(
            appctl(&comporta, command)?,
            appctl(&ovs, command)?,
            "{command}"
        );
    }
    let flow_lines = |deployment| {
        let text = appctl(deployment, "bridge/dump-flows br0")?;
        let lines = text.lines().filter(|line| !line.contains("table_id=254"));
        let mut lines: Vec<_> = lines.map(without_duration).collect();
        lines.sort();
        Ok::<_, Failure>(lines)
    };
    context.wait_until("equal counters", || {
        Ok(flow_lines(&comporta)? == flow_lines(&ovs)?)
    })?;
    let counts = "n_packets=2, n_bytes=218, priority=9";
    let lines = flow_lines(&comporta)?;
    assert!(lines.iter().any(|line| line.contains(counts)));
    // Sent frames are equal, except for their times and for bytes after the TCP flags, which a flow
    // does not define.
    let sent_frames = |deployment: &Deployment<'_, '_>| {
        let file = fs::read(deployment.rundir.join("p2.pcap"))
            .map_err(Failure::to("read a capture file"))?;
        Ok::<_, Failure>(pcap_frames(&file))
    };
    context.wait_until("all sent frames in the capture files", || {
        Ok(sent_frames(&comporta)?.len() == 3 && sent_frames(&ovs)?.len() == 3)
    })?;
    assert_eq!(
        frame_prefixes(sent_frames(&comporta)?),
        frame_prefixes(sent_frames(&ovs)?)
    );
    let ports = |deployment| {
        let text = appctl(deployment, "dpif/show")?;
        Ok::<_, Failure>(text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(ports(&comporta)?, ports(&ovs)?);
    Ok(())
}

/// Lengths of frames, and their bytes up to the TCP flags.
fn frame_prefixes(frames: Vec<Vec<u8>>) -> Vec<(usize, Vec<u8>)> {
    let prefix = |frame: Vec<u8>| (frame.len(), frame.into_iter().take(48).collect());
    frames.into_iter().map(prefix).collect()
}

fn time_commands_stop_and_advance_the_clock(context: &TestContext) -> TestResult {
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
