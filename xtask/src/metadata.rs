//! What `cargo metadata` says about packages, as far as anything here asks.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::Failure;

/// The platforms whose dependencies count; those of `deny.toml`.
const PLATFORMS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Everything that is built, ours and theirs.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
}

/// One package.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The licence, as an SPDX expression.
    pub(crate) license: Option<String>,
    /// Whether it is a member of the workspace.
    pub(crate) ours: bool,
    /// Its manifest, from the project's root.
    pub(crate) manifest: String,
    /// The root files of its targets, from the project's root.
    pub(crate) roots: Vec<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// What a package says that it uses.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Whether only tests use it.
    pub(crate) dev: bool,
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

impl Metadata {
    /// Asks cargo about the project in `root`.
    pub(crate) fn read(root: &Path) -> Result<Self, Failure> {
        let mut command = Command::new(cargo());
        command
            .current_dir(root)
            .args(["metadata", "--format-version=1", "--locked"]);
        for platform in PLATFORMS {
            command.args(["--filter-platform", platform]);
        }
        let output = command.output()?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(format!("cargo metadata: {}", complaint.trim()).into());
        }
        Ok(Self::parse(&serde_json::from_slice(&output.stdout)?, root))
    }

    /// Picks from cargo's answer. What is not there is empty.
    fn parse(answer: &Value, root: &Path) -> Self {
        let ids = |list: &Value| -> BTreeSet<String> {
            each(list)
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        let members = ids(&answer["workspace_members"]);
        let resolved: BTreeSet<&str> = each(&answer["resolve"]["nodes"])
            .filter_map(|node| node["id"].as_str())
            .collect();
        let packages = each(&answer["packages"]).filter_map(|package| {
            let id = package["id"].as_str()?;
            resolved
                .contains(id)
                .then(|| Package::parse(package, members.contains(id), root))
        });
        Self {
            packages: packages.collect(),
        }
    }

    /// The members of the workspace.
    pub(crate) fn ours(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.ours)
    }

    /// Whether the workspace has a member of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.ours().any(|package| package.name == name)
    }
}

impl Package {
    fn parse(package: &Value, ours: bool, root: &Path) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let local = |value: &Value| {
            let path = Path::new(value.as_str().unwrap_or_default());
            path.strip_prefix(root)
                .unwrap_or(path)
                .to_string_lossy()
                .into_owned()
        };
        let dependency = |value: &Value| Dependency {
            name: text(&value["name"]),
            dev: value["kind"] == "dev",
        };
        Self {
            name: text(&package["name"]),
            version: text(&package["version"]),
            license: package["license"].as_str().map(str::to_owned),
            ours,
            manifest: local(&package["manifest_path"]),
            roots: each(&package["targets"])
                .map(|target| local(&target["src_path"]))
                .collect(),
            dependencies: each(&package["dependencies"]).map(dependency).collect(),
        }
    }
}

/// The elements of a JSON array; none if it is something else.
fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_built_here_counts() {
        let answer = serde_json::json!({
            "workspace_members": ["flow"],
            "resolve": { "nodes": [{ "id": "flow" }, { "id": "libc" }] },
            "packages": [
                { "id": "flow", "name": "flow", "version": "0.1.0", "license": "Apache-2.0",
                  "manifest_path": "/here/crates/flow/Cargo.toml",
                  "targets": [{ "src_path": "/here/crates/flow/src/lib.rs" }],
                  "dependencies": [
                      { "name": "base", "kind": null }, { "name": "testkit", "kind": "dev" }] },
                { "id": "libc", "name": "libc", "version": "0.2.0", "license": null },
                { "id": "windows", "name": "windows" },
            ],
        });
        let metadata = Metadata::parse(&answer, Path::new("/here"));
        let names: Vec<_> = metadata
            .packages
            .iter()
            .map(|package| &package.name)
            .collect();
        assert_eq!(names, ["flow", "libc"]);
        assert!(metadata.has("flow") && !metadata.has("libc"));
        let flow = &metadata.packages[0];
        assert_eq!(flow.manifest, "crates/flow/Cargo.toml");
        assert_eq!(flow.roots, ["crates/flow/src/lib.rs"]);
        assert!(!flow.dependencies[0].dev && flow.dependencies[1].dev);
    }
}
