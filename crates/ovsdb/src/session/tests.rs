//! A session with a scripted server.

use super::*;
use crate::{Datum, Uuid};

const TABLES: &[(&str, &[&str])] = &[("Bridge", &["name", "ports"]), ("Newer", &["name"])];

fn options() -> SessionOptions {
    SessionOptions {
        database: "Open_vSwitch".to_owned(),
        lock: "ovs_vswitchd".to_owned(),
        tables: TABLES,
    }
}

fn schema() -> Value {
    json!({"name": "Open_vSwitch", "version": "8.3.1", "tables": {"Bridge": {"columns": {
        "name": {"type": "string", "mutable": false},
        "ports": {"type": {"key": {"type": "uuid", "refTable": "Port"}, "min": 0, "max": "unlimited"}},
    }}}})
}

const BRIDGE: Uuid = Uuid(0xb);

/// The scripted server of a session.
struct Server {
    session: Session,
    now: Instant,
}

impl Server {
    fn new() -> Self {
        let now = Instant::START;
        let session = Session::new(options(), now);
        Self { session, now }
    }

    /// Returns the messages that the client sent since the last call.
    fn received(&mut self) -> Vec<Value> {
        let bytes = self.session.pending().to_vec();
        self.session.transmitted(bytes.len());
        let values = serde_json::Deserializer::from_slice(&bytes).into_iter();
        values
            .collect::<Result<_, _>>()
            .expect("the client sends JSON")
    }

    fn send(&mut self, message: &Value) -> Vec<SessionEvent> {
        let bytes = message.to_string();
        self.session.handle_input(bytes.as_bytes(), self.now);
        std::iter::from_fn(|| self.session.poll_event()).collect()
    }

    fn answer(&mut self, request: &Value, result: Value) -> Vec<SessionEvent> {
        self.send(&json!({"id": request["id"], "result": result, "error": null}))
    }

    fn refuse(&mut self, request: &Value, error: Value) -> Vec<SessionEvent> {
        self.send(&json!({"id": request["id"], "result": null, "error": error}))
    }

    /// Returns a server whose session has the initial rows: one bridge.
    fn up() -> Self {
        let mut server = Self::new();
        let requests = server.received();
        assert_eq!(requests[0]["method"], "get_schema");
        assert_eq!(server.answer(&requests[0], schema()), []);
        let requests = server.received();
        assert_eq!(requests[0]["method"], "lock");
        let events = server.answer(&requests[0], json!({"locked": true}));
        assert_eq!(events, [SessionEvent::Locked]);
        assert_eq!(requests[1]["method"], "monitor_cond_since");
        assert_eq!(
            requests[1]["params"][2],
            json!({"Bridge": [{"columns": ["name", "ports"]}]})
        );
        let rows = json!({"Bridge": {BRIDGE.to_string(): {"initial": {"name": "br0"}}}});
        let received = server.answer(&requests[1], json!([false, Uuid(7).to_string(), rows]));
        assert_eq!(received, [SessionEvent::Ready]);
        server
    }

    fn name(&self) -> Datum {
        let row = self.session.database().row("Bridge", BRIDGE);
        row.expect("the bridge")["name"].clone()
    }
}

#[test]
fn session_requests_schema_lock_and_rows_and_applies_updates() {
    let mut server = Server::up();
    assert_eq!(server.name(), Datum::one("br0"));
    let rows = json!({"Bridge": {BRIDGE.to_string(): {"modify": {"name": "br1"}}}});
    let update =
        json!({"id": null, "method": "update3", "params": ["rows", Uuid(8).to_string(), rows]});
    assert_eq!(server.send(&update), [SessionEvent::Changed]);
    assert_eq!(server.name(), Datum::one("br1"));
}

#[test]
fn session_falls_back_to_older_monitor_methods() {
    let mut server = Server::new();
    let requests = server.received();
    server.answer(&requests[0], schema());
    let mut request = server.received().remove(1);
    for older in ["monitor_cond", "monitor"] {
        // As ovsdb-server answers: without a result.
        let refusal = json!({"id": request["id"], "error": "unknown method"});
        assert_eq!(server.send(&refusal), []);
        request = server.received().remove(0);
        assert_eq!(request["method"], older);
    }
    let rows =
        json!({"Bridge": {BRIDGE.to_string(): {"new": {"name": "br0", "ports": ["set", []]}}}});
    assert_eq!(server.answer(&request, rows), [SessionEvent::Ready]);
    let rows =
        json!({"Bridge": {BRIDGE.to_string(): {"old": {"name": "br0"}, "new": {"name": "br1"}}}});
    let update = json!({"id": null, "method": "update", "params": ["rows", rows]});
    assert_eq!(server.send(&update), [SessionEvent::Changed]);
    assert_eq!(server.name(), Datum::one("br1"));
}

