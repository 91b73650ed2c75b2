//! Parsers of foreign bytes and their fuzz targets: each module that parses bytes has a target, and
//! each target has such a module.

use super::{SourceFile, TidyFinding, Tree};

/// The folder of the targets.
const TARGETS: &str = "fuzz/fuzz_targets/";

/// This file, for findings about the list.
const LIST: &str = "xtask/src/tidy/parsers.rs";

/// Modules by the beginning of their path, and the targets that reach their parsers. The first row
/// that fits counts.
#[rustfmt::skip]
const PARSERS: [(&str, &[&str]); 39] = [
    ("crates/capture-file/src/",                 &["capture_file"]),
    ("crates/config/src/lib.rs",                 &["configuration"]),
    ("crates/conntrack/src/",                    &["conntrack"]),
    ("crates/dataplane/src/in_band.rs",          &["in_band"]),
    ("crates/fastpath/src/packed_key/parse.rs",  &["fastpath"]),
    ("crates/flow/src/text.rs",                  &["flow_text"]),
    ("crates/flow/src/wide.rs",                  &["continuation"]),
    ("crates/l2/src/spanning_tree/bpdu.rs",      &["bpdu"]),
    // Frames of the lab's own sender, in a namespace of the lab.
    ("crates/lab/src/catalogue/stateful/",       &["frame"]),
    ("crates/openflow/src/channel.rs",           &["channel"]),
    ("crates/openflow/src/checkpoint.rs",        &["checkpoint"]),
    ("crates/openflow/src/continuation.rs",      &["continuation"]),
    ("crates/openflow/src/message.rs",           &["openflow_v10", "openflow_v11", "openflow_v12", "openflow_v13", "openflow_v14", "openflow_v15"]),
    ("crates/openflow/src/print.rs",             &["print"]),
    ("crates/ovsdb/src/",                        &["ovsdb"]),
    ("crates/packet/src/headers.rs",             &["frame"]),
    ("crates/packet/src/ip_layout.rs",           &["frame"]),
    ("crates/packet/src/link.rs",                &["frame"]),
    ("crates/packet/src/multicast.rs",           &["multicast"]),
    ("crates/packet/src/neighbour.rs",           &["multicast"]),
    ("crates/packet/src/tunnel/",                &["tunnel"]),
    ("crates/packet/src/wire/bfd.rs",            &["bfd"]),
    ("crates/packet/src/wire/cfm.rs",            &["cfm"]),
    ("crates/packet/src/wire/lldp.rs",           &["lldp"]),
    ("crates/packet/src/wire/slow.rs",           &["lacp"]),
    ("crates/packet/src/wire/",                  &["frame"]),
    ("crates/pipeline/src/pipeline.rs",          &["commands"]),
    ("crates/ports/src/dummy",                   &["dummy_stream"]),
    ("crates/record/src/journal.rs",             &["records"]),
    ("crates/runtime/src/stream_decoder.rs",     &["channel"]),
    ("crates/runtime/src/tls.rs",                &["pem"]),
    ("crates/runtime/src/unixctl.rs",            &["unixctl"]),
    ("crates/switch/src/connection_filter",      &["flush_request"]),
    ("crates/switch/src/odp",                    &["odp"]),
    ("crates/sys/src/netlink.rs",                &["netlink"]),
    ("crates/sys/src/traffic_control.rs",        &["netlink"]),
    ("crates/trafficgen/src/recording.rs",       &["capture_file"]),
    ("crates/vswitchd/src/desired.rs",           &["database_rows"]),
    // Cuts TCP segments out of frames whose headers `packet` has parsed.
    ("crates/tools/src/capture.rs",              &["frame", "print"]),
];

/// Beginnings of the names of functions that parse.
const VERBS: [&str; 5] = ["parse", "decode", "read", "classify", "find"];

/// Parameters of bytes.
const BYTES: [&str; 2] = [": &[u8]", ": &'a [u8]"];

