//! Tests of the controller against simulated devices.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use base::{Instant, PortNo, TableId, Xid};
use flow::{
    Action, Capabilities, FlowFlags, FlowModCommand, FlowStats, FlowStatsRequest, Instructions,
    Match, PacketIn, PacketInReason, PipelineFields, PortDesc,
};
use openflow::{
    Channel, ChannelEvent, ChannelOptions, ChannelSide, Excerpt, FeaturesReply, FlowFormat,
    MultipartReply, MultipartRequest, ReceivedMessage,
};
use testbed::Stamp;

use super::*;

const ID: DatapathId = DatapathId(0x2a);

/// A minimal device at the far end of the socket: it has no tables, answers the features request,
/// and leaves other messages to `react`.
fn device(
    mut stream: impl Read + Write + Send + 'static,
    id: DatapathId,
    mut react: impl FnMut(&mut Channel, ReceivedMessage) + Send + 'static,
) {
    thread::spawn(move || {
        let now = Instant::START;
        let mut channel = Channel::new(ChannelSide::Switch, ChannelOptions::default(), now);
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
                let ChannelEvent::Received(received) = event else {
                    continue;
                };
                match received.message {
                    Message::FeaturesRequest => send_features(&mut channel, received.xid, id),
                    _ => react(&mut channel, *received),
                }
            }
        }
    });
}

fn send_features(channel: &mut Channel, xid: Xid, id: DatapathId) {
    let mut port = PortDesc::new(PortNo(1));
    port.name = "p1".to_owned();
    let features = SwitchFeatures {
        datapath_id: id,
        buffers: 0,
        tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities(0),
    };
    let ports = vec![port];
    send_message(
        channel,
        xid,
        &Message::FeaturesReply(FeaturesReply { features, ports }),
    );
}

/// Answers barriers, and leaves other messages to `react`.
fn barriers(
    mut react: impl FnMut(&mut Channel, ReceivedMessage),
) -> impl FnMut(&mut Channel, ReceivedMessage) {
    move |channel, received| match received.message {
        Message::BarrierRequest => send_message(channel, received.xid, &Message::BarrierReply),
        _ => react(channel, received),
    }
}

fn connected(react: impl FnMut(&mut Channel, ReceivedMessage) + Send + 'static) -> Controller {
    connected_by(ControllerSettings::silent(Version::V10), react)
}

fn connected_by(
    settings: ControllerSettings,
    react: impl FnMut(&mut Channel, ReceivedMessage) + Send + 'static,
) -> Controller {
    let (near, far) = UnixStream::pair().unwrap();
    device(far, ID, barriers(react));
    let stream = ControlStream::unix(near).unwrap();
    Controller::start(stream, settings, &Clock::start()).unwrap()
}

fn send_message(channel: &mut Channel, xid: Xid, message: &Message) {
    channel.send(xid, message).unwrap();
}

fn rule(cookie: u64) -> FlowMod {
    let actions = Instructions::apply(vec![Action::output(PortNo(2))]);
    let mut rule = FlowMod::new(FlowModCommand::Add, 1, Match::any(), actions);
    rule.cookie = Cookie(cookie);
    rule
}

#[test]
fn rules_are_installed_after_the_deletion_of_old_ones() {
    let (incoming, hearing) = mpsc::channel();
    let controller = connected(move |_, ReceivedMessage { message, .. }| match message {
        Message::FlowMod(change) => incoming.send((change.command, change.cookie)).unwrap(),
        other => panic!("{other:?}"),
    });
    controller.install(&[rule(1), rule(2)]).unwrap();
    let all: Vec<_> = hearing.try_iter().collect();
    let expected = [
        (FlowModCommand::Delete, Cookie(0)),
        (FlowModCommand::Add, Cookie(1)),
        (FlowModCommand::Add, Cookie(2)),
    ];
    assert_eq!(all, expected);
    assert_eq!(controller.datapath_id(), ID);
}

