//! Rows of the tables `Datapath`, `CT_Zone` and `CT_Timeout_Policy`.

use std::collections::BTreeMap;

use ovsdb::{Atom, Database, Datum};

use super::DesiredState;
use crate::rows::Record;
use config::{DatapathConfig, ZoneConfig};

/// Reads the datapaths of the root row, by type.
pub(super) fn read_datapaths(database: &Database, root: Record<'_>, desired: &mut DesiredState) {
    let pairs = root.datum("datapaths").into_iter().flat_map(Datum::pairs);
    for (datapath_type, row) in pairs {
        let (Atom::String(datapath_type), Atom::Uuid(uuid)) = (datapath_type, row) else {
            continue;
        };
        let Some(row) = Record::of(database, "Datapath", *uuid) else {
            continue;
        };
        let datapath = DatapathConfig {
            zones: read_zones(database, row),
            // Newer schemas than 8.3 have it.
            zone_limit: limit_of(row, "ct_zone_default_limit"),
        };
        let datapaths = &mut desired.config.datapaths;
        datapaths.insert(datapath_type.clone(), datapath);
        desired.datapaths.insert(*uuid);
    }
}

fn read_zones(database: &Database, row: Record<'_>) -> BTreeMap<u16, ZoneConfig> {
    let pairs = row.datum("ct_zones").into_iter().flat_map(Datum::pairs);
    let zones = pairs.filter_map(|pair| {
        let (Atom::Integer(number), Atom::Uuid(uuid)) = pair else {
            return None;
        };
        let zone = u16::try_from(*number).ok()?;
        let row = Record::of(database, "CT_Zone", *uuid)?;
        let mut policies = row.named_by(database, "timeout_policy", "CT_Timeout_Policy");
        let config = ZoneConfig {
            timeouts: policies.next().map(read_timeouts).unwrap_or_default(),
            // Newer schemas than 8.3 have it.
            limit: limit_of(row, "limit"),
        };
        Some((zone, config))
    });
    zones.collect()
}

fn read_timeouts(row: Record<'_>) -> BTreeMap<String, u32> {
    let pairs = row.datum("timeouts").into_iter().flat_map(Datum::pairs);
    let timeouts = pairs.filter_map(|pair| match pair {
        (Atom::String(name), Atom::Integer(seconds)) => {
            Some((name.clone(), u32::try_from(*seconds).ok()?))
        }
        _ => None,
    });
    timeouts.collect()
}

fn limit_of(row: Record<'_>, column: &str) -> Option<u32> {
    u32::try_from(row.integer(column)?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::desired::convert_rows;
    use crate::testing::{empty, names, put, uuid};
    use config::Config;

    #[test]
    fn datapath_has_zones_with_timeouts() {
        let mut database = empty();
        let timeouts = json!({"timeouts": ["map", [["udp_first", 5], ["icmp_reply", 7]]]});
        put(&mut database, "CT_Timeout_Policy", "short", &timeouts);
        let zone = json!({"timeout_policy": names("CT_Timeout_Policy", &["short"])});
        put(&mut database, "CT_Zone", "a", &zone);
        put(&mut database, "CT_Zone", "b", &json!({}));
        let reference = |table, name| json!(["uuid", uuid(table, name).to_string()]);
        let zone = |number: u16, name| json!([number, reference("CT_Zone", name)]);
        let zones = json!({"ct_zones": ["map", [zone(9, "a"), zone(10, "b")]]});
        put(&mut database, "Datapath", "d", &zones);
        let datapaths = json!(["map", [["netdev", reference("Datapath", "d")]]]);
        let root = json!({"datapaths": datapaths, "next_cfg": 1});
        put(&mut database, "Open_vSwitch", ".", &root);
        let desired = convert_rows(&database, &Config::default());
        let datapath = &desired.config.datapaths["netdev"];
        assert_eq!(datapath.zones.len(), 2);
        let timeouts = [("icmp_reply".to_owned(), 7), ("udp_first".to_owned(), 5)];
        assert_eq!(datapath.zones[&9].timeouts, BTreeMap::from(timeouts));
        assert_eq!(datapath.zones[&10], ZoneConfig::default());
        assert!(desired.datapaths.contains(&uuid("Datapath", "d")));
    }
}
