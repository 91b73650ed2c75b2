//! The lab's instrument by hand, as its users call it: frames that are generated, counted, sent back and
//! replayed on a cable, and a controller without a lab. What is asserted are counts: times are the machine's.

use std::fs;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use testbed::Interrupt;
use testbed::{
    Bench, Chance, DeviceKind, DeviceOptions, Failure, FaultCounts, Faults, Host, Impairments,
    Namespace, Process, Program, Settings, Setup,
};
use trafficgen::{
    End, EndNo, Length, Pace, Rate, Request, Stream, StreamOutcome, Template, measure,
};

use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;
use crate::support::pcap::pcap_file;

pub(crate) const TESTS: &[SystemTest] = tests![
    frames_by_hand_are_counted_whichever_way_they_take,
    a_controller_by_hand_leaves_a_switch_with_its_rules,
    what_a_forwarder_with_known_faults_did_is_found_frame_by_frame,
];

/// A cable whose ends are both here.
struct Cable<'g> {
    context: &'g TestContext,
    place: Namespace,
}

impl<'g> Cable<'g> {
    fn lay(context: &'g TestContext) -> Result<Self, Failure> {
        let place = Namespace::new()?;
        place.join("va", &place, "vb")?;
        place.set_up("va")?;
        place.set_up("vb")?;
        context.wait_until("a cable", || place.carries("va"))?;
        Ok(Self { context, place })
    }

    fn lab(&self, words: &str) -> Program<'_> {
        let words = words.split_whitespace();
        Program::new(comporta_binary())
            .arg("lab")
            .args(words)
            .inside(&self.place)
    }

    /// The tally of a command, which may say that the machine was too busy for its rate.
    fn tally(&self, words: &str) -> Result<Value, Failure> {
        let ran = CommandOutput::run(self.context, self.lab(words))?;
        let code = ran.status.code();
        assert!(
            matches!(code, Some(0 | 4)),
            "{}\n{}",
            ran.command,
            ran.stderr
        );
        Ok(last_line(&ran.stdout))
    }

    fn start(&self, words: &str) -> Result<(Process, PathBuf), Failure> {
        let (out, log) = (
            self.context.unique_path("out"),
            self.context.unique_path("log"),
        );
        let program = self.lab(words).output(&out).log(log);
        Ok((self.context.spawner.start(program)?, out))
    }
}

fn last_line(output: &str) -> Value {
    let line = output.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {output}"))
}

/// Ends a command as Ctrl-C does, and reads its tally.
fn ended((mut process, out): (Process, PathBuf)) -> Result<Value, Failure> {
    let status = process.stop()?;
    assert_eq!(status.code(), Some(130), "the user ended it");
    let output = fs::read_to_string(out).map_err(Failure::to("read a tally"))?;
    let tally = last_line(&output);
    assert_eq!(tally["interrupted"], true, "{tally}");
    Ok(tally)
}

/// Frames that were sent, that came, and that were lost, doubled, changed or damaged.
fn counts(tally: &Value) -> [Option<u64>; 3] {
    let stream = &tally["trials"][0]["streams"][0];
    let came = &stream["received"];
    let harmed = ["lost", "duplicated", "changed", "damaged", "astray"];
    let harmed = harmed.map(|name| came[name].as_u64());
    [
        stream["sent"].as_u64(),
        came["frames"].as_u64(),
        harmed.into_iter().sum(),
    ]
}

fn frames_by_hand_are_counted_whichever_way_they_take(context: &TestContext) -> TestResult {
    let cable = Cable::lay(context)?;
    let all = |count| [Some(count), Some(count), Some(0)];
    for words in [
        "--frames vxlan+tcp --size 256 --flows 100 --random",
        "--xdp --size imix",
    ] {
        let words = format!("generate va --to vb --count 600 --rate 5kpps --json {words}");
        assert_eq!(counts(&cable.tally(&words)?), all(600), "{words}");
    }
    let generator = cable.start("generate va --seconds 60 --rate 2kpps --json")?;
    let received = cable.tally("receive vb --count 200 --json")?;
    let came = [&received["frames"], &received["streams"][0]["received"]];
    assert!(
        came.iter().all(|one| one.as_u64() >= Some(200)),
        "{received}"
    );
    assert_eq!(received["streams"][0]["lost"], 0, "{received}");
    let generated = ended(generator)?;
    assert!(counts(&generated)[0] >= Some(200), "{generated}");
    assert!(generated["trials"][0]["streams"][0]["received"].is_null());
    let reflector = cable.start("reflect vb --json")?;
    context.wait_until("frames to come back", || {
        let tally = cable.tally("generate va --reflected --count 3 --rate 1kpps --json")?;
        Ok(counts(&tally) == all(3))
    })?;
    let words = "generate va --reflected --count 500 --rate 5kpps --frames icmp --json";
    assert_eq!(counts(&cable.tally(words)?), all(500));
    let reflected = ended(reflector)?;
    assert!(reflected["reflected"].as_u64() >= Some(503), "{reflected}");
    let file = context.unique_path("three.pcap");
    let frames = ["udp(dst=1)", "udp(dst=2)", "tcp(dst=3)"];
    let frames = frames.map(|one| format!("eth / ipv4 / {one} / data(64)"));
    let frames = frames.each_ref().map(String::as_str);
    fs::write(&file, pcap_file(&frames))?;
    let words = format!(
        "replay {} va --to vb --rate 2kpps --loop 100 --json",
        file.display()
    );
    assert_eq!(counts(&cable.tally(&words)?), all(300));
    Ok(())
}

