//! Commands by which Kube-OVN and ovn-kubernetes use Open vSwitch, and the form in which their
//! parsers expect the output. `docs/guide/kubernetes.md` cites these tests.

use std::fs;

use packet::build::Stack;
use testbed::Failure;

use crate::support::command::{CommandOutput, number_after};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    kubernetes_metrics_commands_have_the_form_of_their_parsers,
    kubernetes_pod_commands_have_the_form_of_their_parsers,
    kubernetes_bandwidth_and_mirrors_of_pods_apply,
    kube_ovn_lists_and_flushes_connections_of_a_zone,
    ovn_kubernetes_replaces_the_flows_of_its_gateway_bridge,
];

/// Commands that create the integration bridge, and the ports of two pods and of the node; one
/// interface does not exist.
const POD_COMMANDS: [&str; 6] = [
    "add-br br-int -- set bridge br-int datapath_type=netdev fail_mode=secure",
    // Kube-OVN: pkg/daemon/ovs_linux.
    "--timeout=30 --may-exist add-port br-int p1 -- set interface p1 \
     external_ids:iface-id=web.default external_ids:vendor=kube-ovn external_ids:pod_name=web \
     external_ids:pod_namespace=default external_ids:ip=10.1.0.1 \
     external_ids:pod_netns=/var/run/netns/web",
    "--may-exist add-port br-int ovn0 -- set interface ovn0 type=internal \
     -- set interface ovn0 external_ids:iface-id=node-1 external_ids:ip=100.64.0.2",
    // ovn-kubernetes: pkg/cni/helper_linux, pkg/node/management-port.
    "--timeout=30 --may-exist add-port br-int p2 other_config:transient=true -- set interface p2 \
     external_ids:attached_mac=02:00:00:00:00:02 external_ids:iface-id=default_db \
     external_ids:iface-id-ver=1234 external_ids:sandbox=5678 \
     external_ids:ip_addresses=10.1.0.2/24 \
     -- --if-exists remove interface p2 external_ids k8s.ovn.org/network",
    "--timeout=15 -- --may-exist add-port br-int ovn-k8s-mp0 -- set interface ovn-k8s-mp0 \
     type=internal mtu_request=1400 external-ids:iface-id=k8s-node1",
    "--no-wait --may-exist add-port br-int lost_h -- set interface lost_h \
     external_ids:iface-id=lost.default",
];

/// A bridge between an uplink and pods, which ovn-kubernetes creates (pkg/util/nicstobridge).
const GATEWAY_COMMANDS: [&str; 2] = [
    "--timeout=15 -- --may-exist add-br br-ex -- br-set-external-id br-ex bridge-id br-ex \
     -- br-set-external-id br-ex bridge-uplink p3 -- set bridge br-ex fail-mode=standalone \
     datapath_type=netdev other_config:hwaddr=02:00:00:00:00:77 \
     -- --may-exist add-port br-ex p3 -- set port p3 other-config:transient=true",
    "add-port br-ex patch-ex -- set interface patch-ex type=patch options:peer=patch-int \
     -- add-port br-int patch-int -- set interface patch-int type=patch options:peer=patch-ex",
];

/// A command, and the form of its output.
struct CommandForm {
    command: &'static str,
    holds: fn(&str) -> bool,
}

