//! The catalogue of counters: name, meaning and remedy of each, for operators.
//!
//! The crates that count own the names; this table owns the texts. `docs/counters.md` is written
//! from it (`UPDATE=1 cargo test -p runtime counter_catalog`), and the tests fail if a counter has
//! no row, a row has no counter, or the document differs.

use std::fmt::Write;

/// A counter as `comporta/counters` and `/metrics` name it.
#[derive(Clone, Copy, Debug)]
struct CounterEntry {
    name: &'static str,
    /// The event that adds one.
    meaning: &'static str,
    /// The operator's next step; empty if the counter is no sign of a fault.
    remedy: &'static str,
}

const fn counter(name: &'static str, meaning: &'static str, remedy: &'static str) -> CounterEntry {
    CounterEntry {
        name,
        meaning,
        remedy,
    }
}

/// Ports: `comporta/counters` prints `BRIDGE port NUMBER NAME`.
#[rustfmt::skip]
const PORT: [CounterEntry; 23] = [
    counter("rx_packets", "frame received; a merged segment counts as all its segments", ""),
    counter("rx_bytes", "byte received, without the frame check sequence", ""),
    counter("rx_overrun", "frame dropped because the receive ring was full", "the worker is too slow or loses its core: more `--cores`, `comporta doctor --cores`, a larger ring"),
    counter("rx_truncated", "frame longer than a ring slot that the kernel could not queue whole", "lower the MTU of the sender, or disable its merging (`ethtool -K IFACE gro off lro off`)"),
    counter("rx_too_long", "frame longer than the largest IPv4 datagram with Ethernet header and tags", "disable jumbo merging at the sender (`ip link set IFACE gro_max_size 65536`)"),
    counter("rx_runt", "frame shorter than an Ethernet header", "check the sender"),
    counter("rx_bad_offload", "frame with checksum or segmentation metadata that contradict its headers", "check the driver or guest that sent it"),
    counter("rx_no_buffer", "receive call that stopped because the worker's frame pool was empty; no frame is lost by that", "if `rx_overrun` grows too: egress queues hold the buffers, see `tx_full`"),
    counter("rx_ring_reset", "reset of a receive ring that the kernel had jammed; frames may be lost", "report it with the kernel version"),
    counter("rx_errors", "frame that the device received with an error", "check cable, transceiver and `ethtool -S IFACE`"),
    counter("rx_copied", "AF_XDP frame received by a copy, since the device's memory had no free chunk", "cost only"),
    counter("tx_packets", "frame sent; a frame with segmentation pending counts as all its segments", ""),
    counter("tx_bytes", "byte sent, without the frame check sequence", ""),
    counter("tx_down", "frame dropped because the interface was down", "`ip link set IFACE up`"),
    counter("tx_too_long", "frame longer than the interface's MTU permits", "raise `mtu_request`, or lower the MTU of the hosts; tunnels need 50 bytes and more"),
    counter("tx_full", "frame dropped because the interface's queue was full or it had no carrier", "the link is slower than the offered load, or unplugged; see its queueing discipline (`tc -s qdisc`)"),
    counter("tx_errors", "frame that the kernel refused for another reason", "see the log, and `dmesg`"),
    counter("tx_checksummed", "frame whose checksum was completed in software", "cost only: the egress device has no checksum offload"),
    counter("tx_segmented", "frame that was segmented in software", "cost only: the egress device has no segmentation offload"),
    counter("tx_zero_copy", "frame sent from the memory in which another device received it", ""),
    counter("tx_copied", "frame copied into the egress device's memory", "cost only: ports of one worker and one backend avoid it"),
    counter("packet_in_policed", "packet-in dropped by the port's limit (`--packet-in-rate`)", "rules send too much to the controller, or raise the limit"),
    counter("packet_in_sent", "packet-in of the port that passed its limit", ""),
];

