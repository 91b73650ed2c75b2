//! Tests of the parser and of the replay.

use std::time::Duration;

use base::Instant;
use capture_file::pcapng::{FrameDirection, PcapngWriter, append_frame};
use proptest::prelude::*;
use testbed::Interrupt;

use super::*;
use crate::layers::checksums_hold;
use crate::memory::{Path as Cable, SimulatedTime, cable};
use crate::template::{FramePattern, FrameStamp};
use crate::{Length, Measurement, Pace, Request, Signature, Stream, Template, TestPortNo, measure};

/// A pcap file with one frame a millisecond.
fn pcap(number: fn(u32) -> [u8; 4], magic: u32, frames: &[&[u8]]) -> Vec<u8> {
    let head = [magic, 0x0004_0002, 0, 0, 65_535, 1];
    let mut bytes: Vec<u8> = head.into_iter().flat_map(number).collect();
    for (count, frame) in (0..).zip(frames) {
        let length = u32::try_from(frame.len()).unwrap();
        bytes.extend(
            [7, count * 1_000, length, length]
                .into_iter()
                .flat_map(number),
        );
        bytes.extend(*frame);
    }
    bytes
}

fn pcapng(frames: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = PcapngWriter::new(&mut file, "eth0").unwrap();
    let mut blocks = Vec::new();
    for (count, frame) in (0..).zip(frames) {
        let at = Instant::from_nanos(9_000_000_000 + count * 1_000_000);
        append_frame(&mut blocks, at, FrameDirection::In, frame);
    }
    writer.write(&blocks).unwrap();
    file
}

/// A UDP frame built with another library.
fn datagram(payload: usize) -> Vec<u8> {
    let builder = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1_000, 2_000);
    let mut frame = Vec::new();
    builder.write(&mut frame, &vec![0xa5; payload]).unwrap();
    frame
}

#[test]
fn pcap_and_pcapng_parse_alike() {
    let frames: [&[u8]; 3] = [&[1; 60], &[2; 14], &[3; 61]];
    let files = [
        pcap(u32::to_le_bytes, 0xa1b2_c3d4, &frames),
        pcap(u32::to_be_bytes, 0xa1b2_c3d4, &frames),
        pcapng(&frames),
    ];
    for file in files {
        let recording = Recording::parse(&file).unwrap();
        assert!(recording.frames().eq(frames));
        assert_eq!(recording.gaps(), [1_000_000; 3]);
        assert_eq!(
            recording.mean_bytes(),
            f64::from(60 + 14 + 61 + 3 * 4) / 3.0
        );
    }
    let nanos = pcap(u32::to_le_bytes, 0xa1b2_3c4d, &frames);
    assert_eq!(Recording::parse(&nanos).unwrap().gaps(), [1_000; 3]);
}

#[test]
fn unusable_recordings_are_refused_with_the_reason() {
    let bad = |bytes: &[u8]| Recording::parse(bytes).unwrap_err();
    let good = pcap(u32::to_le_bytes, 0xa1b2_c3d4, &[&[1; 60]]);
    let modified = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bad(&bytes)
    };
    assert_eq!(bad(b"hello"), BadRecording::Unknown);
    assert_eq!(bad(&good[..24]), BadRecording::Empty);
    assert_eq!(bad(&good[..90]), BadRecording::Broken);
    assert_eq!(modified(20, 101), BadRecording::NotEthernet);
    assert_eq!(modified(36, 61), BadRecording::Cut);
    let runt = pcap(u32::to_le_bytes, 0xa1b2_c3d4, &[&[1; 13]]);
    assert_eq!(bad(&runt), BadRecording::Length(13));
}