/// Commands of the metrics: `pkg/metrics/ovs` and `pkg/pinger/util`.
const METRICS: [CommandForm; 10] = [
    CommandForm {
        command: "ovs-appctl -T 5 dpctl/dump-dps",
        holds: |output| output == "netdev@ovs-netdev\n",
    },
    CommandForm {
        command: "ovs-appctl --timeout=15 dpctl/show netdev@ovs-netdev",
        holds: is_datapath,
    },
    CommandForm {
        command: "ovs-appctl -T 5 dpctl/show ovs-netdev",
        holds: is_datapath,
    },
    CommandForm {
        command: "ovs-appctl memory/show",
        holds: |output| output.split_whitespace().all(is_key_and_number),
    },
    CommandForm {
        command: "ovs-ofctl -t 5 dump-aggregate br-int",
        holds: |output| has_field(output, "flow_count="),
    },
    CommandForm {
        command: "ovs-appctl coverage/show",
        holds: |output| {
            let totals = output.lines().filter(|line| line.contains("total:"));
            let mut words = totals.map(|line| line.split_whitespace().collect::<Vec<_>>());
            words.any(|words| {
                words[0] == "bridge_reconfigure" && words.last().is_some_and(|word| is_number(word))
            })
        },
    },
    CommandForm {
        command: "ovs-vsctl --no-headings --data=bare --format=csv --columns=name,port list Bridge",
        holds: |output| {
            let mut fields = output
                .lines()
                .map(|line| line.split(',').collect::<Vec<_>>());
            fields.all(|fields| fields.len() == 2 && !fields[1].is_empty())
        },
    },
    CommandForm {
        command: "ovs-vsctl --no-headings --data=bare --format=csv \
                  --columns=_uuid,name,interfaces list Port",
        holds: |output| output.lines().all(|line| line.split(',').count() == 3),
    },
    CommandForm {
        command: "ovs-vsctl --no-headings --data=bare --format=csv \
                  --columns=name,admin_state,link_state,statistics,ifindex,link_resets,mtu,ofport,\
                  ingress_policing_burst,ingress_policing_rate,status,mac_in_use \
                  find Interface name=p1",
        holds: is_interface,
    },
    CommandForm {
        command: "ovs-vsctl get Open_vSwitch . ovs_version",
        holds: |output| output.starts_with("\"3.1.0"),
    },
];

/// Commands about pods and nodes.
const PODS: [CommandForm; 15] = [
    // Kube-OVN removes interfaces that are lost (pkg/ovs/ovs-vsctl).
    CommandForm {
        command: "ovs-vsctl --no-heading --columns=name,error find interface ofport=-1",
        holds: |output| output.starts_with("lost_h\n") && output.contains("No such device"),
    },
    CommandForm {
        command: "ovs-vsctl --no-heading --columns=datapath_type find bridge name=br-int",
        holds: |output| output.trim() == "netdev",
    },
    CommandForm {
        command: "ovs-vsctl --data=bare --no-heading --columns=name \
                  find interface external-ids:iface-id=web.default",
        holds: |output| output == "p1\n",
    },
    CommandForm {
        command: "ovs-vsctl --data=bare --format=csv --no-heading --columns=_uuid,external_ids \
                  find interface external_ids:iface-id!=[]",
        holds: |output| {
            output.lines().count() == 5 && output.lines().all(|line| line.contains("iface-id="))
        },
    },
    // kubectl-ko traces a packet of a pod.
    CommandForm {
        command: "ovs-appctl ofproto/trace br-int in_port=p1,tcp,nw_src=10.1.0.1,nw_dst=10.1.0.2,\
                  dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,tcp_src=1000,tcp_dst=80",
        holds: |output| output.contains("Datapath actions: "),
    },
    // ovn-kubernetes waits for the rules of a pod (pkg/cni/ovs).
    CommandForm {
        command: "ovs-ofctl --timeout=10 --no-stats --strict dump-flows br-int \
                  table=9,dl_src=02:00:00:00:00:02",
        holds: |output| {
            output
                .trim()
                .ends_with("dl_src=02:00:00:00:00:02 actions=drop")
        },
    },
    CommandForm {
        command: "ovs-vsctl --timeout=15 --if-exists get Interface p2 ofport",
        holds: |output| is_number(output.trim()),
    },
    CommandForm {
        command: "ovs-vsctl --timeout=15 --if-exists get interface ovn-k8s-mp0 mac_in_use",
        holds: |output| output.trim().matches(':').count() == 5,
    },
    CommandForm {
        command: "ovs-vsctl --timeout=15 --if-exists get Open_vSwitch . other_config:hw-offload",
        holds: |output| output.trim().is_empty(),
    },
    CommandForm {
        command: "ovs-vsctl port-to-br p3",
        holds: |output| output.trim() == "br-ex",
    },
    // Kube-OVN keeps a static address on a patch port (pkg/daemon/fdb).
    CommandForm {
        command: "ovs-appctl fdb/add br-ex patch-ex 341 be:42:32:58:3d:73",
        holds: str::is_empty,
    },
    CommandForm {
        command: "ovs-appctl fdb/show br-ex",
        holds: |output| {
            let mut lines = output
                .lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>());
            lines.any(|words| {
                words.len() == 4 && words[1..] == ["341", "be:42:32:58:3d:73", "static"]
            })
        },
    },
    CommandForm {
        command: "ovs-appctl fdb/del br-ex 341 be:42:32:58:3d:73",
        holds: str::is_empty,
    },
    // Large packets go to the kernel if the data path has this action (pkg/util/ovs).
    CommandForm {
        command: "ovs-appctl --timeout=15 dpif/show-dp-features br-int",
        holds: |output| output.contains("Check pkt length action: Yes\n"),
    },
    // The number of a port is before the first bracket, its name behind it (pkg/util/ovs).
    CommandForm {
        command: "ovs-ofctl show br-int",
        holds: |output| {
            let ports = output.lines().filter(|line| line.contains("addr:"));
            let mut names = ports.map(|line| line.split(['(', ')']).nth(1).unwrap_or_default());
            names.any(|name| name == "p1")
        },
    },
];

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