fn a_controller_by_hand_leaves_a_switch_with_its_rules(context: &TestContext) -> TestResult {
    let rules = context.unique_path("rules.txt");
    fs::write(&rules, "# the way there\nin_port=1,actions=output:2\n")?;
    let socket = context.directory().join("controller");
    let network = TestNetwork::new(context, 2)?;
    let cable = Cable::lay(context)?;
    let controller = cable.start(&format!(
        "controller --listen unix:{} --rules {} --json",
        socket.display(),
        rules.display()
    ))?;
    let switch = network.start_switch(&format!(
        "--bridge br0 --port p1 --port p2 --controller unix:{}",
        socket.display()
    ))?;
    switch.wait_until("the rule to be there", |switch| {
        let flows = switch.flows("dump-flows br0")?;
        Ok(flows.iter().any(|flow| flow.contains("in_port=")) && flows.len() == 1)
    })?;
    let tally = ended(controller)?;
    let one = &tally["switches"][0];
    assert_eq!(one["errors"].as_array().map(Vec::len), Some(0), "{tally}");
    assert!(one["heard"].is_object() && one["over"].is_null(), "{tally}");
    Ok(())
}

/// How long each frame is held.
const HELD: Duration = Duration::from_micros(300);

/// Frames both ways through a forwarder that loses, doubles and holds back those that are to be, and what it
/// says that it did.
fn impaired(context: &TestContext) -> Result<(Vec<StreamOutcome>, [FaultCounts; 2]), Failure> {
    let every = |count| NonZeroU64::new(count).map_or(Chance::Never, Chance::Every);
    let settings = Settings::Impairments(Box::new(Impairments {
        forth: Faults {
            delay: HELD,
            loss: every(10),
            duplication: every(7),
            ..Faults::default()
        },
        back: Faults {
            delay: HELD,
            reordering: every(50),
            reordering_by: Duration::from_millis(2),
            ..Faults::default()
        },
        seed: 1,
    }));
    let options = DeviceOptions {
        kind: DeviceKind::Impaired(None),
        directory: context.directory().to_owned(),
        cores: Vec::new(),
        comporta: comporta_binary(),
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    let bench = Bench::build_as(&context.spawner, &context.clock, &options, &setup)?;
    let open = |host: &Host| End::packet(&host.namespace, host.interface, 64, context.clock);
    let ends: Result<Vec<End>, Failure> = bench.hosts().iter().map(open).collect();
    let pace = Pace::Constant(Rate::Frames(5_000));
    let stream = |from, to| Stream::new(Template::udp(64), pace, EndNo(from), EndNo(to));
    let streams = vec![stream(0, 1), stream(1, 0)];
    let request = Request::new(streams, Length::Frames(2_000));
    let measured = measure(&mut ends?, &request, &context.clock, &Interrupt::never());
    let measured = measured.expect("interfaces are there");
    let counts = bench.device().impairment().map(|faults| faults.counts());
    Ok((measured.streams, counts.unwrap_or_default()))
}

fn what_a_forwarder_with_known_faults_did_is_found_frame_by_frame(
    context: &TestContext,
) -> TestResult {
    let (streams, did) = impaired(context)?;
    let [forth, back] = [&streams[0], &streams[1]];
    for (stream, did) in [(forth, &did[0]), (back, &did[1])] {
        assert_eq!((stream.achieved.frames, did.received), (2_000, 2_000));
        assert_eq!(stream.lost, did.gone(), "{did}");
        assert_eq!(stream.duplicated, did.duplicated, "{did}");
        assert_eq!(stream.reordered, did.reordered, "{did}");
        assert_eq!((stream.changed, stream.damaged), (0, 0));
        let least = u128::from(stream.delay_from_sent.min());
        // A histogram tells values to a thousandth.
        assert!(least * 1_001 >= HELD.as_nanos() * 1_000, "{least}");
    }
    assert_eq!((forth.lost, back.lost), (200, 0));
    assert!(forth.duplicated > 0 && back.reordered > 0, "{did:?}");
    Ok(())
}
