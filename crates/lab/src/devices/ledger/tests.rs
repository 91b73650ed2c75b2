//! Ledgers of runs that ended, that crashed, and that are active.

use std::os::unix::net::UnixListener;

use super::*;

/// Returns a directory for this test.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ledger-{}-{name}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

/// Writes the ledger of an ended process: it has this process's identifier and another start time.
fn abandoned(state: &Path, directory: &Path) -> PathBuf {
    let file = state.join("7-ovs.json");
    let entry = LedgerEntry {
        pid: std::process::id(),
        started: process_start(std::process::id()).unwrap() + 1,
        directory: directory.to_owned(),
        nics: Vec::new(),
    };
    write_atomically(&file, &entry).unwrap();
    file
}

#[test]
fn ledger_of_an_active_run_remains_until_its_end() {
    let state = folder("under-way");
    let ledger = Ledger::write(&state, "ovs", &state, &[]).unwrap();
    let left = clean(&state).unwrap();
    assert_eq!(left.len(), 1);
    assert!(left[0].outcome.starts_with("is in use by process") && !left[0].failed);
    assert!(ledger.file.exists());
    drop(ledger);
    assert_eq!(clean(&state).unwrap(), []);
    fs::remove_dir_all(&state).unwrap();
    assert_eq!(clean(&state).unwrap(), [], "there was never a run");
}

#[test]
fn cleanup_removes_sockets_of_ended_runs_only() {
    let state = folder("ended");
    let directory = folder("devices");
    let socket = directory.join("br0.controller");
    drop(UnixListener::bind(&socket).unwrap());
    fs::write(directory.join("ovs.log"), "said").unwrap();
    let file = abandoned(&state, &directory);
    let left = clean(&state).unwrap();
    assert_eq!(
        left,
        [CleanupResult::new(socket.display().to_string(), "removed")]
    );
    assert!(!file.exists() && !socket.exists());
    assert!(directory.join("ovs.log").exists());
    fs::remove_dir_all(&directory).unwrap();
    abandoned(&state, &directory);
    assert_eq!(clean(&state).unwrap(), [], "its user has taken it away");
    fs::remove_dir_all(&state).unwrap();
}

#[test]
fn unreadable_ledger_is_reported_and_kept() {
    let state = folder("strange");
    for (name, text) in [
        ("1-a.json", "{"),
        ("2-b.json", "{\"pid\":1}"),
        ("c.txt", ""),
    ] {
        fs::write(state.join(name), text).unwrap();
    }
    let left = clean(&state).unwrap();
    assert_eq!(left.len(), 3);
    assert!(left.iter().all(|one| one.failed), "{left:?}");
    assert_eq!(fs::read_dir(&state).unwrap().count(), 3);
    // No process has this identifier, which exceeds the kernel's maximum.
    let draft = state.join("4194305-ovs.draft");
    fs::write(&draft, "").unwrap();
    assert_eq!(
        clean(&state)
            .unwrap()
            .iter()
            .filter(|one| !one.failed)
            .count(),
        1
    );
    assert!(!draft.exists());
    fs::remove_dir_all(&state).unwrap();
}

#[test]
fn cleanup_reports_a_vanished_network_card() {
    let state = folder("gone");
    let directory = folder("gone-devices");
    let file = abandoned(&state, &directory);
    let mut entry = read(&file).unwrap();
    entry.nics.push(NicRow {
        namespace: Some("/run/netns/nonesuch".into()),
        interface: "nic0".to_owned(),
        mac: [2, 0xfe, 0xed, 0, 0, 1],
        mtu: 1_500,
        up: true,
        sums: true,
    });
    write_atomically(&file, &entry).unwrap();
    let left = clean(&state).unwrap();
    assert_eq!(left[0].what, "the network card nonesuch:nic0");
    assert!(left[0].outcome.starts_with("no longer exists") && !left[0].failed);
    assert!(!file.exists());
    fs::remove_dir_all(&state).unwrap();
    fs::remove_dir_all(&directory).unwrap();
}
