//! The bill of materials of the program: the third-party crates that it is linked of, with their
//! licences and the checksums of the lock file, in the JSON form of CycloneDX 1.5.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::notices::{Crate, linked, read};
use crate::TaskError;

/// Returns the bill of materials of this version, with or without DPDK ports. It has no date and no
/// random serial number, so that the same sources have the same bill.
pub(super) fn text(root: &Path, dpdk: bool, version: &str) -> Result<String, TaskError> {
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    let checksums = checksums(&lock);
    let lines = linked(root, dpdk)?;
    // Crates of the workspace have no checksum.
    let crates = lines.lines().filter_map(read).filter_map(|(of, licence)| {
        let checksum = checksums.get(&of)?;
        Some(component(&of, licence, checksum))
    });
    let components: Vec<_> = crates.collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {
            "type": "application", "name": "comporta", "version": version,
            "licenses": [{"expression": "Apache-2.0"}],
        }},
        "components": components,
    });
    Ok(format!("{bill:#}\n"))
}

fn component((name, version): &Crate, licence: &str, checksum: &str) -> Value {
    // Older crates separate alternatives by a slash, which SPDX does not have.
    let licence = licence.replace(" / ", " OR ").replace('/', " OR ");
    json!({
        "type": "library",
        "name": name,
        "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
        "licenses": [{"expression": licence}],
        "hashes": [{"alg": "SHA-256", "content": checksum}],
    })
}

/// Returns the checksums of a lock file.
fn checksums(lock: &str) -> BTreeMap<Crate, String> {
    let packages = lock.split("[[package]]").skip(1);
    let package = |text: &str| {
        let value = |key: &str| {
            let mut lines = text.lines();
            let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
            value.strip_suffix('"').map(str::to_owned)
        };
        Some(((value("name")?, value("version")?), value("checksum")?))
    };
    packages.filter_map(package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bill_lists_third_party_crates_with_checksums() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = text(&root, false, "1.2.3").expect("cargo knows the project");
        let bill: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(bill["metadata"]["component"]["version"], "1.2.3");
        let components = bill["components"].as_array().expect("a list");
        let named = |name: &str| components.iter().find(|one| one["name"] == name);
        assert!(named("base").is_none() && components.len() > 100);
        let ring = named("ring").expect("the program is linked of ring");
        let purl = ring["purl"].as_str().expect("a purl");
        assert!(purl.starts_with("pkg:cargo/ring@0."), "{purl}");
        let checksum = ring["hashes"][0]["content"].as_str().expect("a checksum");
        assert_eq!(checksum.len(), 64);
    }
}
