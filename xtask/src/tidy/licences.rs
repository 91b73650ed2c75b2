//! Licences of all linked packages, compared with the list in `deny.toml`.

use super::spdx::{self, LicenceVerdict};
use super::{TidyFinding, Tree};

const POLICY: &str = "deny.toml";

pub(super) fn check(tree: &Tree) -> Vec<TidyFinding> {
    let allowed = tree
        .file(POLICY)
        .map(|file| allow_list(&file.text))
        .unwrap_or_default();
    let theirs = tree
        .metadata
        .packages
        .iter()
        .filter(|package| !package.ours);
    let complaints = theirs.filter_map(|package| {
        let (name, version) = (&package.name, &package.version);
        let what = match package.license.as_deref() {
            None => format!("{name} {version} names no licence: use another crate"),
            Some(license) => match spdx::judge(license, &allowed) {
                LicenceVerdict::Allowed => return None,
                LicenceVerdict::Refused => format!(
                    "{name} {version} is under `{license}`, which {POLICY} does not allow: use another crate"
                ),
                LicenceVerdict::Unreadable => {
                    format!("{name} {version} is under `{license}`, which is no SPDX expression: look at it")
                }
            },
        };
        let line = tree.file("Cargo.lock").map_or(1, |lock| lock.line_of(&format!("name = \"{name}\"")));
        Some(TidyFinding::new("Cargo.lock", line, what))
    });
    complaints.collect()
}

/// Returns the strings of the list `allow` in the table `[licenses]`.
fn allow_list(policy: &str) -> Vec<&str> {
    policy
        .lines()
        .skip_while(|line| line.trim() != "[licenses]")
        .skip_while(|line| !line.starts_with("allow"))
        .take_while(|line| line.trim() != "]")
        .flat_map(|line| line.split('"').skip(1).step_by(2))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree_of;
    use super::*;
    use crate::metadata::Package;

    #[test]
    fn allow_list_is_parsed_from_the_policy() {
        let policy = "[graph]\nallow = [\"x\"]\n[licenses]\nallow = [\n  \"MIT\",\n  \"Apache-2.0 WITH LLVM-exception\",\n]\nother = \"y\"\n";
        assert_eq!(
            allow_list(policy),
            ["MIT", "Apache-2.0 WITH LLVM-exception"]
        );
    }

    #[test]
    fn crate_with_another_licence_is_found_in_the_lock_file() {
        let mut tree = tree_of(&[
            ("deny.toml", "[licenses]\nallow = [\n\"MIT\",\n]\n"),
            (
                "Cargo.lock",
                "[[package]]\nname = \"good\"\n[[package]]\nname = \"bad\"\n",
            ),
        ]);
        let package = |name: &str, license: Option<&str>, ours| Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            ours,
            ..Package::default()
        };
        tree.metadata.packages = vec![
            package("good", Some("MIT OR GPL-3.0"), false),
            package("bad", Some("GPL-3.0"), false),
            package("silent", None, false),
            package("ours", None, true),
        ];
        let found: Vec<_> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "Cargo.lock:4: bad 1.0.0 is under `GPL-3.0`, which deny.toml does not allow: use another crate",
                "Cargo.lock:1: silent 1.0.0 names no licence: use another crate",
            ]
        );
    }
}
