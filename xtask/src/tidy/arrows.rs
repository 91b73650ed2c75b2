//! Dependencies between crates: the table of ARCHITECTURE.md, checked. Every crate must also
//! configure lints.

use super::{SourceFile, TidyFinding, Tree};
use crate::metadata::{Dependency, Package};

/// A crate, and the crates of the workspace that it may use.
struct Arrows {
    name: &'static str,
    may_use: &'static [&'static str],
}

#[rustfmt::skip]
const ARROWS: [Arrows; 37] = {
    const fn row(name: &'static str, may_use: &'static [&'static str]) -> Arrows {
        Arrows { name, may_use }
    }
    [
        row("base",     &[]),
        row("sys",      &["base"]),
        row("capture-file", &["base"]),
        row("packet",   &["base", "sys"]),
        row("flow",     &["base", "packet"]),
        row("openflow", &["base", "packet", "flow"]),
        row("conntrack", &["base", "packet", "sys"]),
        row("pipeline", &["base", "packet", "flow", "conntrack"]),
        row("fastpath", &["base", "packet", "flow", "conntrack", "pipeline", "sys"]),
        row("ports",    &["base", "capture-file", "packet", "sys"]),
        row("dpdk",     &["base", "capture-file", "packet", "sys", "ports"]),
        row("ovsdb",    &["base"]),
        row("config",   &["base", "packet", "flow", "openflow", "ports", "dpdk"]),
        row("l2",       &["base", "config", "packet"]),
        row("flow-export", &["base", "packet", "flow", "config"]),
        row("dataplane", &["base", "packet", "flow", "pipeline", "fastpath", "ports", "config", "l2", "flow-export"]),
        row("switch",   &["base", "packet", "flow", "openflow", "conntrack", "pipeline", "fastpath", "ports", "config", "l2", "flow-export", "dataplane"]),
        row("control-api", &[]),
        row("runtime",  &["base", "packet", "flow", "openflow", "conntrack", "pipeline", "fastpath", "sys", "ports", "dpdk", "config", "l2", "flow-export", "dataplane", "switch", "control-api"]),
        row("vswitchd", &["base", "packet", "flow", "ports", "dpdk", "sys", "ovsdb", "config", "l2", "flow-export", "runtime"]),
        row("testbed",  &["base", "sys"]),
        row("stats",    &["base"]),
        row("trafficgen", &["base", "capture-file", "packet", "ports", "stats", "testbed"]),
        row("controller", &["base", "packet", "flow", "openflow", "testbed"]),
        row("record",   &["base", "stats", "testbed"]),
        row("report",   &["base", "record", "stats", "testbed"]),
        row("lab",      &["base", "controller", "packet", "flow", "openflow", "record", "report", "stats", "testbed", "trafficgen"]),
        row("tools",    &["base", "capture-file", "packet", "flow", "openflow"]),
        row("doctor",   &["sys"]),
        row("watch",    &["capture-file", "control-api", "openflow"]),
        row("cli",      &["config", "control-api", "runtime", "vswitchd", "lab", "record", "report", "tools", "watch", "doctor"]),
        row("testkit",  &["base", "capture-file", "config", "conntrack", "dataplane", "packet", "flow", "l2", "openflow", "pipeline", "fastpath", "ports", "ovsdb", "record", "switch"]),
        row("counts",   &["base", "packet", "flow", "openflow", "pipeline", "fastpath", "ports", "config", "l2", "dataplane", "testkit"]),
        row("bench",    &["base", "capture-file", "conntrack", "packet", "flow", "fastpath", "pipeline", "ports", "testbed", "testkit"]),
        row("suites",   &["base", "capture-file", "packet", "flow", "openflow", "pipeline", "ports", "testbed", "testkit"]),
        row("tests",    &["base", "capture-file", "controller", "packet", "flow", "lab", "openflow", "ports", "sys", "testbed", "testkit", "trafficgen"]),
        row("xtask",    &[]),
    ]
};

/// The crate that only tests may use.
const FOR_TESTS: &str = "testkit";

pub(super) fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for package in tree.metadata.ours() {
        let nothing = SourceFile::default();
        let manifest = tree.file(&package.manifest).unwrap_or(&nothing);
        let find = |line, what: String| TidyFinding::new(&package.manifest, line, what);
        match ARROWS.iter().find(|row| row.name == package.name) {
            Some(row) => {
                let forbidden = package.dependencies.iter().filter(|dependency| {
                    tree.metadata.has(&dependency.name) && !is_allowed(row, dependency)
                });
                findings.extend(forbidden.map(|dependency| {
                    let what = complaint(package, dependency);
                    find(manifest.line_of(&dependency.name), what)
                }));
            }
            None => findings.push(find(1, format!(
                "crate `{}` has no row in the table of crates: add it to ARCHITECTURE.md and to xtask's arrows",
                package.name
            ))),
        }
        if !obeys_lints(manifest) {
            findings.push(find(
                1,
                "no lints: add `[lints]` with `workspace = true`".to_owned(),
            ));
        }
    }
    findings
}

