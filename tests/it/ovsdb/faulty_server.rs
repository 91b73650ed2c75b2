//! A faulty database server: garbage, wrong types, unknown rows, endless messages and truncated
//! messages. The switch closes the connection, reconnects with a growing backoff, and forwards.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use serde_json::{Value, json};
use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::{Deployment, SCHEMA, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![forwarding_continues_with_a_faulty_database_server,];

/// Longer than the longest message that the switch accepts, in bytes.
const ENDLESS_LEN: usize = 65 << 20;

/// Fault of the server.
enum ServerFault {
    /// Sends these bytes before any reply.
    Bytes(&'static str),
    /// Sends this as the schema.
    Schema(Value),
    /// Sends these initial rows.
    Rows(Value),
    /// Sends these changes after an empty set of rows.
    Change(Value),
    /// Sends a message without an end.
    Endless,
    /// Closes the connection within a message.
    Truncated,
}

/// Faults, and the text that the switch logs.
fn faults() -> [(ServerFault, &'static str); 7] {
    let interface =
        |row: Value| json!({"Interface": {"00000000-0000-0000-0000-000000000001": row}});
    [
        (
            ServerFault::Bytes("hello, I am a database\n"),
            "message is not an object",
        ),
        (
            ServerFault::Bytes("{\"id\": 0, \"result\": }"),
            "expected value",
        ),
        (ServerFault::Schema(json!(7)), "no object 'tables'"),
        (
            ServerFault::Rows(interface(json!({"initial": {"name": 7}}))),
            "string",
        ),
        (
            ServerFault::Change(interface(json!({"modify": {"name": "p1"}}))),
            "row",
        ),
        (ServerFault::Endless, "message too long"),
        (ServerFault::Truncated, "keeping the configuration"),
    ]
}

fn forwarding_continues_with_a_faulty_database_server(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    let schema = std::fs::read_to_string(SCHEMA)?;
    let schema: Value = serde_json::from_str(&schema)?;
    deployment.kill_database()?;
    let socket = deployment.rundir.join("db.sock");
    let listener = UnixListener::bind(&socket)?;
    listener.set_nonblocking(true)?;
    let mut delays = Vec::new();
    let mut closed_at = context.clock.now();
    for (fault, text) in faults() {
        let stream = context.wait_for("the switch to connect", || match listener.accept() {
            Ok((stream, _)) => Ok(Some(stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(Failure::to("accept")(error)),
        })?;
        delays.push(context.clock.now() - closed_at);
        let before = std::fs::read_to_string(&daemon.log)?.len();
        reply(stream, &schema, &fault)?;
        closed_at = context.clock.now();
        context.wait_until(text, || {
            let log = std::fs::read_to_string(&daemon.log).map_err(Failure::to("read the log"))?;
            Ok(log[before..].contains(text))
        })?;
        one.ping(two.address, 3)?;
    }
    // The backoff is 0.5 s, 1 s, 2 s, 4 s, and 8 s from then on.
    let (early, late) = (delays[1], delays[5]);
    assert!(late > early * 2, "{delays:?}");
    drop(listener);
    std::fs::remove_file(&socket)?;
    deployment.start_database()?;
    deployment.vsctl("del-port p2")?;
    assert!(!deployment.run_tool("ovs-ofctl show br0")?.contains("(p2)"));
    Ok(())
}

/// Replies to the switch with this fault, until the switch closes the connection.
fn reply(mut stream: UnixStream, schema: &Value, fault: &ServerFault) -> Result<(), Failure> {
    let failure = || Failure::to("reply to the switch");
    stream.set_nonblocking(false).map_err(failure())?;
    stream
        .set_read_timeout(Some(WAIT_LIMIT))
        .map_err(failure())?;
    // The switch may close the connection before all bytes are sent.
    match fault {
        ServerFault::Bytes(bytes) => drop(stream.write_all(bytes.as_bytes())),
        ServerFault::Endless => {
            drop(stream.write_all(b"{\"id\": 0, \"result\": \""));
            let mut remaining = ENDLESS_LEN;
            while remaining > 0 && stream.write_all(&[b'a'; 1 << 16]).is_ok() {
                remaining = remaining.saturating_sub(1 << 16);
            }
        }
        ServerFault::Truncated => {
            return stream.write_all(b"{\"id\": 0, \"resu").map_err(failure());
        }
        ServerFault::Schema(_) | ServerFault::Rows(_) | ServerFault::Change(_) => {
            reply_to_requests(&stream, schema, fault)
        }
    }
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(failure()(error)),
        _ => Ok(()),
    }
}

fn reply_to_requests(stream: &UnixStream, schema: &Value, fault: &ServerFault) {
    let requests = serde_json::Deserializer::from_reader(stream).into_iter::<Value>();
    for request in requests.map_while(Result::ok) {
        let method = request["method"].as_str().unwrap_or_default();
        let result = match (method, fault) {
            ("get_schema", ServerFault::Schema(fault)) => fault.clone(),
            ("get_schema", _) => schema.clone(),
            ("lock", _) => json!({"locked": true}),
            ("monitor_cond_since", ServerFault::Rows(rows)) => json!([false, NO_TRANSACTION, rows]),
            ("monitor_cond_since", _) => json!([false, NO_TRANSACTION, {}]),
            _ => continue,
        };
        send(
            stream,
            &json!({"id": request["id"], "result": result, "error": null}),
        );
        if let ("monitor_cond_since", ServerFault::Change(rows)) = (method, fault) {
            let params = json!([request["params"][1], NO_TRANSACTION, rows]);
            send(
                stream,
                &json!({"id": null, "method": "update3", "params": params}),
            );
        }
    }
}

/// Id of no transaction.
const NO_TRANSACTION: &str = "00000000-0000-0000-0000-000000000000";

fn send(mut stream: &UnixStream, message: &Value) {
    // The switch may have closed the connection.
    drop(stream.write_all(message.to_string().as_bytes()));
}