#[test]
fn refused_rule_is_reported_by_position_and_error_name() {
    for version in [Version::V10, Version::V13, Version::V15] {
        let controller = connected_by(ControllerSettings::silent(version), |channel, received| {
            let Message::FlowMod(change) = &received.message else {
                return;
            };
            if change.cookie == Cookie(2) {
                let full = flow::Refusal::FlowModTableFull;
                channel.refuse(received.xid, full, &Excerpt::of(&[0; 8]));
            }
        });
        let error = controller.install(&[rule(1), rule(2)]).unwrap_err();
        let text = error.to_string();
        let start = "the device refused a rule: the addition of a rule: \
                     OFPFMFC_TABLE_FULL (type ";
        assert!(text.starts_with(start), "{text}");
        let messages = (1..4).map(|n| Message::FlowMod(rule(n))).collect();
        let done = (&controller).request(messages).unwrap();
        assert_eq!((done.refused, done.refusals.len()), (1, 1));
        assert!(done.refusals[0].is_table_full());
        assert_eq!(done.refusals[0].position, 1);
        assert_eq!(controller.tally().errors().len(), 2);
    }
}

#[test]
fn inexpressible_messages_are_refusals() {
    let controller = connected(|_, _| {});
    let mut elsewhere = rule(1);
    elsewhere.table = TableId(3);
    let messages = vec![Message::FlowMod(elsewhere), Message::FlowMod(rule(2))];
    let done = (&controller).request(messages).unwrap();
    assert_eq!(done.refused, 1);
    assert_eq!(done.refusals[0].position, 0);
    let text = done.refusals[0].to_string();
    assert!(
        text.contains("not sent: OpenFlow10 cannot express"),
        "{text}"
    );
}

