//! A database that lies: garbage, wrong types, rows that are not there, words without end, and
//! silence in mid-sentence. The switch leaves it, seeks it again ever more seldom, and forwards.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use serde_json::{Value, json};
use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![a_database_that_lies_is_left_and_frames_go_on,];

/// Longer than any message that is read.
const ENDLESS_LEN: usize = 65 << 20;

/// What is wrong with what it says.
enum Lie {
    /// These bytes, before anything is asked.
    Bytes(&'static str),
    /// This is the schema.
    Schema(Value),
    /// These are the rows.
    Rows(Value),
    /// These have changed, after there were none.
    Change(Value),
    /// It does not end.
    Endless,
    /// It ends in mid-message.
    Half,
}

/// Each lie, and what the switch says of it.
fn lies() -> [(Lie, &'static str); 7] {
    let interface =
        |row: Value| json!({"Interface": {"00000000-0000-0000-0000-000000000001": row}});
    [
        (
            Lie::Bytes("hello, I am a database\n"),
            "a message is no object",
        ),
        (Lie::Bytes("{\"id\": 0, \"result\": }"), "expected value"),
        (Lie::Schema(json!(7)), "no object 'tables'"),
        (
            Lie::Rows(interface(json!({"initial": {"name": 7}}))),
            "string",
        ),
        (
            Lie::Change(interface(json!({"modify": {"name": "p1"}}))),
            "row",
        ),
        (Lie::Endless, "a message is too long"),
        (Lie::Half, "the database is gone"),
    ]
}

fn a_database_that_lies_is_left_and_frames_go_on(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    let schema = std::fs::read_to_string(crate::support::deployment::SCHEMA)?;
    let schema: Value = serde_json::from_str(&schema)?;
    deployment.kill_database()?;
    let socket = deployment.rundir.join("db.sock");
    let listener = UnixListener::bind(&socket)?;
    listener.set_nonblocking(true)?;
    let mut pauses = Vec::new();
    let mut left = context.clock.now();
    for (lie, said) in lies() {
        let stream = context.wait_for("the switch to come", || match listener.accept() {
            Ok((stream, _)) => Ok(Some(stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(Failure::to("accept")(error)),
        })?;
        pauses.push(context.clock.now() - left);
        let before = std::fs::read_to_string(&daemon.log)?.len();
        tell(stream, &schema, &lie)?;
        left = context.clock.now();
        context.wait_until(said, || {
            let log = std::fs::read_to_string(&daemon.log).map_err(Failure::to("read the log"))?;
            Ok(log[before..].contains(said))
        })?;
        one.ping(two.address, 3)?;
    }
    // Half a second, a second, two, four, and eight from then on.
    let (early, late) = (pauses[1], pauses[5]);
    assert!(late > early * 2, "{pauses:?}");
    drop(listener);
    std::fs::remove_file(&socket)?;
    deployment.start_database()?;
    deployment.vsctl("del-port p2")?;
    assert!(!deployment.run_tool("ovs-ofctl show br0")?.contains("(p2)"));
    Ok(())
}

/// Answers the switch, with this lie among the answers, until it leaves.
fn tell(mut stream: UnixStream, schema: &Value, lie: &Lie) -> Result<(), Failure> {
    let failure = || Failure::to("lie");
    stream.set_nonblocking(false).map_err(failure())?;
    stream
        .set_read_timeout(Some(WAIT_LIMIT))
        .map_err(failure())?;
    // The switch may be gone before all is said.
    match lie {
        Lie::Bytes(bytes) => drop(stream.write_all(bytes.as_bytes())),
        Lie::Endless => {
            drop(stream.write_all(b"{\"id\": 0, \"result\": \""));
            let mut left = ENDLESS_LEN;
            while left > 0 && stream.write_all(&[b'a'; 1 << 16]).is_ok() {
                left = left.saturating_sub(1 << 16);
            }
        }
        Lie::Half => return stream.write_all(b"{\"id\": 0, \"resu").map_err(failure()),
        Lie::Schema(_) | Lie::Rows(_) | Lie::Change(_) => answer(&stream, schema, lie),
    }
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(failure()(error)),
        _ => Ok(()),
    }
}

fn answer(stream: &UnixStream, schema: &Value, lie: &Lie) {
    let questions = serde_json::Deserializer::from_reader(stream).into_iter::<Value>();
    for question in questions.map_while(Result::ok) {
        let method = question["method"].as_str().unwrap_or_default();
        let result = match (method, lie) {
            ("get_schema", Lie::Schema(lie)) => lie.clone(),
            ("get_schema", _) => schema.clone(),
            ("lock", _) => json!({"locked": true}),
            ("monitor_cond_since", Lie::Rows(rows)) => json!([false, NOTHING, rows]),
            ("monitor_cond_since", _) => json!([false, NOTHING, {}]),
            _ => continue,
        };
        say(
            stream,
            &json!({"id": question["id"], "result": result, "error": null}),
        );
        if let ("monitor_cond_since", Lie::Change(rows)) = (method, lie) {
            let params = json!([question["params"][1], NOTHING, rows]);
            say(
                stream,
                &json!({"id": null, "method": "update3", "params": params}),
            );
        }
    }
}

/// The name of no transaction.
const NOTHING: &str = "00000000-0000-0000-0000-000000000000";

fn say(mut stream: &UnixStream, message: &Value) {
    // The switch may have left.
    drop(stream.write_all(message.to_string().as_bytes()));
}
