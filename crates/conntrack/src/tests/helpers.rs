//! Connections that the helpers of FTP and TFTP expect.

use super::*;
use crate::alg::PayloadRewrite;
use crate::key::{AddressFamily, Endpoint};
use crate::{AlgHelper, SequenceAdjust};

const CLIENT: u8 = 1;
const SERVER: u8 = 2;

fn with_helper(helper: AlgHelper, nat: Option<CtNat>) -> CtRequest {
    CtRequest {
        helper: Some(helper),
        nat,
        mark: Some(MaskedWrite { value: 9, mask: 15 }),
        ..commit()
    }
}

/// Opens an FTP control connection, and returns the client's end behind NAT.
fn open_control(tracker: &Conntrack, request: &CtRequest) -> Endpoint {
    tracker.set_sequence_check(SequenceCheck::Off);
    let (client, server) = (endpoint(CLIENT, 4000), endpoint(SERVER, 21));
    let syn = untracked(tcp(client, server, flags(SYN)));
    let outcome = tracker.track(&syn, request, START);
    let translation = outcome.translation;
    let client = translation.map_or(client, |translation| translation.header.src);
    let answer = untracked(tcp(server, client, flags(SYN | ACK)));
    tracker.track(&answer, request, START);
    client
}

fn control(tracker: &Conntrack, payload: &str, request: &CtRequest) -> CtOutcome {
    control_at(tracker, 0, payload, request)
}

fn control_at(tracker: &Conntrack, sequence: u32, payload: &str, request: &CtRequest) -> CtOutcome {
    let (client, server) = (endpoint(CLIENT, 4000), endpoint(SERVER, 21));
    let segment = TcpFacts {
        sequence,
        ..flags(ACK)
    };
    let packet = CtPacket {
        payload: payload.as_bytes(),
        ..untracked(tcp(client, server, segment))
    };
    tracker.track(&packet, request, START)
}

#[test]
fn ftp_data_connection_is_related() {
    let tracker = tracker();
    let request = with_helper(AlgHelper::Ftp, None);
    open_control(&tracker, &request);
    control(&tracker, "PORT 10,0,0,1,19,137\r\n", &request);
    let data = tcp(endpoint(SERVER, 20), endpoint(CLIENT, 5001), flags(SYN));
    let outcome = tracker.track(&untracked(data), &commit(), START);
    let state = CtState::NEW.with(CtState::RELATED);
    assert_eq!(outcome.metadata.state, state.with(CtState::TRACKED));
    assert_eq!(outcome.metadata.mark, 9);
    let parent = outcome.metadata.original.expect("the control connection");
    assert_eq!(parent.dst, endpoint(SERVER, 21));
    let other = tcp(endpoint(SERVER, 20), endpoint(CLIENT, 5002), flags(SYN));
    assert_eq!(state_of(&tracker, other, &commit(), START), CtState::NEW);
}

#[test]
fn ftp_announcement_of_a_third_host_is_invalid() {
    let tracker = tracker();
    let request = with_helper(AlgHelper::Ftp, None);
    open_control(&tracker, &request);
    let outcome = control(&tracker, "PORT 10,0,0,77,19,137\r\n", &request);
    assert!(outcome.metadata.state.contains(CtState::INVALID));
    assert_eq!(tracker.counter(CtCounter::InvalidAlgMessage), 1);
    let data = tcp(endpoint(SERVER, 20), endpoint(77, 5001), flags(SYN));
    assert_eq!(state_of(&tracker, data, &commit(), START), CtState::NEW);
}

