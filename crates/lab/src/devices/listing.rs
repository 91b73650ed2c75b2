//! List of all devices, with the missing requirements of each.

use std::fmt::Write as _;
use std::path::Path;

use record::InventoryRecord;
use serde::Serialize;
use testbed::{DeviceKind, Mode};

use super::describe;

/// Device of the list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceEntry {
    /// Name on the command line.
    pub name: String,
    /// Description in a line.
    pub about: String,
    /// Modes, the default first.
    pub modes: Vec<&'static str>,
    /// Kind of its ports.
    pub ports: String,
    /// True if the device busy-polls, and therefore is measured alone.
    pub polls: bool,
    /// Missing requirement, with the remedy.
    pub missing: Option<String>,
    /// Inventory data from the description file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory: Option<InventoryRecord>,
}

/// Returns every built-in device, and those of `files`; `comporta` is the program of that device.
#[must_use]
pub fn list(comporta: &Path, files: &[DeviceKind]) -> Vec<DeviceEntry> {
    let known = DeviceKind::ALL.into_iter();
    let all = known.chain([DeviceKind::Impaired(None)]);
    all.chain(files.iter().copied())
        .map(|kind| listed(kind, comporta))
        .collect()
}

fn listed(kind: DeviceKind, comporta: &Path) -> DeviceEntry {
    let described = describe(kind);
    let mut modes = kind.modes();
    let mut missing = kind
        .check_requirements(comporta)
        .err()
        .map(|missing| missing.to_string());
    let mut inventory = None;
    match described {
        Ok(Some(described)) => {
            modes = described.modes();
            let cards = described.external.ports.iter();
            let lacks = cards.map(testbed::NicState::of).find_map(Result::err);
            missing = missing.or_else(|| lacks.map(|failure| failure.to_string()));
            inventory = Some(described.inventory);
        }
        Ok(None) => {}
        Err(bad) => missing = Some(bad.to_string()),
    }
    DeviceEntry {
        name: kind.name().to_owned(),
        about: kind.about().to_owned(),
        modes: modes.iter().copied().map(Mode::name).collect(),
        ports: kind.port_kind().to_owned(),
        polls: kind.polls(),
        missing,
        inventory,
    }
}

/// Returns the list as text.
#[must_use]
pub fn text(devices: &[DeviceEntry]) -> String {
    let mut text = String::new();
    for device in devices {
        let DeviceEntry { name, about, .. } = device;
        let modes = device.modes.join(", ");
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<16} {about}");
        let _ = write!(text, "{:<16} modes: {modes}; ports: {}", "", device.ports);
        let _ = match device.polls {
            true => writeln!(text, "; busy-polls, so it is measured alone"),
            false => writeln!(text),
        };
        if let Some(inventory) = &device.inventory {
            let _ = writeln!(text, "{:<16} {inventory}", "");
        }
        if let Some(missing) = &device.missing {
            let _ = writeln!(text, "{:<16} not usable yet: {missing}", "");
        }
    }
    text
}

/// Returns the list as JSON.
///
/// # Panics
/// Never: strings and lists of strings can be serialized.
#[must_use]
pub fn json(devices: &[DeviceEntry]) -> String {
    serde_json::to_string_pretty(devices).expect("strings and lists can be serialized")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_has_modes_ports_and_missing_requirements() {
        let file = std::env::temp_dir().join(format!("listed-{}.toml", std::process::id()));
        let text = "brand = 'Acme'\nmodel = 'X'\nports = ['nonesuch0', 'nonesuch1']";
        std::fs::write(&file, text).unwrap();
        let external = format!("external:{}", file.display()).parse().unwrap();
        let all = list("/nonexistent".as_ref(), &[external]);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(all.len(), DeviceKind::ALL.len() + 2);
        let find = |name: &str| all.iter().find(|device| device.name == name).unwrap();
        assert_eq!(find("comporta").modes, ["openflow", "legacy"]);
        assert_eq!(find("linux-bridge").modes, ["legacy"]);
        assert!(find("impaired").polls);
        let mine = all.last().unwrap();
        assert_eq!(mine.modes, ["legacy"], "it has no controller");
        assert!(mine.missing.is_some() && mine.inventory.is_some());
        let shown = super::text(&all);
        assert!(shown.contains("Acme X") && shown.contains("not usable yet"));
        let json: serde_json::Value = serde_json::from_str(&json(&all)).unwrap();
        assert_eq!(json[0]["name"], "comporta");
        assert_eq!(json[0]["modes"][1], "legacy");
    }
}