/// Workers, events and side effects that were dropped: `comporta/counters` prints `worker NAME`.
#[rustfmt::skip]
const WORKER: [CounterEntry; 40] = [
    counter("no_bridge", "frame of a port whose bridge is not in the published program", "normal for some milliseconds while a bridge is added or removed"),
    counter("no_port", "frame for an egress port that has no queue", "normal while a port is added or removed; else the interface disappeared: see the log"),
    counter("port_full", "frame dropped because the egress queue of another worker's port was full", "the egress port or its worker is too slow: see `tx_full`"),
    counter("no_buffer", "copy or segment that found the worker's frame pool empty", "floods and mirrors of large frames exceed the pool: fewer copies, or more workers"),
    counter("too_many_segments", "frame with so small a segment size that a tunnel, a mirror or a packet-in would become more than 1,024 segments", "a guest or driver sets an absurd segment size: find the port by `comporta capture`"),
    counter("normal_unreadable", "frame whose addresses `NORMAL` could not read", "the packet is no Ethernet frame: use another action for it"),
    counter("normal_filtered", "frame for a reserved address, or whose destination is behind its ingress port", "normal on a shared segment; `other_config:forward-bpdu` forwards reserved addresses"),
    counter("normal_port_down", "frame for an address whose port does not forward now", "the link of that port is down"),
    counter("normal_vlan", "frame in a VLAN that its ingress port is not part of", "compare `ovs-vsctl list port` (`tag`, `trunks`, `vlan_mode`) with the sender"),
    counter("normal_bond", "frame that a bond refuses: a duplicate of a flooded frame, or one that the bond sent itself", "normal with `balance-slb`; if it grows fast, the switch at the other end is not configured for the bond"),
    counter("tag", "frame that could not take another VLAN tag, or whose tag hides a malformed header", "check the sender"),
    counter("learn_queue_full", "address that was not learned because the control thread was behind", "a flood of new addresses: find its port with `fdb/show` and limit it"),
    counter("learn_policed", "address or rule that was not learned because frames of its port cause more than 200,000 a second", "a flood of new addresses: find its port with `fdb/show` and limit it"),
    counter("packet_in_queue_full", "packet-in that was not sent because the control thread was behind", "limit packet-ins (`--packet-in-rate`, `controller_rate_limit`)"),
    counter("punt_queue_full", "LACP message or BPDU that was lost because the control thread was behind", "a flood of protocol frames: capture `01:80:c2:00:00:00/40` on the ports"),
    counter("punt_policed", "LACP message, BPDU, BFD, CFM or LLDP frame above 1,000 a second of its port", "a flood of protocol frames: capture `01:80:c2:00:00:00/40` on the port"),
    counter("mirror_output", "frame received by a port that is the output of a mirror", "nothing should send on that port"),
    counter("spanning_tree", "frame received by a port that the spanning tree or one of its guards blocks", "normal: `stp/show`, `rstp/show`"),
    counter("capture_queue_full", "frame that a running capture missed", "narrow the filter of the capture"),
    counter("membership_queue_full", "multicast membership report that was lost because the control thread was behind", "a flood of IGMP or MLD reports: find its port with `mdb/show`"),
    counter("membership_policed", "multicast membership report above 1,000 a second of its port", "a flood of IGMP or MLD reports: find its port with `mdb/show`"),
    counter("sample_queue_full", "sample for sFlow or IPFIX that was lost", "sample less often"),
    counter("flow_queue_full", "batches of dummies that `dpctl/dump-flows` did not count, since the control thread was behind", "send more slowly: only tests have dummies"),
    counter("flow_unrecorded", "frame that `dpctl/dump-flows` did not count, since a worker had recorded 4,096 flows since the last list", "more flows than the list has room for; `bridge/dump-flows` counts every frame"),
    counter("flow_export_full", "frame that NetFlow or IPFIX did not count, since its table of flows was full", "shorten the active timeout, or sample"),
    counter("no_peer", "frame for an internal or dummy port without another end", "normal if nothing uses the interface"),
    counter("ingress_policed", "frame above `ingress_policing_rate` of its interface", "intended; raise the rate or burst"),
    counter("egress_policed", "frame above the rate of the egress policer", "intended; raise `cir` or `cbs` of its QoS row"),
    counter("too_many_hops", "frame that crossed more than 64 patch ports, or whose batch crossed too many", "a loop of patch ports"),
    counter("tunnel_no_remote", "frame for a flow-based tunnel without a remote address", "a rule must set `tun_dst`"),
    counter("tunnel_to_self", "frame for a tunnel whose remote address is this host", "correct `options:remote_ip`"),
    counter("tunnel_no_route", "frame for a remote address without a route through any bridge", "`ip route`, `ovs-appctl ovs/route/show`"),
    counter("tunnel_no_neighbour", "frame whose next hop has not answered ARP or ND yet", "normal for the first frames; else check the underlay"),
    counter("tunnel_too_long", "frame that exceeds the length field of the outer IP header", "lower the MTU inside the tunnel"),
    counter("tunnel_payload", "frame that this kind of tunnel does not carry", "only Ethernet fits into VXLAN without GPE"),
    counter("tunnel_field", "frame for which rules set a tunnel field that the header cannot express", "ERSPAN has versions 1 and 2, and session ids up to 1023"),
    counter("tunnel_malformed", "tunnel packet with a malformed or unknown header", "check the peer: kind of tunnel and port"),
    counter("tunnel_no_port", "tunnel packet that no tunnel port accepts", "compare key and addresses: `ovs-appctl tnl/ports/show -v`"),
    counter("tunnel_option", "tunnel packet with an unknown critical Geneve option", "map the option: `ovs-ofctl add-tlv-map`"),
    counter("tunnel_congested", "tunnel packet marked with congestion whose inner frame cannot carry the mark (RFC 6040)", "the underlay is congested"),
];

