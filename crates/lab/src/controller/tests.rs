//! The lab's controller against a device that the test plays.

use super::*;
use base::{Instant, PortNo, Xid};
use flow::{FlowFlags, FlowStats, PacketIn, PacketInReason, Refusal, Registers};
use openflow::{Channel, Event, Excerpt, Options, Received, Side};
use std::io::Read;

/// A device of a few lines at the far end of the socket: it has no tables, and
/// answers as `react` says.
fn device(stream: UnixStream, mut react: impl FnMut(&mut Channel, Received) + Send + 'static) {
    thread::spawn(move || {
        let now = Instant::START;
        let mut stream = stream;
        let mut channel = Channel::new(Side::Switch, Options::default(), now);
        let mut bytes = [0; 4096];
        loop {
            let pending = channel.pending().len();
            if stream.write_all(channel.pending()).is_err() {
                return;
            }
            channel.transmitted(pending);
            match stream.read(&mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(length) => channel.handle_input(&bytes[..length], now),
            }
            while let Some(event) = channel.poll_event() {
                if let Event::Received(received) = event {
                    react(&mut channel, *received);
                }
            }
        }
    });
}

fn connected(react: impl FnMut(&mut Channel, Received) + Send + 'static) -> Controller {
    let (near, far) = UnixStream::pair().unwrap();
    device(far, react);
    Controller::start(near, Clock::start()).unwrap()
}

fn say(channel: &mut Channel, xid: Xid, message: &Message) {
    channel.send(xid, message).unwrap();
}

fn rule(cookie: u64) -> FlowMod {
    let actions = Instructions::apply(vec![flow::Action::output(PortNo(2))]);
    let mut rule = FlowMod::new(FlowModCommand::Add, 1, Match::any(), actions);
    rule.cookie = Cookie(cookie);
    rule
}

#[test]
fn rules_are_installed_after_the_old_ones_are_gone() {
    let (heard, hearing) = mpsc::channel();
    let controller = connected(
        move |channel, Received { xid, message, .. }| match message {
            Message::FlowMod(change) => heard.send((change.command, change.cookie)).unwrap(),
            Message::BarrierRequest => say(channel, xid, &Message::BarrierReply),
            other => panic!("{other:?}"),
        },
    );
    controller.install(&[rule(1), rule(2)]).unwrap();
    let all: Vec<_> = hearing.try_iter().collect();
    let expected = [
        (FlowModCommand::Delete, Cookie(0)),
        (FlowModCommand::Add, Cookie(1)),
        (FlowModCommand::Add, Cookie(2)),
    ];
    assert_eq!(all, expected);
}

#[test]
fn a_refused_rule_is_told() {
    let controller = connected(|channel, Received { xid, message, .. }| match message {
        Message::BarrierRequest => say(channel, xid, &Message::BarrierReply),
        _ => channel.refuse(xid, Refusal::FlowModTableFull, &Excerpt::of(&[0; 8])),
    });
    let error = controller.install(&[rule(1)]).unwrap_err().to_string();
    assert!(error.starts_with("the device refused a rule: "), "{error}");
}

#[test]
fn counts_are_those_of_every_part_of_the_answer() {
    let controller = connected(|channel, Received { xid, message, .. }| match message {
        Message::MultipartRequest(_) => {
            for (cookie, more) in [(1, true), (2, false)] {
                let stats = flow_stats(cookie, cookie * 100);
                let reply = MultipartReply::Flow(Form::Standard, vec![stats]);
                say(channel, xid, &Message::MultipartReply { reply, more });
            }
        }
        _ => say(channel, xid, &Message::BarrierReply),
    });
    let counts = controller.counts().unwrap();
    assert_eq!(counts, [(Cookie(1), 100), (Cookie(2), 200)]);
}

fn flow_stats(cookie: u64, packets: u64) -> FlowStats {
    FlowStats {
        table: TableId::FIRST,
        priority: 1,
        cookie: Cookie(cookie),
        matching: Match::any(),
        instructions: Instructions::default(),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        importance: 0,
        flags: FlowFlags::default(),
        duration: Duration::ZERO,
        idle_age: Duration::ZERO,
        hard_age: Duration::ZERO,
        packets,
        bytes: 0,
    }
}

#[test]
fn frames_for_the_controller_are_counted() {
    let controller = connected(|channel, Received { xid, .. }| {
        for _ in 0..3 {
            let packet_in = PacketIn {
                reason: PacketInReason::NoMatch,
                table: TableId::FIRST,
                cookie: Cookie::NONE,
                registers: Registers::new(PortNo(1)),
                total_len: 60,
                data: vec![0; 60],
                userdata: Vec::new(),
                continuation: Vec::new(),
            };
            say(channel, Xid(0), &Message::PacketIn(packet_in));
        }
        say(channel, xid, &Message::BarrierReply);
    });
    controller.transact("a barrier", Vec::new()).unwrap();
    assert_eq!(controller.packet_ins(), 3);
}

#[test]
fn a_device_that_hangs_up_is_told_of() {
    let (near, far) = UnixStream::pair().unwrap();
    let controller = Controller::start(near, Clock::start()).unwrap();
    drop(far);
    let error = controller.transact("a barrier", Vec::new()).unwrap_err();
    assert!(matches!(error, ControllerError::Down(_)), "{error}");
}

#[test]
fn nobody_waits_for_a_device_that_has_ended() {
    let path = std::env::temp_dir().join(format!("lab-controller-{}", std::process::id()));
    let listener = Listener::bind(&path).unwrap();
    let ended = || {
        Err(Failure::Program {
            program: "device".to_owned(),
            status: "exit status: 1".to_owned(),
            output: String::new(),
        })
    };
    let outcome = listener.accept(&Clock::start(), Duration::from_secs(60), ended);
    assert!(outcome.is_err());
    assert!(!path.exists());
}
