//! The part of `cargo metadata` that this program uses.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::TaskError;

/// The platforms whose dependencies count, as in `deny.toml`.
const PLATFORMS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// All packages of the build, the workspace's and others.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
}

/// A package.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Licence, as an SPDX expression.
    pub(crate) license: Option<String>,
    /// True for a member of the workspace.
    pub(crate) ours: bool,
    /// Manifest, from the project's root.
    pub(crate) manifest: String,
    /// Root files of the targets, from the project's root.
    pub(crate) roots: Vec<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency that a package declares.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// True for a dev-dependency.
    pub(crate) dev: bool,
}

/// Returns the cargo that runs this program.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

impl Metadata {
    /// Runs `cargo metadata` for the project in `root`.
    pub(crate) fn read(root: &Path) -> Result<Self, TaskError> {
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

    /// Parses cargo's answer. Missing parts are empty.
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

    /// Returns the members of the workspace.
    pub(crate) fn ours(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.ours)
    }

    /// True if the workspace has a member called `name`.
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

/// Returns the elements of a JSON array, or none for another value.
fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_other_platforms_are_ignored() {
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