/// Packets that the tables dropped: `comporta/counters` prints `worker NAME`.
#[rustfmt::skip]
const TABLE: [CounterEntry; 29] = [
    counter("ingress_closed", "packet whose ingress port is gone, down or has `no-receive`", "`ovs-ofctl mod-port BRIDGE PORT up receive`"),
    counter("fragment", "fragment, while the switch is configured to drop fragments", "`ovs-ofctl set-frags BRIDGE normal`"),
    counter("no_match", "packet that no rule matched", "add a table-miss rule; `comporta trace` names the table"),
    counter("no_packet_in", "table miss that would be a packet-in, from a port with `no-packet-in`", "`ovs-ofctl mod-port BRIDGE PORT packet-in`"),
    counter("no_output", "packet whose rules have no output", "normal for `drop` rules; `ovs-ofctl dump-flows` shows the rule"),
    counter("invalid_ttl", "packet whose TTL is too low for `dec_ttl`", "a routing loop, or traceroute"),
    counter("no_buffer", "copy that was to be modified and found the worker's frame pool empty", "see the counter of the same name above"),
    counter("no_room", "packet that could not take another tag or header", "lower the MTU of the sender"),
    counter("output_to_ingress", "output to the ingress port, which OpenFlow excludes", "use `in_port` as the output"),
    counter("output_no_port", "output to a port that does not exist", "`ovs-ofctl show` lists the ports"),
    counter("output_closed", "output to a port that is down or has `no-forward`", "see `ovs-ofctl show`"),
    counter("output_shut", "output to a port that the spanning tree blocks", "normal: `stp/show`, `rstp/show`"),
    counter("output_protected", "output from a protected port to a protected port", "intended: `protected` of the Port rows"),
    counter("no_bucket", "packet for a group without a live bucket", "`ovs-ofctl dump-groups`; check `watch_port`"),
    counter("group_limit", "packet that used more group buckets than one packet may", "groups that refer to each other fan out too far"),
    counter("metered", "packet above the rate of its meter", "intended; `ovs-ofctl meter-stats`"),
    counter("controller_metered", "packet-in above the rate of the controller meter", "intended; `ovs-ofctl dump-meters`"),
    counter("continuation_too_long", "paused packet whose continuation exceeds one message", "shorten the action list behind `controller(pause)`"),
    counter("recursion_too_deep", "packet whose resubmissions are nested deeper than 64; nothing of it is sent", "a loop of `resubmit`"),
    counter("too_many_resubmits", "packet that was resubmitted more than 4,096 times; nothing of it is sent", "a loop of `resubmit`"),
    counter("too_many_outputs", "packet with more than 16,384 outputs, dropped outputs or learned rules; nothing of it is sent", "rules that resubmit and output to all ports multiply: output to `all` once, or use a group"),
    counter("too_many_actions", "packet whose rules and buckets have more than 65,536 actions; nothing of it is sent", "rules that resubmit to long rules: move their common part into one rule"),
    counter("stack_too_deep", "packet with `push` on a full stack; nothing of it is sent", "pair each `push` with a `pop`"),
    counter("too_many_mpls_labels", "packet with three MPLS labels to which one was to be added; nothing of it is sent", "a loop of `push_mpls`, or an underlay that nests labels"),
    counter("action_set_too_long", "`write_actions` beyond the limit of an action set", "shorten the action set"),
    counter("learn_limit", "rule that `learn` did not add because its limit was reached", "raise `limit` of the action"),
    counter("unsupported_packet_type", "`encap` or `decap` that does not fit the packet", "match `packet_type` before the action"),
    counter("no_collector", "`sample` without a collector set", "add a Flow_Sample_Collector_Set row"),
    counter("no_conntrack", "packet that met the action `ct` in a bridge without a connection tracker", "report it: the switch gives each bridge a tracker"),
];

