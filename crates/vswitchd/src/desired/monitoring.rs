//! The columns of `Interface` for BFD, CFM and LLDP, and the table `AutoAttach`
//! (ovs-vswitchd.conf.db(5)). As in Open vSwitch, a value that is no number is the default.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use ovsdb::{Atom, Database, Datum};
use packet::MacAddr;

use crate::rows::Record;
use config::{BfdConfig, BridgeConfig, CcmVlan, CfmConfig, LldpConfig, MonitoringConfig};
use runtime::VERSION;

/// The keys of `other_config` that configure CFM.
pub(super) const CFM_KEYS: [&str; 6] = [
    "cfm_interval",
    "cfm_demand",
    "cfm_extended",
    "cfm_opstate",
    "cfm_ccm_vlan",
    "cfm_ccm_pcp",
];

/// The pairs of a column.
type Pairs<'a> = BTreeMap<&'a str, &'a str>;

/// Reads the monitoring of an interface. Settings that are not applied are added to `notes`.
pub(super) fn read_monitoring(interface: Record<'_>, notes: &mut Vec<String>) -> MonitoringConfig {
    let bfd = interface.map("bfd");
    let lldp = interface.map("lldp");
    MonitoringConfig {
        bfd: is_true(&bfd, "enable").then(|| read_bfd(&bfd, notes)),
        cfm: interface
            .integer("cfm_mpid")
            .and_then(|mpid| read_cfm(mpid, interface, notes)),
        lldp: is_true(&lldp, "enable").then(LldpConfig::default),
    }
}

fn read_bfd(bfd: &Pairs<'_>, notes: &mut Vec<String>) -> BfdConfig {
    let interval = |key, default: Duration| {
        let millis = integer(bfd, key).map(|millis| u64::try_from(millis).unwrap_or_default());
        millis.map_or(default, |millis| Duration::from_millis(millis.max(1)))
    };
    let min_rx = interval("min_rx", BfdConfig::MIN_RX);
    let decayed = integer(bfd, "decay_min_rx").and_then(|millis| u64::try_from(millis).ok());
    let decayed = decayed
        .filter(|millis| *millis > 0)
        .map(Duration::from_millis);
    if decayed.is_some_and(|decayed| decayed < min_rx) {
        let min_rx = min_rx.as_millis();
        notes.push(format!("bfd:decay_min_rx cannot be less than {min_rx} ms"));
    }
    let address = |key| {
        let address: Option<MacAddr> = bfd.get(key).and_then(|text| text.parse().ok());
        address.filter(|address| *address != MacAddr::default())
    };
    let mut host = |key: &str, default: Ipv4Addr| match bfd.get(key).map(|text| text.parse()) {
        None => default,
        Some(Ok(address)) => address,
        Some(Err(_)) => {
            let text = bfd[key];
            notes.push(format!("bfd:{key}: \"{text}\" is not a valid IP address"));
            default
        }
    };
    let multiplier = integer(bfd, "mult").and_then(|multiplier| u8::try_from(multiplier).ok());
    BfdConfig {
        min_tx: interval("min_tx", BfdConfig::MIN_TX),
        min_rx,
        decay_min_rx: decayed,
        forwarding_if_rx: is_true(bfd, "forwarding_if_rx"),
        cpath_down: is_true(bfd, "cpath_down"),
        check_tunnel_key: is_true(bfd, "check_tnl_key"),
        eth_src: address("bfd_local_src_mac"),
        eth_dst: address("bfd_local_dst_mac").unwrap_or(BfdConfig::ETH_DST),
        remote_eth_dst: address("bfd_remote_dst_mac"),
        ip_src: host("bfd_src_ip", BfdConfig::IP_SRC),
        ip_dst: host("bfd_dst_ip", BfdConfig::IP_DST),
        oam: is_true(bfd, "oam"),
        multiplier: multiplier
            .filter(|multiplier| *multiplier > 0)
            .unwrap_or(BfdConfig::MULTIPLIER),
    }
}

