//! Every file of the fuzz corpora, run through its target as a plain test, so that fixed crashes
//! stay fixed.

use std::fs;
use std::path::Path;

/// Runs all files of one corpus and names those that fail.
fn run(name: &str, target: fn(&[u8])) {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let directory = corpora.join(name);
    let mut files: Vec<_> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", directory.display());
    files.retain(|file| {
        let data = fs::read(file).expect("it can be read");
        std::panic::catch_unwind(|| target(&data)).is_err()
    });
    assert!(files.is_empty(), "these fail: {files:#?}");
}

#[test]
fn openflow_v10() {
    run("openflow_v10", testkit::fuzz::openflow::openflow_v10);
}

#[test]
fn openflow_v11() {
    run("openflow_v11", testkit::fuzz::openflow::openflow_v11);
}

#[test]
fn openflow_v12() {
    run("openflow_v12", testkit::fuzz::openflow::openflow_v12);
}

#[test]
fn openflow_v13() {
    run("openflow_v13", testkit::fuzz::openflow::openflow_v13);
}

#[test]
fn openflow_v14() {
    run("openflow_v14", testkit::fuzz::openflow::openflow_v14);
}

#[test]
fn openflow_v15() {
    run("openflow_v15", testkit::fuzz::openflow::openflow_v15);
}

#[test]
fn print() {
    run("print", testkit::fuzz::openflow::print);
    for version in ["v10", "v11", "v12", "v13", "v14", "v15"] {
        run(&format!("openflow_{version}"), |data| {
            let detailed = [&[5], data].concat();
            testkit::fuzz::openflow::print(&detailed);
        });
    }
}

#[test]
fn commands() {
    run("commands", testkit::fuzz::commands);
}

#[test]
fn channel() {
    run("channel", testkit::fuzz::openflow::channel);
}

#[test]
fn frame() {
    run("frame", testkit::fuzz::frame);
}

#[test]
fn flow_text() {
    run("flow_text", testkit::fuzz::flow_text);
}

#[test]
fn ovsdb() {
    run("ovsdb", testkit::fuzz::ovsdb);
}

#[test]
fn dummy_stream() {
    run("dummy_stream", testkit::fuzz::dummy_stream);
}

#[test]
fn lacp() {
    run("lacp", testkit::fuzz::lacp);
}

#[test]
fn conntrack() {
    run("conntrack", testkit::fuzz::conntrack);
}

#[test]
fn flush_request() {
    run("flush_request", testkit::fuzz::flush_request);
}

#[test]
fn tunnel() {
    run("tunnel", testkit::fuzz::tunnel);
}

#[test]
fn odp() {
    run("odp", testkit::fuzz::odp);
}

#[test]
fn bfd() {
    run("bfd", testkit::fuzz::bfd);
}

#[test]
fn cfm() {
    run("cfm", testkit::fuzz::cfm);
}

#[test]
fn lldp() {
    run("lldp", testkit::fuzz::lldp);
}

#[test]
fn checkpoint() {
    run("checkpoint", testkit::fuzz::checkpoint);
}

#[test]
fn bpdu() {
    run("bpdu", testkit::fuzz::bpdu);
}

#[test]
fn capture_file() {
    run("capture_file", testkit::fuzz::capture_file);
}

#[test]
fn configuration() {
    run("configuration", testkit::fuzz::configuration);
}

#[test]
fn continuation() {
    run("continuation", testkit::fuzz::continuation);
}

#[test]
fn fastpath() {
    run("fastpath", testkit::fuzz::fastpath);
}

#[test]
fn control_in_band() {
    run("in_band", testkit::fuzz::in_band);
}

#[test]
fn multicast() {
    run("multicast", testkit::fuzz::multicast);
}

#[test]
fn records() {
    run("records", testkit::fuzz::records);
}