/// Malformed packets, found where rules or actions read the header: `comporta/counters` prints
/// `worker NAME`.
#[rustfmt::skip]
const MALFORMED: [CounterEntry; 26] = [
    counter("runt", "frame shorter than an Ethernet header", "check the sender"),
    counter("vlan_truncated", "frame that ends within a VLAN tag", "check the sender"),
    counter("mpls_truncated", "frame that ends within the MPLS label stack", "check the sender"),
    counter("pbb_truncated", "frame that ends within a PBB header", "check the sender"),
    counter("nsh_truncated", "frame that ends within a network service header", "check the sender"),
    counter("nsh_header", "network service header with another version or a wrong length (RFC 8300)", "check the sender"),
    counter("arp_truncated", "frame that ends within an ARP packet", "check the sender"),
    counter("ipv4_truncated", "frame that ends within the fixed IPv4 header", "check the sender"),
    counter("ipv4_version", "EtherType IPv4 with another version number", "check the sender"),
    counter("ipv4_header_length", "IPv4 header length below 20 bytes or beyond the frame", "check the sender"),
    counter("ipv4_total_length", "IPv4 total length below the header length or beyond the frame", "check the sender"),
    counter("ipv6_truncated", "frame that ends within the fixed IPv6 header", "check the sender"),
    counter("ipv6_version", "EtherType IPv6 with another version number", "check the sender"),
    counter("ipv6_payload_length", "IPv6 payload length beyond the frame", "check the sender"),
    counter("ipv6_extension", "IPv6 extension header that reaches beyond the packet", "check the sender"),
    counter("ipv6_extension_count", "more IPv6 extension headers than are parsed", "likely an attack: find the sender by `comporta capture`"),
    counter("tcp_truncated", "packet that ends within the TCP header", "check the sender"),
    counter("tcp_data_offset", "TCP data offset below 20 bytes or beyond the packet", "check the sender"),
    counter("udp_truncated", "packet that ends within the UDP header", "check the sender"),
    counter("sctp_truncated", "packet that ends within the SCTP header", "check the sender"),
    counter("icmpv4_truncated", "packet that ends within the ICMP header", "check the sender"),
    counter("icmpv6_truncated", "packet that ends within the ICMPv6 header", "check the sender"),
    counter("nd_truncated", "packet that ends within a neighbour solicitation or advertisement", "check the sender"),
    counter("nd_option", "neighbour discovery option of length zero or beyond the packet", "check the sender"),
    counter("checksum_place", "offload metadata with a checksum outside the payload", "check the driver or guest that sent it"),
    counter("segment_size", "offload metadata with a segment size of zero", "check the driver or guest that sent it"),
];