/// True if the crate of `row` may use `dependency`.
fn is_allowed(row: &Arrows, dependency: &Dependency) -> bool {
    let name = dependency.name.as_str();
    row.may_use.contains(&name) || (dependency.dev && name == FOR_TESTS)
}

/// Describes a forbidden dependency.
fn complaint(package: &Package, dependency: &Dependency) -> String {
    let (from, to) = (&package.name, &dependency.name);
    match to == FOR_TESTS {
        true => format!("`{from}` ships `{to}`: make it a dev-dependency"),
        false => format!("`{from}` may not use `{to}`: move the shared code to a crate below both"),
    }
}

/// True if the manifest inherits the workspace's lints or lists its own.
fn obeys_lints(manifest: &SourceFile) -> bool {
    let mut lines = manifest.text.lines().map(str::trim);
    lines.any(|line| line == "[lints]" || line.starts_with("[lints."))
}

#[cfg(test)]
mod tests {
    use super::super::tree_of;
    use super::*;

    fn package(name: &str, dependencies: &[(&str, bool)]) -> Package {
        Package {
            name: name.to_owned(),
            ours: true,
            manifest: format!("crates/{name}/Cargo.toml"),
            dependencies: dependencies
                .iter()
                .map(|(name, dev)| Dependency {
                    name: (*name).to_owned(),
                    dev: *dev,
                })
                .collect(),
            ..Package::default()
        }
    }

    fn findings(packages: Vec<Package>, manifests: &[(&str, &str)]) -> Vec<String> {
        let mut tree = tree_of(manifests);
        tree.metadata.packages = packages;
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn forbidden_dependency_is_found_in_its_line() {
        let packages = vec![
            package("base", &[]),
            package(
                "packet",
                &[("base", false), ("lab", false), ("serde", false)],
            ),
            package("lab", &[("packet", false), ("testkit", false)]),
            package("testkit", &[("packet", false)]),
            package("flow", &[("testkit", true)]),
        ];
        let lints = "[lints]\nworkspace = true\n";
        let found = findings(
            packages,
            &[
                ("crates/base/Cargo.toml", lints),
                (
                    "crates/packet/Cargo.toml",
                    &format!("{lints}[dependencies]\nbase = 1\nlab = 1\n"),
                ),
                ("crates/lab/Cargo.toml", lints),
                ("crates/testkit/Cargo.toml", lints),
                (
                    "crates/flow/Cargo.toml",
                    "[lints.rust]\nunsafe_code = \"deny\"\n",
                ),
            ],
        );
        assert_eq!(
            found,
            [
                "crates/packet/Cargo.toml:5: `packet` may not use `lab`: move the shared code to a crate below both",
                "crates/lab/Cargo.toml:1: `lab` ships `testkit`: make it a dev-dependency",
            ]
        );
    }

    #[test]
    fn crate_needs_a_row_and_lints() {
        let found = findings(
            vec![package("drawer", &[])],
            &[("crates/drawer/Cargo.toml", "")],
        );
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("no row") && found[1].contains("no lints"));
    }

    #[test]
    fn table_of_crates_is_acyclic() {
        for (index, row) in ARROWS.iter().enumerate() {
            for name in row.may_use {
                let below = ARROWS[..index].iter().any(|other| other.name == *name);
                assert!(below, "{} uses {name}, which is listed below it", row.name);
            }
        }
    }
}