fn read_cfm(mpid: i64, interface: Record<'_>, notes: &mut Vec<String>) -> Option<CfmConfig> {
    let other = interface.map("other_config");
    let is_extended = is_true(&other, "cfm_extended");
    // The column is signed, the identifier is not.
    let mpid = u64::from_ne_bytes(mpid.to_ne_bytes());
    if mpid == 0 || (!is_extended && mpid > CfmConfig::MPID_MAX) {
        let max = CfmConfig::MPID_MAX;
        notes.push(format!(
            "cfm_mpid: {mpid} is not from 1 to {max}: CFM is disabled"
        ));
        return None;
    }
    let interval = integer(&other, "cfm_interval").and_then(|millis| u64::try_from(millis).ok());
    let interval = interval.filter(|millis| *millis > 0);
    let options = interface.map("options");
    let keyed_by_flow = ["key", "in_key"].map(|key| options.get(key) == Some(&"flow"));
    let pcp = integer(&other, "cfm_ccm_pcp").unwrap_or_default();
    Some(CfmConfig {
        mpid,
        interval: interval.map_or(CfmConfig::INTERVAL, Duration::from_millis),
        is_extended,
        is_demand: is_true(&other, "cfm_demand"),
        is_up: other
            .get("cfm_opstate")
            .is_none_or(|state| state.eq_ignore_ascii_case("up")),
        vlan: match other.get("cfm_ccm_vlan") {
            None => CcmVlan::None,
            Some(text) if text.eq_ignore_ascii_case("random") => CcmVlan::Random,
            Some(text) => text.parse().map_or(CcmVlan::None, CcmVlan::Vid),
        },
        pcp: u8::try_from(pcp & 0x7).unwrap_or_default(),
        check_tunnel_key: keyed_by_flow.contains(&true),
    })
}

/// Completes the LLDP settings of a bridge's interfaces from its row of the table `AutoAttach`.
pub(super) fn read_auto_attach(database: &Database, bridge: Record<'_>, config: &mut BridgeConfig) {
    let row = bridge
        .named_by(database, "auto_attach", "AutoAttach")
        .next();
    let text = |column| row.and_then(|row| row.text(column));
    let mappings = row.and_then(|row| row.datum("mappings"));
    let number = |atom: &Atom| match atom {
        Atom::Integer(number) => Some(*number),
        _ => None,
    };
    let mappings = mappings.into_iter().flat_map(Datum::pairs);
    let mappings = mappings.filter_map(|(isid, vlan)| {
        let isid = u32::try_from(number(isid)?).ok()?;
        let vlan = u16::try_from(number(vlan)?).ok()?;
        Some((isid, vlan))
    });
    let settings = LldpConfig {
        system_name: text("system_name").map(str::to_owned),
        system_description: text("system_description")
            .filter(|description| !description.is_empty())
            .map_or_else(|| format!("Comporta {VERSION}"), str::to_owned),
        mappings: mappings.collect(),
    };
    for interface in config.interfaces.values_mut() {
        if let Some(lldp) = &mut interface.monitoring.lldp {
            *lldp = settings.clone();
        }
    }
}