fn is_key_and_number(word: &str) -> bool {
    let pair = word.split_once([':', '=']);
    pair.is_some_and(|(_, value)| is_number(value))
}

fn has_field(output: &str, key: &str) -> bool {
    let mut fields = output
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(key));
    fields.any(is_number)
}

/// True for the output of `dpctl/show`: the lookups, the number of flows and the ports.
fn is_datapath(output: &str) -> bool {
    let mut lines = output.lines().skip(1).map(str::trim);
    let lookups = lines.next().and_then(|line| line.strip_prefix("lookups: "));
    let has_lookups = lookups.is_some_and(|words| words.split(' ').all(is_key_and_number));
    let flows = lines.next().and_then(|line| line.strip_prefix("flows: "));
    let mut ports = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    has_lookups
        && flows.is_some_and(is_number)
        && ports.all(|words| {
            words[0] == "port" && words.len() >= 3 && is_number(words[1].trim_end_matches(':'))
        })
}

/// True for the columns of an interface that is up.
fn is_interface(output: &str) -> bool {
    let fields: Vec<_> = output.trim().split(',').collect();
    let statistics = fields[3].split(' ');
    let names = ["rx_packets", "rx_bytes", "rx_dropped", "rx_errors"];
    let names = names
        .into_iter()
        .chain(["tx_packets", "tx_bytes", "tx_dropped", "tx_errors"]);
    fields.len() == 12
        && fields[..3] == ["p1", "up", "up"]
        && statistics.clone().all(is_key_and_number)
        && names
            .clone()
            .all(|name| has_field(fields[3], &format!("{name}=")))
        && fields[4..10].iter().all(|field| is_number(field))
        && fields[10].contains("driver_name=veth")
        && fields[11].matches(':').count() == 5
}

/// Runs the commands that configure a node.
fn configure(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    for command in POD_COMMANDS.iter().chain(&GATEWAY_COMMANDS) {
        deployment.run_tool(&format!("ovs-vsctl {command}"))?;
    }
    deployment
        .run_tool("ovs-ofctl add-flow br-int table=9,dl_src=02:00:00:00:00:02,actions=drop")?;
    Ok(())
}

/// Asserts that all commands have the expected output. Some columns follow within a second.
fn check_forms(deployment: &Deployment<'_, '_>, forms: &[CommandForm]) -> TestResult {
    for form in forms {
        let mut output = String::new();
        let met = deployment.network.context.wait_until(form.command, || {
            output = deployment.run_tool(form.command)?;
            Ok((form.holds)(&output))
        });
        met.map_err(|failure| TestError::Fail(format!("{failure}\n{output}")))?;
    }
    Ok(())
}

fn kubernetes_metrics_commands_have_the_form_of_their_parsers(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    configure(&deployment)?;
    check_forms(&deployment, &METRICS)?;
    // The socket that the file of the process id names.
    let pid = fs::read_to_string(deployment.rundir.join("ovs-vswitchd.pid"))?;
    let socket = deployment
        .rundir
        .join(format!("ovs-vswitchd.{}.ctl", pid.trim()));
    deployment.run_tool(&format!("ovs-appctl -t {} memory/show", socket.display()))?;
    // The kernel has no part in the data path.
    deployment.vsctl(
        "add-port br-int ovn-2 -- set interface ovn-2 type=geneve options:remote_ip=172.16.0.2",
    )?;
    network
        .run("ip link show genev_sys_6081")?
        .expect_failure()?;
    let kernel = CommandOutput::run(context, deployment.program("ovs-dpctl dump-dps"))?;
    assert!(!kernel.stdout.contains("ovs-netdev"), "{kernel:?}");
    Ok(())
}

