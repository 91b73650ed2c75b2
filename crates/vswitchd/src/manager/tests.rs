//! The manager, with synthetic events of a database.

use flow::Role;
use ovsdb::Datum;
use packet::MacAddr;
use ports::Status;
use serde_json::json;

use base::{DatapathId, PortNo};

use super::*;
use crate::testing::{apply_operations, empty, names, put, put_bridge, put_root, uuid};
use runtime::{BridgeFacts, ControllerFacts, PortFacts};

fn database(next_cfg: i64) -> Database {
    let mut database = empty();
    let ports = [
        ("p1", json!({})),
        ("p9", json!({})),
        ("v1", json!({"type": "stt"})),
    ];
    put_bridge(&mut database, "br0", json!({}), &ports, &["tcp:127.0.0.1"]);
    put_root(&mut database, &["br0"], next_cfg);
    database
}

fn status(name: &str) -> Status {
    Status {
        name: name.to_owned(),
        address: MacAddr([2, 0, 0, 0, 0, 1]),
        mtu: 1500,
        up: true,
        ..Status::default()
    }
}

/// Returns facts without failures, except that the interface p9 is missing.
fn facts() -> Facts {
    let port = |device| PortFacts {
        device,
        complaint: None,
        link_resets: 0,
        statistics: None,
        custom: None,
        lacp_current: None,
        bfd: None,
        cfm: None,
    };
    let missing = Err("there is no interface p9 here".to_owned());
    let ports = [
        (PortNo::LOCAL, port(Ok(status("br0")))),
        (PortNo(1), port(Ok(status("p1")))),
        (PortNo(2), port(missing)),
    ];
    let controller = ControllerFacts {
        role: Some(Role::Master),
        since_connect: Some(7),
        since_disconnect: None,
        last_error: None,
    };
    let bridge = BridgeFacts {
        datapath_id: DatapathId(0xab),
        ports: ports.into(),
        mirrors: [].into(),
        controllers: [("tcp:127.0.0.1:6653".to_owned(), controller)].into(),
        tree: None,
        not_listening: [].into(),
        active_members: [].into(),
    };
    Facts {
        bridges: [("br0".to_owned(), bridge)].into(),
        failed: [].into(),
        capabilities: [("ct_zone".to_owned(), "true".to_owned())].into(),
    }
}

/// Returns a manager that has the lock and has read the rows.
fn owner(database: &Database) -> (Manager, Config) {
    let mut manager = Manager::default();
    manager.handle_event(&SessionEvent::Locked);
    assert_eq!(
        manager.next_config(database),
        None,
        "the rows are still to come"
    );
    manager.handle_event(&SessionEvent::Ready);
    let config = manager.next_config(database).expect("a bridge");
    (manager, config)
}

fn column(database: &Database, table: &str, name: &str, column: &str) -> Datum {
    database.row(table, uuid(table, name)).expect("the row")[column].clone()
}

#[test]
fn state_is_written_once_then_only_changes() {
    let mut database = database(5);
    let (mut manager, config) = owner(&database);
    assert_eq!(config.bridges.len(), 1);
    assert!(manager.is_report_due());
    let written = manager.report(&database, &facts(), &HostFacts::default());
    assert_eq!(
        written[0],
        Operation::Assert {
            lock: LOCK.to_owned()
        }
    );
    apply_operations(&mut database, &written);
    let of = |table, name, wanted| column(&database, table, name, wanted);
    assert_eq!(of("Open_vSwitch", ".", "cur_cfg"), Datum::one(5));
    assert_eq!(
        of("Bridge", "br0", "datapath_id"),
        Datum::one("00000000000000ab")
    );
    assert_eq!(of("Interface", "p1", "ofport"), Datum::one(1));
    assert_eq!(of("Interface", "p1", "error"), Datum::none());
    assert_eq!(
        of("Interface", "p1", "mac_in_use"),
        Datum::one("02:00:00:00:00:01")
    );
    assert_eq!(of("Interface", "p1", "admin_state"), Datum::one("up"));
    assert_eq!(of("Interface", "p1", "link_state"), Datum::one("down"));
    assert_eq!(of("Interface", "br0", "ofport"), Datum::one(65534));
    assert_eq!(of("Interface", "p9", "ofport"), Datum::one(-1));
    assert_eq!(
        of("Interface", "p9", "error"),
        Datum::one("there is no interface p9 here")
    );
    let why = of("Interface", "v1", "error");
    assert!(
        why.strings().any(|why| why.starts_with("type stt")),
        "{why:?}"
    );
    assert_eq!(
        of("Controller", "tcp:127.0.0.1", "role"),
        Datum::one("master")
    );
    assert_eq!(
        of("Controller", "tcp:127.0.0.1", "is_connected"),
        Datum::one(true)
    );
    let status = Datum::map([("sec_since_connect", "7"), ("state", "ACTIVE")]);
    assert_eq!(of("Controller", "tcp:127.0.0.1", "status"), status);
    // The updates that it wrote itself return, and change nothing.
    manager.handle_event(&SessionEvent::Changed);
    assert_eq!(manager.next_config(&database), None);
    assert!(!manager.is_report_due());
    manager.handle_tick();
    assert!(manager.is_report_due());
    assert_eq!(
        manager.report(&database, &facts(), &HostFacts::default()),
        []
    );
}

