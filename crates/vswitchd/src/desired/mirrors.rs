//! Rows of the table `Mirror` (ovs-vswitchd.conf.db(5)).

use std::collections::BTreeSet;

use base::PortNo;
use ovsdb::{Database, Uuid};

use super::{BridgeOutcome, DesiredState, InterfaceOutcome, by_name};
use crate::rows::Record;
use config::{BridgeConfig, MIRRORS_MAX, MirrorConfig, MirrorOutput};

/// The column of `Bridge` that refers to mirrors; `status` reports their problems under this name.
pub(crate) const COLUMN: &str = "mirrors";

/// Reads the mirrors of a bridge, after its ports. Settings that are not applied are notes of the
/// bridge: mirrors have no column for them.
pub(super) fn read_mirrors(
    database: &Database,
    row: Record<'_>,
    config: &mut BridgeConfig,
    outcome: &mut BridgeOutcome,
    desired: &mut DesiredState,
) {
    for mirror in by_name(row.named_by(database, COLUMN, "Mirror").collect()) {
        let mut unapplied = Vec::new();
        let reader = Reader {
            database,
            bridge: row,
            mirror,
            desired,
        };
        match reader.read(&mut unapplied) {
            Ok(_) if config.mirrors.len() == MIRRORS_MAX => {
                unapplied.push(format!("ignored: a bridge has {MIRRORS_MAX} at most"));
            }
            Ok(read) => {
                config.mirrors.push(read);
                desired.mirrors.insert(mirror.uuid, config.name.clone());
            }
            Err(why) => unapplied.push(format!("ignored: {why}")),
        }
        if !unapplied.is_empty() {
            let key = format!("{COLUMN}:{}", mirror.text("name").unwrap_or_default());
            let note = outcome.notes.entry(key).or_default();
            let before = (!note.is_empty()).then(|| std::mem::take(note));
            *note = before
                .into_iter()
                .chain(unapplied)
                .collect::<Vec<_>>()
                .join("; ");
        }
    }
}

/// The reader of one row.
struct Reader<'a> {
    database: &'a Database,
    bridge: Record<'a>,
    mirror: Record<'a>,
    desired: &'a DesiredState,
}

impl Reader<'_> {
    fn read(&self, unapplied: &mut Vec<String>) -> Result<MirrorConfig, String> {
        let mirror = self.mirror;
        if mirror.has("filter") {
            // Without the filter, the mirror would copy more than it may.
            return Err("filter: not supported".to_owned());
        }
        let vlans: BTreeSet<u16> = mirror
            .integers("select_vlan")
            .filter_map(|vid| u16::try_from(vid).ok())
            .collect();
        let output = self.output(unapplied)?;
        Ok(MirrorConfig {
            key: mirror.uuid.to_string(),
            all: mirror.is_true("select_all"),
            ingress_ports: self.selected("select_src_port", unapplied),
            egress_ports: self.selected("select_dst_port", unapplied),
            vlans: (!vlans.is_empty()).then(|| vlans.into_iter().collect()),
            output,
            snaplen: mirror
                .integer("snaplen")
                .and_then(|len| u16::try_from(len).ok())
                // The maximum truncates nothing.
                .filter(|len| *len < u16::MAX),
        })
    }

    /// Returns the output. If a port and a VLAN are set, the port applies, as in Open vSwitch.
    fn output(&self, unapplied: &mut Vec<String>) -> Result<MirrorOutput, String> {
        let vlan = self.mirror.integer("output_vlan");
        let vlan = vlan.and_then(|vid| u16::try_from(vid).ok());
        let port = self.mirror.named_by(self.database, "output_port", "Port");
        match (port.into_iter().next(), vlan) {
            (None, None) => Err("no output: set output_port or output_vlan".to_owned()),
            (None, Some(vlan)) => Ok(MirrorOutput::Vlan(vlan)),
            (Some(port), vlan) => {
                if vlan.is_some() {
                    unapplied.push("output_vlan: ignored: output_port takes precedence".to_owned());
                }
                let members = self.members("output_port", port)?;
                match members.is_empty() {
                    true => Err(format!("output_port: {} could not be created", name(port))),
                    false => Ok(MirrorOutput::Port(members)),
                }
            }
        }
    }

    /// Returns the interfaces of the ports that a column refers to.
    fn selected(&self, column: &'static str, unapplied: &mut Vec<String>) -> Vec<PortNo> {
        let mut selected = Vec::new();
        for port in by_name(
            self.mirror
                .named_by(self.database, column, "Port")
                .collect(),
        ) {
            match self.members(column, port) {
                Ok(members) => selected.extend(members),
                Err(why) => unapplied.push(why),
            }
        }
        selected
    }

    /// Returns the numbers of a port's existing interfaces.
    ///
    /// # Errors
    /// The port belongs to another bridge.
    fn members(&self, column: &str, port: Record<'_>) -> Result<Vec<PortNo>, String> {
        let mut own = self.bridge.named_by(self.database, "ports", "Port");
        if !own.any(|own| own.uuid == port.uuid) {
            let bridge = self.bridge.text("name").unwrap_or_default();
            return Err(format!("{column}: {} is no port of {bridge}", name(port)));
        }
        let interfaces = port.named_by(self.database, "interfaces", "Interface");
        Ok(interfaces
            .filter_map(|interface| self.number(interface.uuid))
            .collect())
    }

    fn number(&self, interface: Uuid) -> Option<PortNo> {
        match self.desired.interfaces.get(&interface)? {
            InterfaceOutcome::Port { number, .. } => Some(*number),
            InterfaceOutcome::Refused(_) => None,
        }
    }
}