fn kubernetes_pod_commands_have_the_form_of_their_parsers(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    configure(&deployment)?;
    check_forms(&deployment, &PODS)?;
    let link = |name: &str| {
        network
            .run(&format!("ip link show {name}"))?
            .expect_success()
    };
    assert!(link("br-ex")?.contains("02:00:00:00:00:77"));
    assert!(link("ovn-k8s-mp0")?.contains(" mtu 1400 "));
    // An internal interface moves to the pod, and leaves with its port.
    let pod = &network.host(1).namespace;
    network.switch_namespace.hand_over("ovn0", pod)?;
    network
        .host(1)
        .run("ip link set ovn0 up")?
        .expect_success()?;
    for interface in ["ovn0", "p1", "lost_h"] {
        deployment.vsctl(&format!(
            "--if-exists --with-iface del-port br-int {interface}"
        ))?;
    }
    network.host(1).run("ip link show ovn0")?.expect_failure()?;
    Ok(())
}

/// Maximum rate of the class that the kernel has for the queue of a port.
fn queue_rate(network: &TestNetwork<'_>, port: &str) -> Result<Option<String>, Failure> {
    let classes = network
        .run(&format!("tc class show dev {port}"))?
        .expect_success()?;
    let queue = classes
        .lines()
        .find(|line| line.starts_with("class htb 1:1 "));
    let ceil = queue.and_then(|line| line.split_once("ceil "));
    Ok(ceil.and_then(|(_, rest)| rest.split(' ').next().map(str::to_owned)))
}

fn kubernetes_bandwidth_and_mirrors_of_pods_apply(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    configure(&deployment)?;
    let vsctl = |words: &str| deployment.vsctl(words);
    // Kube-OVN: a queue of its own for each pod (pkg/ovs/ovs-vsctl_linux).
    let queue = vsctl(
        "create queue other_config:max-rate=20000000 other_config:priority=3 \
         external-ids:iface-id=web.default external-ids:pod=default/web",
    )?;
    let qos = vsctl(&format!(
        "create qos queues:0={queue} type=linux-htb external-ids:iface-id=web.default"
    ))?;
    vsctl(&format!("set port p1 qos={qos}"))?;
    vsctl("set interface p1 ingress_policing_rate=10000 ingress_policing_burst=8000")?;
    let found =
        "--data=bare --format=csv --no-heading --columns=_uuid,queues find qos queues:0!=[]";
    assert_eq!(vsctl(found)?, format!("{qos},0={queue}"));
    assert_eq!(queue_rate(&network, "p1")?.as_deref(), Some("20Mbit"));
    vsctl(&format!("remove queue {queue} other_config max-rate"))?;
    assert_ne!(queue_rate(&network, "p1")?.as_deref(), Some("20Mbit"));
    vsctl("--if-exists clear port p1 qos")?;
    assert_eq!(queue_rate(&network, "p1")?, None);
    // ovn-kubernetes: a rate for the whole port (pkg/cni/bandwidth).
    let qos =
        vsctl("create qos type=linux-htb other-config:max-rate=5000000 external-ids=sandbox=5")?;
    vsctl(&format!("set port p2 qos={qos}"))?;
    let classes = network.run("tc class show dev p2")?.expect_success()?;
    assert!(classes.contains("ceil 5Mbit"), "{classes}");
    vsctl("--if-exists clear port p2 qos")?;
    // Latency and loss of a pod are not supported, and the interface says so.
    let qos = vsctl("create qos type=linux-netem other_config:latency=10000 other_config:loss=5")?;
    vsctl(&format!("set port p2 qos={qos}"))?;
    let error = vsctl("get interface p2 error")?;
    assert!(error.contains("linux-netem: ignored"), "{error}");
    check_mirror(&deployment)
}