#[test]
fn contended_lock_is_awaited_and_may_be_stolen() {
    let mut server = Server::new();
    let requests = server.received();
    server.answer(&requests[0], schema());
    let lock = server.received().remove(0);
    assert_eq!(
        server.answer(&lock, json!({"locked": false})),
        [SessionEvent::Contended]
    );
    let notification =
        |method: &str, lock: &str| json!({"id": null, "method": method, "params": [lock]});
    assert_eq!(server.send(&notification("locked", "another")), []);
    assert_eq!(
        server.send(&notification("locked", "ovs_vswitchd")),
        [SessionEvent::Locked]
    );
    assert_eq!(
        server.send(&notification("stolen", "ovs_vswitchd")),
        [SessionEvent::Contended]
    );
}

#[test]
fn transaction_reports_success_or_error_text() {
    let mut server = Server::up();
    let lock = "ovs_vswitchd".to_owned();
    let update = Operation::Update {
        table: "Bridge".to_owned(),
        row: BRIDGE,
        columns: vec![("ports".to_owned(), Datum::set([Uuid(1), Uuid(2)]))],
    };
    let operations = [
        Operation::Assert { lock },
        update,
        Operation::Comment("why".to_owned()),
    ];
    let id = server.session.transact(&operations).expect("room");
    let request = server.received().remove(0);
    let row =
        json!({"ports": ["set", [["uuid", Uuid(1).to_string()], ["uuid", Uuid(2).to_string()]]]});
    let update = json!({
        "op": "update", "table": "Bridge", "row": row,
        "where": [["_uuid", "==", ["uuid", BRIDGE.to_string()]]],
    });
    let monitored = json!([
        "Open_vSwitch", {"op": "assert", "lock": "ovs_vswitchd"}, update,
        {"op": "comment", "comment": "why"},
    ]);
    assert_eq!(request["params"], monitored);
    let done = server.answer(&request, json!([{}, {"count": 1}, {}]));
    assert_eq!(done, [SessionEvent::Done(id, Ok(()))]);
    let id = server.session.transact(&operations).expect("room");
    let request = server.received().remove(0);
    let error = json!({"error": "not owner", "details": "gone"});
    let done = server.answer(&request, json!([error, null, null]));
    assert_eq!(
        done,
        [SessionEvent::Done(id, Err("not owner: gone".to_owned()))]
    );
}

#[test]
fn silent_server_is_probed_then_session_closes() {
    let mut server = Server::up();
    let due = server.session.next_timeout().expect("due");
    server.session.handle_timeout(due);
    let request = server.received().remove(0);
    assert_eq!(request["method"], "echo");
    server.now = due;
    assert_eq!(server.answer(&request, json!([])), []);
    let again = server.session.next_timeout().expect("due");
    assert!(again > due);
    server.session.handle_timeout(again);
    let last = server.session.next_timeout().expect("due");
    server.session.handle_timeout(last);
    assert!(matches!(
        server.session.poll_event(),
        Some(SessionEvent::Closed(_))
    ));
    assert_eq!(server.session.next_timeout(), None);
}

#[test]
fn session_without_probes_has_no_timer() {
    let mut session = Session::new(options(), Instant::START).without_probes();
    assert_eq!(session.next_timeout(), None);
    session.handle_timeout(Instant::from_secs(3600));
    assert_eq!(session.poll_event(), None);
}

#[test]
fn late_probe_still_waits_full_interval() {
    let mut server = Server::up();
    let due = server.session.next_timeout().expect("due");
    let late = due + PROBE_INTERVAL * 6;
    server.session.handle_timeout(late);
    server.session.handle_timeout(late);
    assert_eq!(server.session.poll_event(), None);
    assert_eq!(server.session.next_timeout(), Some(late + PROBE_INTERVAL));
}

#[test]
fn server_requests_are_answered() {
    let mut server = Server::up();
    server.send(&json!({"id": "echo", "method": "echo", "params": [1]}));
    assert_eq!(
        server.received(),
        [json!({"id": "echo", "result": [1], "error": null})]
    );
    server.send(&json!({"id": 7, "method": "dance", "params": []}));
    assert_eq!(server.received()[0]["error"], "unknown method");
}

#[test]
fn protocol_violation_closes_session_with_reason() {
    let violations = [
        (json!([]), "not an object"),
        (
            json!({"id": 99, "result": [], "error": null}),
            "without a request",
        ),
        (
            json!({"id": null, "method": "update3", "params": ["rows"]}),
            "without rows",
        ),
        (
            json!({"id": null, "method": "update", "params": ["rows", {}]}),
            "unknown monitor",
        ),
        (
            json!({"id": null, "method": "update3", "params": ["rows", "", {"Port": {}}]}),
            "unmonitored table",
        ),
        (json!({"id": null, "method": 7}), "JSON-RPC"),
    ];
    for (violation, reason) in violations {
        let mut server = Server::up();
        let received = server.send(&violation);
        let [SessionEvent::Closed(why)] = &received[..] else {
            panic!("{violation}: {received:?}");
        };
        assert!(why.contains(reason), "{violation}: {why}");
        assert_eq!(server.session.transact(&[]), None);
    }
}

#[test]
fn missing_database_is_named_in_close_reason() {
    let mut server = Server::new();
    let requests = server.received();
    let error = json!({"error": "unknown database", "details": "get_schema request specifies unknown database"});
    let received = server.refuse(&requests[0], error);
    assert!(
        matches!(&received[..], [SessionEvent::Closed(why)] if why.contains("unknown database"))
    );
}