#[test]
fn counts_cover_all_parts_of_a_multipart_reply() {
    let controller = connected(
        |channel, ReceivedMessage { xid, message, .. }| match message {
            Message::MultipartRequest(_) => {
                for (cookie, more) in [(1, true), (2, false)] {
                    let stats = flow_stats(cookie, cookie * 100);
                    let reply = MultipartReply::Flow(FlowFormat::Standard, vec![stats]);
                    send_message(channel, xid, &Message::MultipartReply { reply, more });
                }
            }
            other => panic!("{other:?}"),
        },
    );
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

fn packet_in(length: u16) -> PacketIn {
    PacketIn {
        reason: PacketInReason::NoMatch,
        table: TableId::FIRST,
        cookie: Cookie::NONE,
        registers: PipelineFields::new(PortNo(1)),
        total_len: length,
        data: vec![0; length.into()],
        userdata: Vec::new(),
        continuation: Vec::new(),
    }
}

#[test]
fn packet_ins_are_counted_and_stored_with_their_times() {
    let controller = connected(|channel, _| {
        for _ in 0..3 {
            send_message(channel, Xid(0), &Message::PacketIn(packet_in(60)));
        }
    });
    let echo = vec![Message::EchoRequest(Vec::new()), Message::FlowMod(rule(1))];
    (&controller).request(echo).unwrap();
    assert_eq!(controller.packet_ins(), 3);
    let events = controller.events();
    assert_eq!(events.len(), 3);
    let times = events.iter().map(|event| event.arrival.at);
    assert!(times.is_sorted());
    assert!(events.iter().all(|event| event.arrival.by == Stamp::Read));
    assert!(controller.events().is_empty());
    assert_eq!(controller.events_lost(), 0);
}

#[test]
fn packet_ins_beyond_the_storage_limit_are_counted() {
    // Each packet-in has 64,000 bytes: about five hundred are stored.
    let sent = 700;
    let controller = connected(move |channel, _| {
        for _ in 0..sent {
            send_message(channel, Xid(0), &Message::PacketIn(packet_in(64_000)));
        }
    });
    (&controller)
        .request(vec![Message::FlowMod(rule(1))])
        .unwrap();
    let stored_count = controller.events().len() as u64;
    assert!(stored_count * 64_000 <= 32 << 20, "{stored_count}");
    assert_eq!(stored_count + controller.events_lost(), sent);
    assert_eq!(controller.packet_ins(), sent);
}

#[test]
fn hand_over_times_precede_answers() {
    let controller = connected(|_, _| {});
    let messages = (0..1_000).map(|n| Message::FlowMod(rule(n))).collect();
    let done = (&controller).request(messages).unwrap();
    let (began, handed) = (done.began.unwrap(), done.handed.unwrap());
    assert!(began <= handed && handed <= done.answered.at);
    assert!((&controller).echo(b"1234".to_vec()).is_ok());
}

#[test]
fn statistics_requests_return_the_matching_reply() {
    let controller = connected_by(
        ControllerSettings::silent(Version::V13),
        |channel, received| {
            let Message::MultipartRequest(request) = received.message else {
                return;
            };
            let reply = match request {
                MultipartRequest::Flow(form, _) => {
                    MultipartReply::Flow(form, vec![flow_stats(3, 4), flow_stats(5, 6)])
                }
                MultipartRequest::Aggregate(form, _) => {
                    let sums = flow::AggregateStats {
                        packets: 10,
                        bytes: 600,
                        flows: 2,
                    };
                    MultipartReply::Aggregate(form, sums)
                }
                MultipartRequest::PortDesc(_) => {
                    let mut port = PortDesc::new(PortNo(7));
                    port.name = "eth7".to_owned();
                    MultipartReply::PortDesc(vec![port, PortDesc::new(PortNo(9))])
                }
                MultipartRequest::Table => MultipartReply::Table(Vec::new()),
                // A wrong answer, on purpose.
                _ => MultipartReply::Group(Vec::new()),
            };
            send_message(channel, received.xid, &Message::reply(reply));
        },
    );
    let mut device = &controller;
    let all = FlowStatsRequest::all;
    assert_eq!(device.flows(all()).unwrap().len(), 2);
    assert_eq!(device.aggregate(all()).unwrap().flows, 2);
    let ports = device.ports().unwrap();
    let ports: BTreeMap<_, _> = ports.iter().map(|(n, p)| (n.as_str(), p.number)).collect();
    assert_eq!(
        ports,
        BTreeMap::from([("9", PortNo(9)), ("eth7", PortNo(7))])
    );
    assert!(device.tables().unwrap().is_empty());
    let error = device.queues().unwrap_err().to_string();
    assert!(error.contains("did not answer queue statistics"), "{error}");
}

#[test]
fn ports_are_part_of_the_features_in_openflow_10() {
    let controller = connected(|_, _| {});
    let ports = (&mut &controller).ports().unwrap();
    assert_eq!(ports["p1"].number, PortNo(1));
}

#[test]
fn disconnected_device_is_reported_with_the_reason() {
    let controller = connected(|_, received| {
        assert!(
            !matches!(received.message, Message::FlowMod(_)),
            "intended: the device fails"
        );
    });
    let error = controller.install(&[rule(1)]).unwrap_err();
    assert!(matches!(error, ControllerError::Down(_)), "{error}");
    let error = controller.install(&[rule(1)]).unwrap_err().to_string();
    assert!(error.contains("the device closed it"), "{error}");
    let words = controller.diagnosis().to_string();
    assert!(
        words.starts_with("no longer connected (the device closed it)"),
        "{words}"
    );
}

#[test]
fn peer_without_openflow_is_reported() {
    let (near, mut far) = UnixStream::pair().unwrap();
    far.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    let stream = ControlStream::unix(near).unwrap();
    let settings = ControllerSettings::silent(Version::V13);
    let error = Controller::start(stream, settings, &Clock::start()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("does not speak OpenFlow"), "{text}");
}

#[test]
fn output_to_a_device_that_does_not_read_is_bounded() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let clock = Clock::start();
    let greeting = thread::spawn(move || {
        let channel = Channel::new(
            ChannelSide::Switch,
            ChannelOptions::default(),
            Instant::START,
        );
        far.write_all(channel.pending()).unwrap();
        far
    });
    let stream = ControlStream::unix(near).unwrap();
    let mut link = Link::over(stream, VersionSet::only(Version::V10), &clock).unwrap();
    let mut far = greeting.join().unwrap();
    let mut sent = 0_u64;
    while link.has_room() {
        link.send(&Message::FlowMod(rule(sent))).unwrap();
        sent += 1;
    }
    let backlog = link.backlog().unwrap();
    assert!(backlog.waiting >= BACKLOG_MAX && backlog.waiting < BACKLOG_MAX + 1_000);
    assert!(backlog.held > 0);
    assert!(link.diagnosis().to_string().contains("it does not read"));
    // The device reads again, and there is room.
    let mut room = vec![0; 1 << 20];
    while !link.has_room() {
        assert!(far.read(&mut room).unwrap() > 0);
        link.turn().unwrap();
    }
}

