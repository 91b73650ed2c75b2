//! The traffic generator, receiver, reflector, replay and controller as commands, on a veth pair.
//! The tests assert counts, since times depend on the machine.

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
    Length, Pace, Rate, Request, Stream, StreamOutcome, Template, TestPort, TestPortNo, measure,
};

use crate::support::command::{CommandOutput, comporta_binary, comporta_program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;
use crate::support::pcap::pcap_file;

pub(crate) const TESTS: &[SystemTest] = tests![
    generate_receive_reflect_and_replay_count_frames,
    controller_command_installs_its_rules,
    generator_counts_the_faults_of_an_impaired_forwarder,
];

/// A veth pair with both ends in one namespace.
struct CablePair<'g> {
    context: &'g TestContext,
    namespace: Namespace,
}

impl<'g> CablePair<'g> {
    fn new(context: &'g TestContext) -> Result<Self, Failure> {
        let namespace = Namespace::new()?;
        namespace.join("va", &namespace, "vb")?;
        namespace.set_up("va")?;
        namespace.set_up("vb")?;
        context.wait_until("the veth pair", || namespace.carries("va"))?;
        Ok(Self { context, namespace })
    }

    fn lab(&self, words: &str) -> Program<'_> {
        let words = words.split_whitespace();
        comporta_program()
            .arg("lab")
            .args(words)
            .inside(&self.namespace)
    }

    /// Runs a command and returns its result. The exit code may report that the machine was too
    /// busy for the rate.
    fn run(&self, words: &str) -> Result<Value, Failure> {
        let output = CommandOutput::run(self.context, self.lab(words))?;
        let code = output.status.code();
        assert!(
            matches!(code, Some(0 | 4)),
            "{}\n{}",
            output.command,
            output.stderr
        );
        Ok(last_line(&output.stdout))
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

/// Interrupts a command as Ctrl-C does, and returns its result.
fn interrupt((mut process, out): (Process, PathBuf)) -> Result<Value, Failure> {
    let status = process.stop()?;
    assert_eq!(status.code(), Some(130), "the exit code of an interruption");
    let output = fs::read_to_string(out).map_err(Failure::to("read a result"))?;
    let result = last_line(&output);
    assert_eq!(result["interrupted"], true, "{result}");
    Ok(result)
}

/// Frames that were sent, that were received, and that were lost, duplicated, modified or corrupt.
fn counts(result: &Value) -> [Option<u64>; 3] {
    let stream = &result["trials"][0]["streams"][0];
    let received = &stream["received"];
    let faulty = ["lost", "duplicated", "changed", "damaged", "astray"];
    let faulty = faulty.map(|name| received[name].as_u64());
    [
        stream["sent"].as_u64(),
        received["frames"].as_u64(),
        faulty.into_iter().sum(),
    ]
}

fn generate_receive_reflect_and_replay_count_frames(context: &TestContext) -> TestResult {
    let cable = CablePair::new(context)?;
    let all = |count| [Some(count), Some(count), Some(0)];
    for words in [
        "--frames vxlan+tcp --size 256 --flows 100 --random",
        "--xdp --size imix",
    ] {
        let words = format!("generate va --to vb --count 600 --rate 5kpps --json {words}");
        assert_eq!(counts(&cable.run(&words)?), all(600), "{words}");
    }
    let generator = cable.start("generate va --seconds 60 --rate 2kpps --json")?;
    let received = cable.run("receive vb --count 200 --json")?;
    let received_counts = [&received["frames"], &received["streams"][0]["received"]];
    assert!(
        received_counts
            .iter()
            .all(|count| count.as_u64() >= Some(200)),
        "{received}"
    );
    assert_eq!(received["streams"][0]["lost"], 0, "{received}");
    let generated = interrupt(generator)?;
    assert!(counts(&generated)[0] >= Some(200), "{generated}");
    assert!(generated["trials"][0]["streams"][0]["received"].is_null());
    let reflector = cable.start("reflect vb --json")?;
    context.wait_until("reflected frames", || {
        let result = cable.run("generate va --reflected --count 3 --rate 1kpps --json")?;
        Ok(counts(&result) == all(3))
    })?;
    let words = "generate va --reflected --count 500 --rate 5kpps --frames icmp --json";
    assert_eq!(counts(&cable.run(words)?), all(500));
    let reflected = interrupt(reflector)?;
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
    assert_eq!(counts(&cable.run(&words)?), all(300));
    Ok(())
}

fn controller_command_installs_its_rules(context: &TestContext) -> TestResult {
    let rules = context.unique_path("rules.txt");
    fs::write(&rules, "# forward to port 2\nin_port=1,actions=output:2\n")?;
    let socket = context.directory().join("controller");
    let network = TestNetwork::new(context, 2)?;
    let cable = CablePair::new(context)?;
    let controller = cable.start(&format!(
        "controller --listen unix:{} --rules {} --json",
        socket.display(),
        rules.display()
    ))?;
    let switch = network.start_switch(&format!(
        "--bridge br0 --port p1 --port p2 --controller unix:{}",
        socket.display()
    ))?;
    switch.wait_until("the controller's rule", |switch| {
        let flows = switch.flows("dump-flows br0")?;
        Ok(flows.iter().any(|flow| flow.contains("in_port=")) && flows.len() == 1)
    })?;
    let result = interrupt(controller)?;
    let switch_entry = &result["switches"][0];
    assert_eq!(
        switch_entry["errors"].as_array().map(Vec::len),
        Some(0),
        "{result}"
    );
    assert!(
        switch_entry["heard"].is_object() && switch_entry["over"].is_null(),
        "{result}"
    );
    Ok(())
}

/// Delay of each frame.
const DELAY: Duration = Duration::from_micros(300);

/// Sends frames in both directions through a forwarder that drops, duplicates and delays frames,
/// and returns the measurement and the forwarder's own counts.
fn send_through_impairment(
    context: &TestContext,
) -> Result<(Vec<StreamOutcome>, [FaultCounts; 2]), Failure> {
    let every = |count| NonZeroU64::new(count).map_or(Chance::Never, Chance::Every);
    let settings = Settings::Impairments(Box::new(Impairments {
        forth: Faults {
            delay: DELAY,
            loss: every(10),
            duplication: every(7),
            ..Faults::default()
        },
        back: Faults {
            delay: DELAY,
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
    let open = |host: &Host| TestPort::packet(&host.namespace, host.interface, 64, context.clock);
    let ends: Result<Vec<TestPort>, Failure> = bench.hosts().iter().map(open).collect();
    let pace = Pace::Constant(Rate::Frames(5_000));
    let stream = |from, to| Stream::new(Template::udp(64), pace, TestPortNo(from), TestPortNo(to));
    let streams = vec![stream(0, 1), stream(1, 0)];
    let request = Request::new(streams, Length::Frames(2_000));
    let measured = measure(&mut ends?, &request, &context.clock, &Interrupt::never());
    let measured = measured.expect("the interfaces exist");
    let counts = bench.device().impairment().map(|faults| faults.counts());
    Ok((measured.streams, counts.unwrap_or_default()))
}

fn generator_counts_the_faults_of_an_impaired_forwarder(context: &TestContext) -> TestResult {
    let (streams, counts) = send_through_impairment(context)?;
    let [forth, back] = [&streams[0], &streams[1]];
    for (stream, counts) in [(forth, &counts[0]), (back, &counts[1])] {
        assert_eq!((stream.achieved.frames, counts.received), (2_000, 2_000));
        assert_eq!(stream.lost, counts.discarded(), "{counts}");
        assert_eq!(stream.duplicated, counts.duplicated, "{counts}");
        assert_eq!(stream.reordered, counts.reordered, "{counts}");
        assert_eq!((stream.modified, stream.corrupt), (0, 0));
        let minimum = u128::from(stream.delay_from_sent.min());
        // The histogram has a resolution of one thousandth.
        assert!(minimum * 1_001 >= DELAY.as_nanos() * 1_000, "{minimum}");
    }
    assert_eq!((forth.lost, back.lost), (200, 0));
    assert!(forth.duplicated > 0 && back.reordered > 0, "{counts:?}");
    Ok(())
}