/// Asserts that the mirror of Kube-OVN copies what a pod receives.
fn check_mirror(deployment: &Deployment<'_, '_>) -> TestResult {
    let network = deployment.network;
    deployment.vsctl("--if-exists del-port br-ex p3")?;
    deployment.vsctl(
        "--may-exist add-port br-int p3 -- clear bridge br-int mirrors -- --id=@p get port p3 \
         -- --id=@m create mirror name=ovn-mirror output-port=@p -- add bridge br-int mirrors @m",
    )?;
    let port = deployment.vsctl("get port p2 _uuid")?;
    deployment.vsctl(&format!("add mirror ovn-mirror select_dst_port {port}"))?;
    deployment.run_tool("ovs-ofctl add-flow br-int in_port=p1,dl_type=0x88b6,actions=output:p2")?;
    let mut capture = network.host(3).capture_frames()?;
    let frame = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01,type=0x88b6) / data(50)";
    network.host(1).send(&[frame])?;
    loop {
        let text = Stack::dissect(&capture.next_frame()?).to_string();
        if text.contains("0x88b6") {
            return Ok(());
        }
    }
}

/// A connection as Kube-OVN parses it (pkg/ovs/ct_linux), as an argument of
/// `dpctl/flush-conntrack`.
fn flush_argument(line: &str) -> String {
    let (protocol, rest) = line.split_once(",orig=(").expect("a connection");
    let (original, _) = rest.split_once(')').expect("a tuple");
    let number = match protocol {
        "icmp" => 1,
        "tcp" => 6,
        "udp" => 17,
        _ => panic!("{line}"),
    };
    let field = |field: &str| {
        let (key, value) = field.split_once('=').expect("a pair");
        let key = match key {
            "src" => "ct_nw_src",
            "dst" => "ct_nw_dst",
            "sport" => "ct_tp_src",
            "dport" => "ct_tp_dst",
            "id" => "icmp_id",
            "type" => "icmp_type",
            "code" => "icmp_code",
            _ => panic!("{line}"),
        };
        format!("{key}={value}")
    };
    let fields: Vec<_> = original.split(',').map(field).collect();
    format!("ct_nw_proto={number},{}", fields.join(","))
}

fn kube_ovn_lists_and_flushes_connections_of_a_zone(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    configure(&deployment)?;
    deployment.run_tool("ovs-ofctl add-flow br-int ip,actions=ct(commit,zone=5),output:p2")?;
    let ip = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / ipv4(src=10.1.0.1,dst=10.1.0.2)";
    let stacks = [
        "icmp(type=8,rest=458753) / data(20)",
        "tcp(src=1001,dst=80,flags=S)",
        "udp(src=1000,dst=53) / data(20)",
    ];
    let stacks = stacks.map(|transport| format!("{ip} / {transport}"));
    let stacks = stacks.each_ref().map(String::as_str);
    network.host(1).send(&stacks)?;
    let dump = || deployment.run_tool("ovs-appctl dpctl/dump-conntrack zone=5");
    context.wait_until("three connections", || Ok(dump()?.lines().count() == 3))?;
    assert_eq!(
        deployment.run_tool("ovs-appctl dpctl/dump-conntrack zone=6")?,
        ""
    );
    let list = dump()?;
    for (line, remaining) in list.lines().zip([2, 1, 0]) {
        let tuple = flush_argument(line);
        deployment.run_tool(&format!("ovs-appctl dpctl/flush-conntrack zone=5 {tuple}"))?;
        let rest = dump()?;
        assert_eq!(rest.lines().count(), remaining, "{tuple}\n{rest}");
    }
    // All connections of a pod.
    network.host(1).send(&stacks)?;
    context.wait_until("three connections", || Ok(dump()?.lines().count() == 3))?;
    deployment.run_tool("ovs-appctl dpctl/flush-conntrack ct_nw_src=10.1.0.1")?;
    assert_eq!(dump()?, "");
    Ok(())
}