fn tcp_device(address: std::net::SocketAddr, id: DatapathId) {
    let stream = TcpStream::connect(address).unwrap();
    device(stream, id, barriers(|_, _| {}));
}

fn local() -> std::net::SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

#[test]
fn tcp_devices_are_distinguished_and_timestamped_by_the_kernel() {
    let clock = Clock::start();
    let listener = Listener::bind_tcp(local()).unwrap();
    let address = listener.address().unwrap();
    // A client that is not a device connects too.
    let mut stranger = TcpStream::connect(address).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    for id in [7, 3, 5] {
        tcp_device(address, DatapathId(id));
    }
    let settings = ControllerSettings::silent(Version::V13);
    let limit = Duration::from_secs(60);
    let devices = listener
        .gather(3, &settings, &clock, limit, || Ok(()))
        .unwrap();
    let ids: Vec<_> = devices.keys().map(|id| id.0).collect();
    assert_eq!(ids, [3, 5, 7]);
    for device in devices.values() {
        // The kernel starts to timestamp a moment after it is enabled, if it was disabled before.
        let stamped = (0..100_000).any(|_| {
            let done = { device }.request(Vec::new()).unwrap();
            assert!(done.answered.at >= device.tally().began());
            done.answered.by == Stamp::Kernel
        });
        assert!(stamped);
    }
}

#[test]
fn duplicate_datapath_ids_are_an_error() {
    let clock = Clock::start();
    let listener = Listener::bind_tcp(local()).unwrap();
    let address = listener.address().unwrap();
    tcp_device(address, ID);
    tcp_device(address, ID);
    let settings = ControllerSettings::silent(Version::V10);
    let limit = Duration::from_secs(60);
    let error = listener
        .gather(2, &settings, &clock, limit, || Ok(()))
        .unwrap_err();
    let text = error.to_string();
    assert!(text.ends_with("000000000000002a"), "{text}");
}

#[test]
fn accept_fails_at_once_for_a_dead_device() {
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
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn hub_application_answers_packet_ins() {
    let settings = ControllerSettings {
        versions: VersionSet::only(Version::V13),
        application: Application::Hub,
    };
    let (incoming, hearing) = mpsc::channel();
    let controller = connected_by(settings, move |channel, received| match received.message {
        Message::FlowMod(rule) => {
            assert_eq!((rule.priority, &rule.matching), (0, &Match::any()));
            send_message(channel, Xid(0), &Message::PacketIn(packet_in(60)));
        }
        Message::PacketOut(out) => incoming.send(out).unwrap(),
        _ => {}
    });
    let out = hearing.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(out.data, vec![0; 60]);
    assert_eq!(out.registers.in_port, PortNo(1));
    assert_eq!(out.actions, [Action::output(PortNo::FLOOD)]);
    (&controller).request(Vec::new()).unwrap();
    assert_eq!(controller.packet_ins(), 1);
}

#[test]
fn loan_returns_its_connection_on_drop() {
    let controller = connected(|_, _| {});
    for _ in 0..3 {
        let mut loan = controller.lend().unwrap();
        assert_eq!(loan.version(), Some(Version::V10));
        let done = loan.request(vec![Message::FlowMod(rule(1))]).unwrap();
        assert_eq!(done.refused, 0);
        drop(loan);
        controller.install(&[rule(2)]).unwrap();
    }
    let (near, far) = UnixStream::pair().unwrap();
    device(far, ID, |channel, received| match received.message {
        Message::FlowMod(_) => panic!("intended: the device fails"),
        _ => send_message(channel, received.xid, &Message::BarrierReply),
    });
    let stream = ControlStream::unix(near).unwrap();
    let controller = Controller::start(
        stream,
        ControllerSettings::silent(Version::V10),
        &Clock::start(),
    );
    let controller = controller.unwrap();
    let mut loan = controller.lend().unwrap();
    assert!(loan.request(vec![Message::FlowMod(rule(1))]).is_err());
    drop(loan);
    assert!(controller.install(&[rule(2)]).is_err());
    assert!(controller.lend().is_err());
}
