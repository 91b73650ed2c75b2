//! The log modules of Open vSwitch 3.1, by the names that `-v`, `vlog/set` and `vlog/list` use, and
//! the module of each `tracing` target. Modules without a counterpart here have no messages.

/// The names of all modules, sorted.
#[rustfmt::skip]
pub(super) const MODULES: [&str; 129] = [
    "backtrace", "bfd", "bond", "bridge",
    "bundle", "bundles", "cfm", "collectors",
    "command_line", "connmgr", "conntrack", "conntrack_tp",
    "coverage", "ct_dpif", "daemon", "daemon_unix",
    "dns_resolve", "dpdk", "dpif", "dpif_lookup_autovalidator",
    "dpif_lookup_generic", "dpif_mfex_extract_study", "dpif_netdev", "dpif_netdev_extract",
    "dpif_netdev_impl", "dpif_netdev_lookup", "dpif_netlink", "dpif_netlink_rtnl",
    "entropy", "fail_open", "fatal_signal", "flow",
    "hmap", "in_band", "ipf", "ipfix",
    "jsonrpc", "lacp", "lldp", "lldpd",
    "lldpd_structs", "lockfile", "memory", "meta_flow",
    "native_tnl", "netdev", "netdev_afxdp", "netdev_dummy",
    "netdev_linux", "netdev_offload", "netdev_offload_tc", "netdev_vport",
    "netflow", "netlink", "netlink_conntrack", "netlink_notifier",
    "netlink_socket", "nx_match", "odp_execute", "odp_execute_impl",
    "odp_util", "ofp_actions", "ofp_bundle", "ofp_connection",
    "ofp_errors", "ofp_flow", "ofp_group", "ofp_match",
    "ofp_meter", "ofp_monitor", "ofp_msgs", "ofp_packet",
    "ofp_port", "ofp_protocol", "ofp_queue", "ofp_table",
    "ofp_util", "ofproto", "ofproto_dpif", "ofproto_dpif_mirror",
    "ofproto_dpif_monitor", "ofproto_dpif_rid", "ofproto_dpif_upcall", "ofproto_dpif_xlate",
    "ofproto_xlate_cache", "ovs_lldp", "ovs_numa", "ovs_rcu",
    "ovs_replay", "ovs_router", "ovs_thread", "ovsdb_cs",
    "ovsdb_error", "ovsdb_idl", "ox_stat", "pcap",
    "pmd_perf", "poll_loop", "process", "rconn",
    "reconnect", "route_table", "rstp", "rstp_sm",
    "sflow", "sha1", "signals", "socket_util",
    "socket_util_unix", "stp", "stream", "stream_fd",
    "stream_replay", "stream_ssl", "stream_tcp", "stream_unix",
    "svec", "system_stats", "tc", "timeval",
    "tunnel", "unixctl", "userspace_tso", "util",
    "uuid", "vconn", "vconn_stream", "vlog",
    "vswitchd",
];

/// The modules of targets, by prefix; the first match applies. A target that is the name of a
/// module belongs to that module without a row here.
const TARGETS: [(&str, &str); 31] = [
    ("dataplane", "dpif_netdev"),
    ("dpdk", "dpdk"),
    ("flow_export", "collectors"),
    ("l2::bond", "bond"),
    ("l2::lacp", "lacp"),
    ("l2::spanning_tree", "stp"),
    ("l2", "ofproto_dpif"),
    ("openflow", "vconn"),
    ("ovsdb", "ovsdb_cs"),
    ("pipeline", "ofproto_dpif_xlate"),
    ("ports::dummy", "netdev_dummy"),
    ("ports", "netdev_linux"),
    ("runtime::connection", "rconn"),
    ("runtime::control::collectors", "collectors"),
    ("runtime::control::connmgr", "connmgr"),
    ("runtime::control::in_band", "in_band"),
    ("runtime::control::rxq_assignment", "dpif_netdev"),
    ("runtime::control::host_ports", "native_tnl"),
    ("runtime::control", "bridge"),
    ("runtime::links", "netlink_notifier"),
    ("runtime::peers", "rconn"),
    ("runtime::snoop", "connmgr"),
    ("runtime::tls", "stream_ssl"),
    ("runtime::underlay", "ovs_router"),
    ("runtime::unixctl", "unixctl"),
    ("runtime::worker_thread", "dpif_netdev"),
    ("switch::bridge::spanning", "stp"),
    ("switch", "ofproto"),
    ("vswitchd::database", "ovsdb_cs"),
    ("vswitchd::daemon", "daemon_unix"),
    ("vswitchd::monitor", "daemon_unix"),
];

/// The module of the daemon's other messages about its configuration.
const CONFIGURATION: &str = "bridge";

/// The module of all other messages.
const OTHER: &str = "vswitchd";

/// Targets with messages about the configuration.
const CONFIGURING: [&str; 4] = [
    "vswitchd::desired",
    "vswitchd::manager",
    "vswitchd::report",
    "vswitchd::rows",
];

/// Returns the index into [`MODULES`] of the module with this name; letters may be of either case.
pub(super) fn named(name: &str) -> Option<usize> {
    MODULES
        .iter()
        .position(|known| known.eq_ignore_ascii_case(name))
}

/// Returns the index into [`MODULES`] for a `tracing` target.
pub(super) fn of_target(target: &str) -> usize {
    if let Ok(module) = MODULES.binary_search(&target) {
        return module;
    }
    let is_below = |prefix: &str| target.starts_with(prefix);
    let module = match TARGETS.iter().find(|(prefix, _)| is_below(prefix)) {
        Some((_, module)) => module,
        None if CONFIGURING.into_iter().any(is_below) => CONFIGURATION,
        None => OTHER,
    };
    MODULES.binary_search(&module).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_sorted_and_include_those_of_all_targets() {
        assert!(MODULES.is_sorted());
        let rows = TARGETS.iter().map(|(_, module)| *module);
        for module in rows.chain([CONFIGURATION, OTHER]) {
            assert!(MODULES.binary_search(&module).is_ok(), "{module}");
        }
    }

    #[test]
    fn target_has_module_of_its_crate_or_its_own_name() {
        let module = |target| MODULES[of_target(target)];
        assert_eq!(module("switch::bridge::spanning"), "stp");
        assert_eq!(module("switch::bridge::ports"), "ofproto");
        assert_eq!(module("runtime::control::steps"), "bridge");
        assert_eq!(module("vswitchd::manager"), "bridge");
        assert_eq!(module("vconn"), "vconn");
        assert_eq!(module("runtime::start"), "vswitchd");
    }
}