/// Packets that continued in the interpreter, and are forwarded: `comporta/counters` prints
/// `worker NAME`.
#[rustfmt::skip]
const SLOW_PATH: [CounterEntry; 6] = [
    counter("slow_path_conjunction", "packet that satisfies more than 1,024 clauses of conjunctions", "cost only"),
    counter("slow_path_uncompiled_rules", "packet in a table with rules that are not compiled", "`comporta/tables` names the table: rules on tunnel options, or many that differ only in priority"),
    counter("slow_path_resubmit", "more than 32 rules pending after a `resubmit`", "let `resubmit` be the last action of rules"),
    counter("slow_path_action", "packet without an Ethernet header or with GTP-U fields, `debug_slow`, `debug_recirc`", "cost only"),
    counter("slow_path_capture", "packet of a running capture", "normal while `comporta capture` runs"),
    counter("slow_path_miss_continues", "packet of a bridge with a table that continues in the next one after a miss", "add a rule with `goto_table` and priority 0 in place of `mod-table continue`"),
];

/// Bridges: `comporta/counters` prints `BRIDGE NAME`.
#[rustfmt::skip]
const BRIDGE: [CounterEntry; 6] = [
    counter("fdb_evicted", "address that was evicted because the forwarding database was full", "raise `other_config:mac-table-size`, or find the flood with `fdb/show`"),
    counter("learn_refused", "rule of a `learn` action that the table refused", "the table is full or the rule is invalid: see the log"),
    counter("packet_in_limited", "packet-in above the limit of the controller", "raise `controller_rate_limit`, or send less to the controller"),
    counter("packet_out_limited", "packet-out, or resumed packet, that was sent in part or not at all because it exceeds the budget of outputs, actions or bytes", "send to a group or to `all` once; shorten the frame"),
    counter("rules_refused", "flow-mod that was refused by an error, alone or in a bundle", "the log names the rule and the controller"),
    counter("tree_guarded", "shutdown of a port by BPDU guard, or block by root guard, of the spanning tree", "a bridge that does not belong there is behind the port: the log and `stp/show` or `rstp/show` name it"),
];

/// The control thread: `comporta/counters` prints `control NAME`.
#[rustfmt::skip]
const CONTROL: [CounterEntry; 12] = [
    counter("messages_refused", "OpenFlow message that was malformed or of an unknown type, and answered by an error", "see the log for the controller's address"),
    counter("async_dropped", "packet-in, port status or flow-removed for a controller that reads too slowly", "the controller is overloaded"),
    counter("transmit_dropped", "frame of a packet-out or protocol that a worker could not take", "the worker is overloaded"),
    counter("exports_sent", "datagram sent to a collector", ""),
    counter("exports_lost", "datagram that could not be sent to a collector", "check the collector's address and the route"),
    counter("reconfigured", "configuration that changed something", ""),
    counter("checkpoints_written", "checkpoint of the tables that was written", ""),
    counter("checkpoints_failed", "checkpoint of the tables that could not be written; the previous one remains", "the log has the reason: free space in the run directory, or name another file by `--checkpoint`"),
    counter("turns_slow", "turn of the control thread that took over 100 ms", "the warning `Unreasonably long ... poll interval` in the log names the cause; give the control plane a core of its own (`--cores`)"),
    counter("turn_longest_us", "microsecond of the longest turn of the control thread so far", "see `turns_slow`"),
    counter("flows_unlisted", "packet that `dpctl/dump-flows` did not count, since it lists at most 1,024 flows of real ports", "see `bridge/dump-flows`, which counts every packet"),
    counter("memory_refused", "message of a bundle that was refused because all connections together exceed their budget of memory", "commit or discard bundles sooner; find the connection with many open bundles"),
];