/// Rules with the features of those of a gateway bridge (pkg/node/gateway_shared_intf).
fn gateway_rules(patch: &str, uplink: &str) -> String {
    let rules = [
        "priority=500, in_port=LOCAL, ip, ip_dst=10.96.0.0/16, \
         actions=ct(commit,zone=64001,nat(src=169.254.169.2),table=2)",
        "priority=500, in_port=PATCH, ip, ip_src=10.96.0.0/16, ip_dst=169.254.169.2, \
         actions=ct(zone=64001,nat,table=3)",
        "priority=110, in_port=UPLINK, ip, ip_frag=later, actions=ct(table=0,zone=64004)",
        "priority=110, in_port=UPLINK, sctp, tp_dst=30000, \
         actions=ct(commit,zone=64003,nat(dst=10.0.0.1:30000),table=6)",
        "priority=105, in_port=PATCH, ip, \
         actions=ct(commit,zone=64000,exec(set_field:0x1->ct_mark)),output:UPLINK",
        "priority=50, in_port=UPLINK, ip, actions=ct(zone=64000,nat,table=1)",
        "priority=14, in_port=UPLINK, icmp6, icmpv6_type=136, actions=FLOOD",
        "priority=10, in_port=UPLINK, dl_dst=02:00:00:00:00:77, actions=output:PATCH,output:LOCAL",
        "priority=100, table=1, ip, ct_state=+trk+est, ct_mark=0x1, \
         actions=check_pkt_larger(1414)->reg0[0],resubmit(,11)",
        "priority=100, table=1, ip, ct_state=+trk+rel, ct_mark=0x2, actions=output:LOCAL",
        "priority=0, table=1, actions=output:LOCAL",
        "priority=100, table=2, actions=set_field:02:00:00:00:00:77->eth_dst,output:PATCH",
        "table=3, actions=move:NXM_OF_ETH_DST[]->NXM_OF_ETH_SRC[],output:LOCAL",
        "priority=10, table=11, reg0=0x1, actions=output:LOCAL",
        "priority=1, table=11, actions=output:PATCH",
        "priority=0, table=0, actions=NORMAL",
    ];
    let rules = rules.map(|rule| format!("cookie=0xdeff105, {rule}\n"));
    rules
        .concat()
        .replace("PATCH", patch)
        .replace("UPLINK", uplink)
}

fn ovn_kubernetes_replaces_the_flows_of_its_gateway_bridge(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    configure(&deployment)?;
    let port = |name: &str| deployment.vsctl(&format!("get Interface {name} ofport"));
    let rules = gateway_rules(&port("patch-ex")?, &port("p3")?);
    let file = deployment.rundir.join("flows");
    fs::write(&file, &rules)?;
    let file = file.display();
    let dump = || deployment.run_tool("ovs-ofctl dump-flows br-ex");
    let listed = |text: &str| text.lines().filter(|line| line.contains("cookie=")).count();
    for options in ["-O OpenFlow13 --bundle", "--bundle"] {
        deployment.run_tool(&format!("ovs-ofctl {options} replace-flows br-ex {file}"))?;
        let dumped = dump()?;
        assert_eq!(listed(&dumped), rules.lines().count(), "{dumped}");
    }
    let aggregate = deployment.run_tool("ovs-ofctl -t 5 dump-aggregate br-ex")?;
    assert_eq!(number_after(&aggregate, "flow_count="), 16);
    // A packet from outside reaches the node.
    network.run("ip link set br-ex up")?.expect_success()?;
    let frame = "eth(dst=02:00:00:00:00:77,src=02:00:00:00:00:03) \
                 / ipv4(src=10.3.0.3,dst=10.3.0.9) / udp(dst=9) / data(20)";
    network.host(3).send(&[frame])?;
    context.wait_until("the node to receive the packet", || {
        let flows = deployment.run_tool("ovs-ofctl dump-flows br-ex table=1")?;
        let mut lines = flows.lines().filter(|line| line.contains("priority=0 "));
        Ok(lines.any(|line| line.contains("n_packets=1,")))
    })?;
    fs::write(
        deployment.rundir.join("flows"),
        "table=0,priority=0,actions=NORMAL\n",
    )?;
    deployment.run_tool(&format!(
        "ovs-ofctl -O OpenFlow13 replace-flows br-ex {file}"
    ))?;
    assert_eq!(listed(&dump()?), 1);
    Ok(())
}