pub(super) fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let fits = |row: &str, file: &SourceFile| file.path.starts_with(row);
    for file in tree.rust().filter(|file| is_product(file)) {
        let is_listed = PARSERS.iter().any(|(row, _)| fits(row, file));
        if let (Some(line), false) = (parser_line(file), is_listed) {
            let what = format!("parses bytes: add a fuzz target, and a row to {LIST}");
            findings.push(TidyFinding::new(&file.path, line, what));
        }
    }
    let targets = tree.files.iter().filter_map(|file| {
        let name = file.path.strip_prefix(TARGETS)?;
        name.strip_suffix(".rs")
    });
    let targets: Vec<_> = targets.collect();
    if targets.is_empty() {
        return findings;
    }
    for (row, of) in PARSERS {
        if !tree.files.iter().any(|file| fits(row, file)) {
            let what = format!("no module `{row}`: remove the row");
            findings.push(TidyFinding::new(LIST, 1, what));
        }
        for target in of.iter().filter(|target| !targets.contains(target)) {
            let what = format!("no fuzz target `{target}`");
            findings.push(TidyFinding::new(LIST, 1, what));
        }
    }
    for target in targets {
        if !PARSERS.iter().any(|(_, of)| of.contains(&target)) {
            let what = format!("no row in {LIST} has this target");
            findings.push(TidyFinding::new(&format!("{TARGETS}{target}.rs"), 1, what));
        }
    }
    findings
}

/// True for a file of a crate that is not for tests only.
fn is_product(file: &SourceFile) -> bool {
    let of_tests = [
        "/tests/",
        "/tests.rs",
        "/benches/",
        "testkit",
        "/testing.rs",
        "/fuzzing.rs",
    ];
    file.path.starts_with("crates/") && !of_tests.iter().any(|part| file.path.contains(part))
}

/// Returns the line of the first function that parses bytes, before the file's tests.
fn parser_line(file: &SourceFile) -> Option<usize> {
    let lines = file.lines();
    let mut product = lines.take_while(|(_, line)| *line != "mod tests {");
    product.find_map(|(number, line)| is_parser(line).then_some(number))
}

/// True for the beginning of a function that parses bytes.
fn is_parser(line: &str) -> bool {
    let Some((before, rest)) = line.split_once("fn ") else {
        return false;
    };
    let is_definition = before.trim_start().is_empty() || before.trim_start().starts_with("pub");
    let parses = VERBS.iter().any(|verb| rest.starts_with(verb));
    is_definition && parses && BYTES.iter().any(|bytes| rest.contains(bytes))
}

#[cfg(test)]
mod tests {
    use super::super::tree_of;
    use super::*;

    #[test]
    fn parser_without_a_row_is_found() {
        let text = "//! One.\npub fn parse(bytes: &[u8]) -> Option<Self> {\n";
        let tree = tree_of(&[("crates/new/src/wire.rs", text)]);
        let findings = check(&tree);
        assert_eq!((findings.len(), findings[0].line), (1, 2));
        let tree = tree_of(&[("crates/packet/src/wire/new.rs", text)]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn tests_writers_and_texts_are_no_parsers() {
        for line in [
            "fn emit(bytes: &[u8]) {",
            "// A fn parse(bytes: &[u8]) is no definition.",
            "fn parse(text: &str) {",
        ] {
            assert!(!is_parser(line), "{line}");
        }
        let text = "mod tests {\n    fn read(bytes: &[u8]) {\n";
        assert_eq!(check(&tree_of(&[("crates/new/src/wire.rs", text)])), []);
    }

    #[test]
    fn targets_and_rows_name_each_other() {
        let findings = check(&tree_of(&[("fuzz/fuzz_targets/other.rs", "")]));
        let has = |what: &str| findings.iter().any(|finding| finding.what.contains(what));
        assert!(has("no row in"));
        assert!(has("no fuzz target `frame`"));
        assert!(has("no module `crates/packet/src/wire/`"));
    }
}