/// Connection trackers: `comporta/counters` prints `conntrack NAME`.
#[rustfmt::skip]
const CONNTRACK: [CounterEntry; 12] = [
    counter("ct_committed", "connection that a rule committed", ""),
    counter("ct_expired", "connection whose timeout has passed", ""),
    counter("ct_removed", "connection removed by a flush, by `force`, or for a new one with the same addresses and ports", ""),
    counter("ct_embryonic_evicted", "connection without a reply, given up for a new one because the table, its zone or its chain was full", "a SYN flood: find its port with `dpctl/dump-conntrack`; or raise `dpctl/ct-set-maxconns` or the zone's limit"),
    counter("ct_table_full", "connection refused because the table was full", "raise `dpctl/ct-set-maxconns`, or shorten the timeouts (`ovs-vsctl add-zone-tp`)"),
    counter("ct_zone_full", "connection refused because its zone had reached its limit", "`dpctl/ct-get-limits`; raise it with `dpctl/ct-set-limits`"),
    counter("ct_chain_full", "connection refused because too many others have its hash", "report it: hashes are keyed, so this should not happen"),
    counter("ct_reply_in_use", "connection refused because its replies would belong to a translated connection", "use addresses for NAT that hosts do not use"),
    counter("ct_nat_exhausted", "connection refused because no address and port was free for NAT", "widen the range of addresses or ports of `nat`"),
    counter("ct_invalid_packet", "packet that no connection of its protocol can have, and ICMP error about none: `ct_state=+inv`", "normal in small numbers; if packets of a path pass the switch in one direction only, `dpctl/ct-disable-tcp-seq-chk`"),
    counter("ct_invalid_alg_message", "malformed control message of FTP", "check the sender"),
    counter("ct_expectations_full", "data connection of FTP or TFTP that was not expected because too many were", "limit the clients"),
];

/// A table of the document.
struct CounterTable {
    title: &'static str,
    /// The text above the table.
    about: &'static str,
    rows: &'static [CounterEntry],
}

/// All tables, in the order of the document.
#[rustfmt::skip]
const TABLES: [CounterTable; 8] = [
    CounterTable { title: "Ports",             rows: &PORT,      about: "`BRIDGE port NUMBER NAME`. Frames and bytes are counted as on the wire." },
    CounterTable { title: "Workers",           rows: &WORKER,    about: "`worker NAME`: frames and events that a worker dropped." },
    CounterTable { title: "Tables",            rows: &TABLE,     about: "`worker NAME`: packets, outputs and side effects that the tables dropped." },
    CounterTable { title: "Malformed packets", rows: &MALFORMED, about: "`worker NAME`: packets with a malformed header that a rule or action reads." },
    CounterTable { title: "Slow path",         rows: &SLOW_PATH, about: "`worker NAME`: packets that continued in the interpreter. Forwarded; each costs some microseconds." },
    CounterTable { title: "Bridges",           rows: &BRIDGE,    about: "`BRIDGE NAME`." },
    CounterTable { title: "Control thread",    rows: &CONTROL,   about: "`control NAME`." },
    CounterTable { title: "Connections",       rows: &CONNTRACK, about: "`conntrack NAME`: the connection tracker." },
];