#[test]
fn capabilities_of_datapaths_are_written() {
    let mut database = database(5);
    put(&mut database, "Datapath", "d", &json!({}));
    let datapath = json!(["uuid", uuid("Datapath", "d").to_string()]);
    let root = json!({
        "bridges": names("Bridge", &["br0"]), "next_cfg": 5,
        "datapaths": ["map", [["netdev", datapath]]],
    });
    put(&mut database, "Open_vSwitch", ".", &root);
    let (mut manager, _) = owner(&database);
    let written = manager.report(&database, &facts(), &HostFacts::default());
    apply_operations(&mut database, &written);
    let capabilities = column(&database, "Datapath", "d", "capabilities");
    assert_eq!(capabilities, Datum::map([("ct_zone", "true")]));
}

#[test]
fn database_without_root_row_changes_nothing() {
    let database = database(1);
    let (mut manager, _) = owner(&database);
    manager.handle_event(&SessionEvent::Changed);
    assert_eq!(manager.next_config(&empty()), None);
    assert!(manager.is_applied());
    manager.handle_event(&SessionEvent::Changed);
    assert_eq!(manager.next_config(&database), None, "it is what it was");
}

#[test]
fn transactions_do_not_overlap() {
    let database = database(1);
    let (mut manager, _) = owner(&database);
    assert!(
        !manager
            .report(&database, &facts(), &HostFacts::default())
            .is_empty()
    );
    let mut session = ovsdb::Session::new(
        ovsdb::SessionOptions {
            database: String::new(),
            lock: String::new(),
            tables: &[],
        },
        base::Instant::START,
    );
    let id = session.transact(&[]);
    manager.handle_sent(id);
    manager.handle_change();
    assert!(!manager.is_report_due());
    manager.handle_event(&SessionEvent::Done(id.expect("room"), Err("no".to_owned())));
    assert!(manager.is_report_due());
}

#[test]
fn next_cfg_is_confirmed_without_other_changes() {
    let mut database = database(1);
    let (mut manager, _) = owner(&database);
    let written = manager.report(&database, &facts(), &HostFacts::default());
    apply_operations(&mut database, &written);
    put_root(&mut database, &["br0"], 2);
    manager.handle_event(&SessionEvent::Changed);
    assert_eq!(manager.next_config(&database), None);
    assert!(manager.is_report_due());
    let written = manager.report(&database, &facts(), &HostFacts::default());
    apply_operations(&mut database, &written);
    assert_eq!(
        column(&database, "Open_vSwitch", ".", "cur_cfg"),
        Datum::one(2)
    );
}

#[test]
fn lost_session_keeps_and_lost_lock_clears_configuration() {
    let database = database(1);
    let (mut manager, config) = owner(&database);
    manager.handle_event(&SessionEvent::Closed("gone".to_owned()));
    manager.handle_session();
    assert_eq!(manager.next_config(&database), None);
    assert!(!manager.is_report_due());
    manager.handle_event(&SessionEvent::Ready);
    manager.handle_event(&SessionEvent::Locked);
    assert_eq!(manager.next_config(&database), None, "it is what it was");
    assert!(manager.is_report_due());
    manager.handle_event(&SessionEvent::Contended);
    assert_eq!(manager.next_config(&database), Some(Config::default()));
    assert!(!manager.is_report_due() && !manager.is_applied());
    manager.handle_event(&SessionEvent::Locked);
    assert_eq!(manager.next_config(&database), Some(config));
}
