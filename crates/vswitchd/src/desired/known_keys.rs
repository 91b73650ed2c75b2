//! The keys of Open vSwitch 3.1 in the columns `other_config` and `options`
//! (ovs-vswitchd.conf.db(5)), and later names of them.
//!
//! Others keep notes of their own in these maps, for example OpenStack and OVN: keys that Open
//! vSwitch does not have are no mistake, unless they look like a misspelt one.

/// `Open_vSwitch` `other_config`.
#[rustfmt::skip]
pub(super) const OPEN_VSWITCH: [&str; 45] = [
    "bundle-idle-timeout", "ca_cert", "certificate", "dpdk-alloc-mem", "dpdk-extra",
    "dpdk-hugepage-dir", "dpdk-init", "dpdk-lcore-mask", "dpdk-socket-limit", "dpdk-socket-mem",
    "emc-insert-inv-prob", "enable-statistics", "flow-limit", "flow-restore-wait", "hw-offload",
    "ipsec_skb_mark", "max-idle", "max-revalidator", "min-revalidate-pps", "n-handler-threads",
    "n-offload-threads", "n-revalidator-threads", "offload-rebalance", "per-port-memory",
    "pmd-auto-lb", "pmd-auto-lb-improvement-threshold", "pmd-auto-lb-load-threshold",
    "pmd-auto-lb-rebal-interval", "pmd-cpu-mask", "pmd-maxsleep", "pmd-perf-metrics",
    "pmd-rxq-assign", "pmd-rxq-isolate", "pmd-sleep-max", "private_key", "shared-mempool-config",
    "smc-enable",
    "stats-update-interval", "tc-policy", "tx-flush-interval", "userspace-tso-enable",
    "vhost-iommu-support", "vhost-postcopy-support", "vhost-sock-dir", "vlan-limit",
];

/// `Bridge` `other_config`.
#[rustfmt::skip]
pub(super) const BRIDGE: [&str; 25] = [
    "controller-queue-size", "datapath-id", "disable-in-band", "dp-desc", "dp-sn", "forward-bpdu",
    "hwaddr", "in-band-queue", "mac-aging-time", "mac-table-size", "mcast-snooping-aging-time",
    "mcast-snooping-disable-flood-unregistered", "mcast-snooping-table-size", "rstp-address",
    "rstp-ageing-time", "rstp-force-protocol-version", "rstp-forward-delay", "rstp-max-age",
    "rstp-priority", "rstp-transmit-hold-count", "stp-forward-delay", "stp-hello-time",
    "stp-max-age", "stp-priority", "stp-system-id",
];

/// `Port` `other_config`, and the keys of guards, which Open vSwitch does not have.
#[rustfmt::skip]
pub(super) const PORT: [&str; 33] = [
    "all-members-active", "bond-detect-mode", "bond-hash-basis", "bond-miimon-interval",
    "bond-primary", "bond-rebalance-interval", "lacp-fallback-ab", "lacp-system-id",
    "lacp-system-priority", "lacp-time", "lb-output-action", "mcast-snooping-flood",
    "mcast-snooping-flood-reports", "priority-tags", "qinq-ethtype", "rstp-bpdu-guard",
    "rstp-bpdu-guard-timeout", "rstp-enable", "rstp-path-cost", "rstp-port-admin-edge",
    "rstp-port-auto-edge", "rstp-port-mcheck", "rstp-port-num", "rstp-port-priority",
    "rstp-root-guard", "stp-bpdu-guard", "stp-bpdu-guard-timeout", "stp-enable", "stp-path-cost",
    "stp-port-num", "stp-port-priority", "stp-root-guard", "transient",
];

/// `Interface` `other_config`.
#[rustfmt::skip]
pub(super) const INTERFACE: [&str; 12] = [
    "cfm_ccm_pcp", "cfm_ccm_vlan", "cfm_demand", "cfm_extended", "cfm_interval", "cfm_opstate",
    "emc-enable", "lacp-aggregation-key", "lacp-port-id", "lacp-port-priority", "pmd-rxq-affinity",
    "tx-steering",
];

/// `Interface` `options`.
#[rustfmt::skip]
pub(super) const OPTIONS: [&str; 36] = [
    "csum", "df_default", "dpdk-devargs", "dpdk-lsc-interrupt", "dpdk-vf-mac", "dst_port",
    "egress_pkt_mark", "erspan_dir", "erspan_hwid", "erspan_idx", "erspan_ver", "exts",
    "flow-ctrl-autoneg", "in_key", "key", "local_ip", "n_rxq", "n_rxq_desc", "n_txq_desc",
    "out_key", "packet_type", "payload_type", "peer", "psk", "remote_cert", "remote_ip",
    "remote_name", "rx-flow-ctrl", "seq", "tos", "ttl", "tx-flow-ctrl", "tx-retries-max",
    "use-need-wakeup", "vhost-server-path", "xdp-mode",
];

/// `Controller` `other_config`.
#[rustfmt::skip]
pub(super) const CONTROLLER: [&str; 1] = [
    "dscp",
];

/// The shortest key that is compared with misspelt ones: short words resemble each other by chance.
const LEN_MIN: usize = 5;

/// Returns true if `key` is one of `keys`, or resembles one: at most one letter, hyphen or
/// underscore is wrong, missing or additional, or two neighbours are swapped.
pub(super) fn is_meant(key: &str, keys: &[&str]) -> bool {
    keys.contains(&key) || keys.iter().any(|known| resembles(key, known))
}

fn resembles(key: &str, known: &str) -> bool {
    let (key, known) = (key.as_bytes(), known.as_bytes());
    if key.len().min(known.len()) < LEN_MIN {
        return false;
    }
    let same = key
        .iter()
        .zip(known)
        .take_while(|(one, other)| one == other);
    let same = same.count();
    let (key, known) = (&key[same..], &known[same..]);
    match (key, known) {
        ([], rest) | (rest, []) => rest.len() == 1,
        ([one, key @ ..], [other, known @ ..]) => {
            let is_swapped = key.first() == Some(other) && known.first() == Some(one);
            key == known
                || key == [&[*other][..], known].concat()
                || [&[*one][..], key].concat() == known
                || (is_swapped && key[1..] == known[1..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_open_vswitch_and_misspelt_ones_are_meant() {
        for key in [
            "lacp-time",
            "lacp_time",
            "lacp-tme",
            "lacp-timee",
            "lcap-time",
            "acp-time",
            "bond-primary",
        ] {
            assert!(is_meant(key, &PORT), "{key}");
        }
    }

    #[test]
    fn notes_of_others_are_not_meant() {
        for key in [
            "net_uuid",
            "network_type",
            "physical_network",
            "segmentation_id",
            "tag",
            "",
            "lacp-tmee-x",
        ] {
            assert!(!is_meant(key, &PORT), "{key}");
        }
        assert!(!is_meant("ovn-chassis-idx-hv1", &OPEN_VSWITCH));
    }
}
