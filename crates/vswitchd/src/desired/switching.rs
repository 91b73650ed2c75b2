//! The columns of `Port` and `Bridge` for `NORMAL` (ovs-vswitchd.conf.db(5), "VLAN Configuration"
//! and "MAC Table").

use std::time::Duration;

use crate::desired::bond;
use crate::rows::Record;
use config::{
    LogicalPort, MulticastPort, PortVlans, PriorityTags, SnoopingConfig, SwitchingConfig, TagType,
    VID_MAX, VlanLimit, VlanMode, VlanSet,
};

/// The range of `other_config:mac-aging-time`, in seconds, as in Open vSwitch.
const AGEING: (u64, u64) = (15, 3600);

/// The range of `other_config:mac-table-size`, as in Open vSwitch.
const MAC_TABLE_SIZE: (usize, usize) = (10, 1_000_000);

/// Reads a row of `Port`, without the numbers of its interfaces, and returns the reasons for
/// settings that are not applied.
///
/// # Errors
/// A setting is not supported, and without it frames would be forwarded contrary to the settings.
pub(super) fn read_port(port: Record<'_>) -> Result<(LogicalPort, Vec<String>), String> {
    let mut notes = Vec::new();
    let tag = port.integer("tag").map(vid).transpose()?;
    let trunks = read_vids(port, "trunks")?;
    let mode = match (port.text("vlan_mode"), tag) {
        (Some("access"), tag) => access(tag),
        (Some("native-tagged" | "native-untagged"), tag) => {
            let is_tagged = port.text("vlan_mode") == Some("native-tagged");
            VlanMode::native(
                tag.unwrap_or(0),
                trunks.unwrap_or_else(VlanSet::all),
                is_tagged,
            )
        }
        (Some("trunk"), _) => trunk(trunks),
        (Some("dot1q-tunnel"), tag) => tunnel(port, tag)?,
        (Some(mode), _) => return Err(format!("vlan_mode: {mode} is not supported")),
        (None, Some(tag)) => {
            if trunks.is_some() {
                notes.push("trunks: ignored: the port is in the VLAN of its tag".to_owned());
            }
            access(Some(tag))
        }
        (None, None) => trunk(trunks),
    };
    let priority_tags = match port.map("other_config").get("priority-tags").copied() {
        None | Some("never" | "no" | "false") => PriorityTags::No,
        Some("if-nonzero" | "true") => PriorityTags::IfNonzero,
        Some("always") => PriorityTags::Always,
        Some(other) => {
            notes.push(format!(
                "other_config:priority-tags: '{other}' is not known"
            ));
            PriorityTags::No
        }
    };
    let others = port.map("other_config");
    let is_true = |key| others.get(key) == Some(&"true");
    let logical = LogicalPort {
        name: port.text("name").unwrap_or_default().to_owned(),
        members: Vec::new(),
        vlans: PortVlans {
            mode,
            priority_tags,
        },
        is_protected: port.is_true("protected"),
        bond: bond::read_bond(port),
        multicast: MulticastPort {
            flood: is_true("mcast-snooping-flood"),
            flood_reports: is_true("mcast-snooping-flood-reports"),
        },
    };
    Ok((logical, notes))
}

fn access(tag: Option<u16>) -> VlanMode {
    VlanMode::Access {
        tag: tag.unwrap_or(0),
    }
}

/// Returns the mode of a `dot1q-tunnel` port. Without a service VLAN it would send customers'
/// frames to trunks unchanged.
fn tunnel(port: Record<'_>, tag: Option<u16>) -> Result<VlanMode, String> {
    let tag = tag.filter(|tag| *tag != 0);
    let customers = read_vids(port, "cvlans")?;
    let tag_type = match port.map("other_config").get("qinq-ethtype").copied() {
        Some("802.1q") => TagType::Customer,
        _ => TagType::Service,
    };
    Ok(VlanMode::Tunnel {
        tag: tag.ok_or("vlan_mode: dot1q-tunnel needs a VLAN of its own in tag")?,
        customers: customers.unwrap_or_else(VlanSet::all),
        tag_type,
    })
}

/// Reads the number of parsed VLAN tags, `other_config:vlan-limit` of `Open_vSwitch`. As in Open
/// vSwitch, an invalid number is ignored, and one that is not positive means no limit.
pub(super) fn read_vlan_limit(root: Record<'_>) -> VlanLimit {
    let limit = root.map("other_config").get("vlan-limit").copied();
    match limit.and_then(|limit| limit.parse::<i64>().ok()) {
        None | Some(1) => VlanLimit::One,
        Some(_) => VlanLimit::Two,
    }
}

fn trunk(trunks: Option<VlanSet>) -> VlanMode {
    VlanMode::Trunk {
        trunks: trunks.unwrap_or_else(VlanSet::all),
    }
}

fn vid(number: i64) -> Result<u16, String> {
    let vid = u16::try_from(number).ok().filter(|vid| *vid <= VID_MAX);
    vid.ok_or_else(|| format!("{number} is no VLAN: 0 to {VID_MAX}"))
}

/// Reads the VLANs in a column; none if it is empty.
fn read_vids(row: Record<'_>, column: &str) -> Result<Option<VlanSet>, String> {
    let vids = row.integers(column).map(vid).collect::<Result<Vec<_>, _>>();
    let vids = vids.map_err(|why| format!("{column}: {why}"))?;
    Ok((!vids.is_empty()).then(|| vids.into_iter().collect()))
}

/// Reads a key of `Bridge` `other_config` about the MAC table, multicast snooping or BPDUs into
/// `switching`. Returns none if `key` is none of these.
///
/// # Errors
/// The value is invalid.
pub(super) fn read_key(
    switching: &mut SwitchingConfig,
    key: &str,
    value: &str,
) -> Option<Result<(), String>> {
    let number = || {
        value
            .parse::<u64>()
            .map_err(|_| format!("'{value}' is no number"))
    };
    let mut unheard = SnoopingConfig::default();
    let snooping = switching.snooping.as_mut().unwrap_or(&mut unheard);
    Some(match key {
        "mcast-snooping-aging-time" => number().map(|seconds| {
            snooping.ageing = Duration::from_secs(seconds.clamp(AGEING.0, AGEING.1));
        }),
        "mcast-snooping-table-size" => number().map(|size| {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            snooping.groups_max = size.clamp(MAC_TABLE_SIZE.0, MAC_TABLE_SIZE.1);
        }),
        "mcast-snooping-disable-flood-unregistered" => {
            snooping.flood_unregistered = value != "true";
            Ok(())
        }
        "mac-aging-time" => number().map(|seconds| {
            switching.ageing = Duration::from_secs(seconds.clamp(AGEING.0, AGEING.1));
        }),
        "mac-table-size" => number().map(|size| {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            switching.fdb_size = size.clamp(MAC_TABLE_SIZE.0, MAC_TABLE_SIZE.1);
        }),
        "forward-bpdu" => {
            switching.forward_bpdu = value == "true";
            Ok(())
        }
        _ => return None,
    })
}

/// Reads the VLANs in which a bridge floods instead of learning.
pub(super) fn read_flood_vlans(row: Record<'_>) -> Result<VlanSet, String> {
    read_vids(row, "flood_vlans").map(Option::unwrap_or_default)
}