/// Returns the document.
pub(crate) fn document(renamed: &[(&str, &str)]) -> String {
    let mut text = "# Counters\n\n\
        <!-- UPDATE=1 cargo test -p runtime counter_catalog writes this file. -->\n\n\
        `ovs-appctl comporta/counters` prints each counter that is not zero, with its owner before\n\
        its name; `comporta top` and `--metrics` show the same counters as rates and metrics. A\n\
        counter without a remedy is no sign of a fault. [Troubleshooting](troubleshooting.md) leads\n\
        from a symptom to the counter.\n"
        .to_owned();
    for table in &TABLES {
        let _ = write!(
            text,
            "\n## {}\n\n{}\n\n| counter | counts | remedy |\n|---|---|---|\n",
            table.title, table.about
        );
        for row in table.rows {
            let _ = writeln!(
                text,
                "| `{}` | {} | {} |",
                row.name, row.meaning, row.remedy
            );
        }
    }
    text += "\n## Older names\n\n\
        `comporta/counters` prints a renamed counter under both names.\n\n\
        | older name | counter |\n|---|---|\n";
    for (older, present) in renamed {
        let _ = writeln!(text, "| `{older}` | `{present}` |");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::{env, fs};

    use control_api::counters::RENAMED;
    use dataplane::counters::WorkerCounters;
    use dataplane::policer::PacketInCounters;
    use packet::Malformed;
    use pipeline::DropReason;
    use ports::Counter;

    use super::*;

    fn names(rows: &[CounterEntry]) -> BTreeSet<&'static str> {
        let names: BTreeSet<_> = rows.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), rows.len(), "a counter has two rows");
        names
    }

    #[test]
    fn port_counters_have_one_row_each() {
        let packet_ins = PacketInCounters::default();
        let counted = Counter::ALL.into_iter().map(|(_, name)| name);
        let counted = counted.chain(packet_ins.read().map(|(name, _)| name));
        assert_eq!(names(&PORT), counted.collect());
    }

    #[test]
    fn worker_counters_have_one_row_each() {
        let counters = WorkerCounters::new();
        let drops: BTreeSet<_> = counters.drops().map(|(name, _)| name).collect();
        let rows = [&WORKER[..], &TABLE, &MALFORMED];
        assert_eq!(
            rows.into_iter().flat_map(names).collect::<BTreeSet<_>>(),
            drops
        );
        let malformed = Malformed::ALL.into_iter().map(Malformed::name);
        assert_eq!(names(&MALFORMED), malformed.collect());
        let reasons = DropReason::all().map(DropReason::name);
        let of_tables = [&TABLE[..], &MALFORMED].into_iter().flat_map(names);
        assert_eq!(of_tables.collect::<BTreeSet<_>>(), reasons.collect());
        let slow_path = counters.slow_path_by_reason().map(|(name, _)| name);
        assert_eq!(names(&SLOW_PATH), slow_path.collect());
    }

    #[test]
    fn control_and_bridge_counters_have_one_row_each() {
        let control = crate::control::ControlCounters::default();
        assert_eq!(
            names(&CONTROL),
            control.read().into_iter().map(|(name, _)| name).collect()
        );
        let tracker = conntrack::CtCounter::ALL.into_iter();
        assert_eq!(names(&CONNTRACK), tracker.map(|(_, name)| name).collect());
        assert_eq!(
            names(&BRIDGE),
            crate::control::BRIDGE_COUNTERS.into_iter().collect()
        );
    }

    #[test]
    fn renamed_counters_exist_under_their_present_name() {
        let all: BTreeSet<_> = TABLES.iter().flat_map(|table| names(table.rows)).collect();
        for (older, present) in RENAMED {
            assert!(all.contains(present), "{present}");
            assert!(!all.contains(older), "{older}");
        }
    }

    #[test]
    fn counters_document_matches_tables() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/counters.md");
        let expected = document(&RENAMED);
        if env::var_os("UPDATE").is_some() {
            fs::write(&path, &expected).expect("docs/counters.md can be written");
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, expected, "UPDATE=1 writes docs/counters.md");
    }
}