fn name<'a>(port: Record<'a>) -> &'a str {
    port.text("name").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::desired::convert_rows;
    use crate::testing::{empty, names, put, put_bridge, put_root, uuid};
    use config::Config;

    /// Returns two bridges, of which the first has a mirror with these columns.
    fn with(mirror: Value) -> DesiredState {
        let mut database = empty();
        let port = |name, number| (name, json!({"ofport_request": number}));
        let mirrors = json!({"mirrors": names("Mirror", &["m"])});
        let ports = [port("p1", 1), port("p2", 2), port("p3", 3)];
        put_bridge(&mut database, "br0", mirrors, &ports, &[]);
        put_bridge(&mut database, "br1", json!({}), &[port("p9", 9)], &[]);
        let mut row = mirror;
        row["name"] = json!("m");
        put(&mut database, "Mirror", "m", &row);
        put_root(&mut database, &["br0", "br1"], 1);
        convert_rows(&database, &Config::default())
    }

    fn note(desired: &DesiredState) -> Option<&str> {
        let notes = &desired.bridges[&uuid("Bridge", "br0")].notes;
        notes.get("mirrors:m").map(String::as_str)
    }

    #[test]
    fn mirror_row_is_read_with_port_numbers() {
        let desired = with(json!({
            "select_src_port": names("Port", &["p1", "br0"]),
            "select_dst_port": names("Port", &["p2"]),
            "select_vlan": ["set", [5, 0]],
            "output_port": names("Port", &["p3"]),
            "snaplen": 100,
        }));
        let [mirror] = &desired.config.bridges[0].mirrors[..] else {
            panic!("{:?}", desired.config.bridges);
        };
        assert_eq!(mirror.ingress_ports, [PortNo::LOCAL, PortNo(1)]);
        assert_eq!(mirror.egress_ports, [PortNo(2)]);
        assert!(
            mirror
                .vlans
                .as_ref()
                .is_some_and(|vlans| vlans.iter().eq([0, 5]))
        );
        assert_eq!(mirror.output, MirrorOutput::Port(vec![PortNo(3)]));
        assert_eq!((mirror.snaplen, mirror.all), (Some(100), false));
        assert_eq!(desired.mirrors[&uuid("Mirror", "m")], "br0");
        assert_eq!(note(&desired), None);
    }

    #[test]
    fn mirror_errors_are_reported_on_bridge() {
        let refused = [
            (json!({"select_all": true}), "no output: set"),
            (
                json!({"output_vlan": 7, "filter": "icmp"}),
                "filter: not supported",
            ),
            (
                json!({"output_port": names("Port", &["p9"])}),
                "p9 is no port of br0",
            ),
        ];
        for (columns, why) in refused {
            let desired = with(columns);
            assert_eq!(desired.config.bridges[0].mirrors, []);
            assert!(desired.mirrors.is_empty());
            assert!(
                note(&desired).is_some_and(|note| note.contains(why)),
                "{desired:?}"
            );
        }
        let kept = [
            (
                json!({"output_port": names("Port", &["p3"]), "output_vlan": 7}),
                "output_vlan: ",
            ),
            (
                json!({"output_vlan": 7, "select_src_port": names("Port", &["p9", "p1"])}),
                "select_src_port: p9 is no port of br0",
            ),
        ];
        for (columns, why) in kept {
            let desired = with(columns);
            assert_eq!(desired.config.bridges[0].mirrors.len(), 1);
            assert!(
                note(&desired).is_some_and(|note| note.starts_with(why)),
                "{desired:?}"
            );
        }
    }
}