proptest! {
    #[test]
    fn parser_accepts_or_refuses_any_input(
        mut file in prop_oneof![
            Just(pcapng(&[&[1; 60], &[2; 77]])),
            Just(pcap(u32::to_be_bytes, 0xa1b2_c3d4, &[&[1; 60], &[2; 77]])),
        ],
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        end in any::<prop::sample::Index>(),
    ) {
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        let end = end.index(file.len() + 1);
        let _ = Recording::parse(&file[..end]);
    }

    #[test]
    fn signatures_keep_checksums_correct(payload in 12..60_usize, number in any::<u64>()) {
        let mut frame = datagram(payload);
        // An interface pads short frames.
        frame.resize(frame.len().max(60), 0);
        let pattern = FramePattern::of_frame(&frame);
        prop_assert!(pattern.is_signed());
        pattern.write(&mut frame, FrameStamp { stream: 3, number, time_ns: 99 });
        prop_assert!(checksums_hold(&frame));
        let signature = Signature::of(&frame).unwrap();
        prop_assert_eq!((signature.stream, signature.time_ns), (3, 99));
    }
}

/// Replays a recording once over a path.
fn sent(frames: &[&[u8]], pace: Pace, path: Cable) -> Measurement {
    let recording = Recording::parse(&pcapng(frames)).unwrap();
    offered(recording, pace, path)
}

fn offered(recording: Recording, pace: Pace, path: Cable) -> Measurement {
    let time = SimulatedTime::new(500);
    let (mut ends, _) = cable(&time, path, Cable::default());
    let length = Length::Frames(recording.frame_count());
    let stream = Stream::new(recording, pace, TestPortNo(0), TestPortNo(1));
    let request = Request {
        drain: Duration::from_millis(60),
        ..Request::new(vec![stream], length)
    };
    measure(&mut ends, &request, &*time, &Interrupt::never()).unwrap()
}

#[test]
fn recorded_frames_are_signed_if_they_fit_and_counted_otherwise() {
    let (long, short, arp) = (datagram(30), datagram(5), [0x42; 60]);
    let frames = [long.as_slice(), &short, &long, &arp, &long];
    let path = Cable {
        lose_every: Some(5),
        ..Cable::default()
    };
    let measured = sent(&frames, Pace::Recorded { percent: 100 }, path);
    let stream = &measured.streams[0];
    assert_eq!((stream.achieved.frames, stream.unsigned), (5, 2));
    assert_eq!((stream.received, stream.lost), (2, 1));
    assert_eq!((stream.modified, stream.corrupt), (0, 0));
    assert_eq!(measured.ends[1].foreign, 2);
    // Five frames at intervals of one millisecond.
    assert_eq!(stream.intended.seconds, 0.005);
    assert_eq!(measured.refusals, []);
}

#[test]
fn untouched_recording_is_sent_byte_for_byte() {
    let (long, arp) = (datagram(30), [0x42; 60]);
    let frames = [long.as_slice(), &arp];
    let recording = Recording::parse(&pcapng(&frames)).unwrap().untouched();
    assert_eq!(recording.longest(), 30 + 42 + FCS);
    let measured = offered(recording, Pace::FlatOut, Cable::default());
    let stream = &measured.streams[0];
    assert_eq!((stream.achieved.frames, stream.unsigned), (2, 2));
    assert_eq!(measured.ends[1].samples, frames);
}

#[test]
fn recording_is_sent_faster_and_unpaced() {
    let frame = datagram(40);
    let frames = [frame.as_slice(); 100];
    let of = |pace| sent(&frames, pace, Cable::default()).streams.remove(0);
    let twice = of(Pace::Recorded { percent: 200 });
    assert_eq!((twice.received, twice.intended.seconds), (100, 0.05));
    let flat_out = of(Pace::FlatOut);
    assert_eq!(flat_out.received, 100);
    assert!(flat_out.achieved.seconds < 0.001);
}

#[test]
fn recorded_pace_requires_a_recording() {
    let time = SimulatedTime::new(500);
    let (mut ends, _) = cable(&time, Cable::default(), Cable::default());
    let pace = Pace::Recorded { percent: 100 };
    let stream = Stream::new(Template::udp(64), pace, TestPortNo(0), TestPortNo(1));
    let request = Request::new(vec![stream], Length::Frames(1));
    assert!(measure(&mut ends, &request, &*time, &Interrupt::never()).is_err());
}