fn is_true(pairs: &Pairs<'_>, key: &str) -> bool {
    pairs
        .get(key)
        .is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

fn integer(pairs: &Pairs<'_>, key: &str) -> Option<i32> {
    pairs.get(key)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::desired::{InterfaceOutcome, convert_rows};
    use crate::testing::{empty, pairs, put_bridge, put_root, uuid};
    use config::Config;

    /// Returns the monitoring of an interface with these columns, and its notes.
    fn read(columns: Value) -> (MonitoringConfig, String) {
        let mut database = empty();
        put_bridge(&mut database, "br0", json!({}), &[("p1", columns)], &[]);
        put_root(&mut database, &["br0"], 1);
        let desired = convert_rows(&database, &Config::default());
        let bridge = &desired.config.bridges[0];
        let settings = bridge.interfaces.get("p1").cloned().unwrap_or_default();
        let notes = match &desired.interfaces[&uuid("Interface", "p1")] {
            InterfaceOutcome::Refused(why) => format!("refused: {why}"),
            InterfaceOutcome::Port { notes, .. } => notes.join("; "),
        };
        (settings.monitoring, notes)
    }

    fn bfd(keys: &[(&str, &str)]) -> (BfdConfig, String) {
        let keys = [&[("enable", "true")], keys].concat();
        let (monitoring, notes) = read(json!({"bfd": pairs(&keys)}));
        (monitoring.bfd.expect("it is enabled"), notes)
    }

    #[test]
    fn monitoring_is_none_by_default() {
        let disabled = json!({"bfd": pairs(&[("enable", "false"), ("min_tx", "5")])});
        assert_eq!(read(disabled), (MonitoringConfig::default(), String::new()));
        assert_eq!(bfd(&[]), (BfdConfig::default(), String::new()));
    }

    #[test]
    fn bfd_settings_are_read() {
        let (config, notes) = bfd(&[
            ("min_tx", "0"),
            ("min_rx", "300"),
            ("decay_min_rx", "3000"),
            ("forwarding_if_rx", "true"),
            ("cpath_down", "TRUE"),
            ("check_tnl_key", "true"),
            ("bfd_local_src_mac", "02:00:00:00:00:01"),
            ("bfd_local_dst_mac", "02:00:00:00:00:02"),
            ("bfd_remote_dst_mac", "02:00:00:00:00:03"),
            ("bfd_src_ip", "10.0.0.1"),
            ("bfd_dst_ip", "10.0.0.2"),
            ("oam", "true"),
            ("mult", "255"),
        ]);
        let expected = BfdConfig {
            min_tx: Duration::from_millis(1),
            min_rx: Duration::from_millis(300),
            decay_min_rx: Some(Duration::from_millis(3000)),
            forwarding_if_rx: true,
            cpath_down: true,
            check_tunnel_key: true,
            eth_src: Some(MacAddr([2, 0, 0, 0, 0, 1])),
            eth_dst: MacAddr([2, 0, 0, 0, 0, 2]),
            remote_eth_dst: Some(MacAddr([2, 0, 0, 0, 0, 3])),
            ip_src: Ipv4Addr::new(10, 0, 0, 1),
            ip_dst: Ipv4Addr::new(10, 0, 0, 2),
            oam: true,
            multiplier: 255,
        };
        assert_eq!((config, notes), (expected, String::new()));
    }

    #[test]
    fn wrong_bfd_settings_are_defaults_or_noted() {
        let (config, notes) = bfd(&[
            ("min_tx", "fast"),
            ("mult", "256"),
            ("decay_min_rx", "10"),
            ("bfd_src_ip", "host"),
        ]);
        let decay_min_rx = Some(Duration::from_millis(10));
        let expected = BfdConfig {
            decay_min_rx,
            ..BfdConfig::default()
        };
        assert_eq!(config, expected);
        let expected = "bfd:decay_min_rx cannot be less than 1000 ms; \
                        bfd:bfd_src_ip: \"host\" is not a valid IP address";
        assert_eq!(notes, expected);
    }

    #[test]
    fn cfm_settings_are_read() {
        let other = |keys: &[(&str, &str)]| pairs(keys);
        let keys = [
            ("cfm_interval", "300"),
            ("cfm_demand", "true"),
            ("cfm_extended", "true"),
            ("cfm_opstate", "down"),
            ("cfm_ccm_vlan", "random"),
            ("cfm_ccm_pcp", "5"),
        ];
        let columns = json!({"cfm_mpid": -1, "other_config": other(&keys)});
        let (monitoring, notes) = read(columns);
        let expected = CfmConfig {
            mpid: u64::MAX,
            interval: Duration::from_millis(300),
            is_extended: true,
            is_demand: true,
            is_up: false,
            vlan: CcmVlan::Random,
            pcp: 5,
            check_tunnel_key: false,
        };
        assert_eq!((monitoring.cfm, notes), (Some(expected), String::new()));
        let (monitoring, notes) = read(json!({"cfm_mpid": 8192}));
        assert_eq!(monitoring.cfm, None);
        assert_eq!(
            notes,
            "cfm_mpid: 8192 is not from 1 to 8191: CFM is disabled"
        );
    }
}