#[test]
fn ftp_address_is_translated_and_numbers_are_shifted() {
    let tracker = tracker();
    let address = Ipv4Addr::new(192, 0, 2, 100).into();
    let range = NatRange::to_address(NatSide::Source, address);
    let request = with_helper(AlgHelper::Ftp, Some(CtNat::New(range)));
    let client = open_control(&tracker, &request);
    let rewrite = PayloadRewrite {
        range: 5..13,
        text: "192,0,2,100".to_owned(),
    };
    // The message is sent twice.
    for _ in 0..2 {
        let outcome = control(&tracker, "PORT 10,0,0,1,19,137\r\n", &request);
        assert_eq!(outcome.rewrite.as_deref(), Some(&rewrite));
        assert_eq!(outcome.adjust, None);
    }
    let outcome = control_at(&tracker, 22, "LIST\r\n", &request);
    let sent = SequenceAdjust {
        sequence: 3,
        acknowledgment: 0,
    };
    assert_eq!(outcome.adjust, Some(sent));
    let segment = TcpFacts {
        acknowledgment: 25,
        ..flags(ACK)
    };
    let answer = untracked(tcp(endpoint(SERVER, 21), client, segment));
    let outcome = tracker.track(&answer, &request, START);
    let received = SequenceAdjust {
        sequence: 0,
        acknowledgment: -3,
    };
    assert_eq!(outcome.adjust, Some(received));

    // The server connects to the translated address.
    let public = Endpoint {
        port: 5001,
        ..client
    };
    let data = untracked(tcp(endpoint(SERVER, 20), public, flags(SYN)));
    let outcome = tracker.track(&data, &request, START);
    let translation = outcome.translation.expect("a translation");
    assert_eq!(translation.header.dst, endpoint(CLIENT, 5001));
    assert!(outcome.metadata.state.contains(CtState::RELATED));
}

#[test]
fn ftp_announcement_of_the_other_end_is_ignored() {
    let tracker = tracker();
    let request = with_helper(AlgHelper::Ftp, None);
    open_control(&tracker, &request);
    control(&tracker, "227 Passive (10,0,0,2,19,137)\r\n", &request);
    let data = tcp(endpoint(CLIENT, 20), endpoint(SERVER, 5001), flags(SYN));
    assert_eq!(state_of(&tracker, data, &commit(), START), CtState::NEW);
}

#[test]
fn ftp_extended_messages_work_over_both_families() {
    let tracker = tracker();
    let address = Ipv4Addr::new(192, 0, 2, 100).into();
    let range = NatRange::to_address(NatSide::Source, address);
    let request = with_helper(AlgHelper::Ftp, Some(CtNat::New(range)));
    open_control(&tracker, &request);
    let outcome = control(&tracker, "EPRT |1|10.0.0.1|5001|\r\n", &request);
    let rewrite = PayloadRewrite {
        range: 8..16,
        text: "192.0.2.100".to_owned(),
    };
    assert_eq!(outcome.rewrite.as_deref(), Some(&rewrite));

    // The server awaits a data connection of the client, over IPv6.
    let request = with_helper(AlgHelper::Ftp, None);
    let (mut client, mut server) = (udp_v6(1, 2).tuple.src, udp_v6(1, 2).tuple.dst);
    server.port = 21;
    let segment = |src, dst, flag| {
        let mut facts = tcp(src, dst, flags(flag));
        facts.tuple.family = AddressFamily::V6;
        facts
    };
    let syn = untracked(segment(client, server, SYN));
    tracker.track(&syn, &request, START);
    let reply = CtPacket {
        payload: b"229 Entering Extended Passive Mode (|||6446|)\r\n",
        ..untracked(segment(server, client, SYN | ACK))
    };
    tracker.track(&reply, &request, START);
    (client.port, server.port) = (2000, 6446);
    let state = CtState::NEW.with(CtState::RELATED);
    let data = segment(client, server, SYN);
    assert_eq!(state_of(&tracker, data, &commit(), START), state);
}

#[test]
fn tftp_data_connection_is_related() {
    let tracker = tracker();
    let request = with_helper(AlgHelper::Tftp, None);
    let (client, server) = (endpoint(CLIENT, 4000), endpoint(SERVER, 69));
    tracker.track(&untracked(udp(client, server)), &request, START);
    let data = udp(endpoint(SERVER, 7777), client);
    let state = CtState::NEW.with(CtState::RELATED);
    assert_eq!(state_of(&tracker, data, &commit(), START), state);
}

#[test]
fn expectations_are_removed_with_the_control_connection() {
    let tracker = tracker();
    let request = with_helper(AlgHelper::Ftp, None);
    open_control(&tracker, &request);
    control(&tracker, "PORT 10,0,0,1,19,137\r\n", &request);
    tracker.flush(START, |_| true);
    let data = tcp(endpoint(SERVER, 20), endpoint(CLIENT, 5001), flags(SYN));
    assert_eq!(state_of(&tracker, data, &commit(), START), CtState::NEW);
}
