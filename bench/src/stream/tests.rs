//! Tests of a stream's frames, read as from a capture file.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::num::NonZeroUsize;
use std::thread;

use capture_file::pcap::{FILE_HEADER_LEN, PACKET_HEADER_LEN};
use packet::Pool;
use ports::replay::Replay;
use ports::{Batch, Port};
use rustix::fs::{CWD, mkfifoat};
use testkit::workload::{TrafficPattern, Workload, frame};

use super::*;

/// A directory that is removed when this value is dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let own = format!("comporta-bench-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(own);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn stream(&self, anew: &[Field], cycle: Option<u64>) -> Stream {
        Stream {
            fifo: self.0.join("fifo"),
            frames: self.0.join("frames.pcap"),
            anew: anew.to_vec(),
            cycle,
            sessions: false,
            seconds: 60,
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The first `count` frames after the file header, read as ports do.
fn frames_in(directory: &Directory, bytes: &[u8], count: usize) -> Vec<Vec<u8>> {
    let file = directory.0.join("read.pcap");
    fs::write(&file, bytes).unwrap();
    let name = "p1".parse().unwrap();
    let mut port = Replay::open(&name, Some(&file), NonZeroUsize::MIN).unwrap();
    let mut queue = port.take_queues().remove(0);
    let (mut pool, mut batch) = (Pool::new(Batch::FRAMES_MAX), Batch::new());
    let mut frames = Vec::new();
    while frames.len() < count {
        queue.receive(&mut pool, &mut batch).unwrap();
        frames.extend(batch.iter().map(|frame| frame.bytes().to_vec()));
        batch.release(batch.len(), &mut pool);
    }
    frames.truncate(count);
    frames
}

/// The next `count` frames of a source, without record headers.
fn next_frames(source: &mut RandomStream, count: usize) -> Vec<Vec<u8>> {
    let (mut frames, mut bytes) = (Vec::new(), Vec::new());
    for _ in 0..count {
        bytes.clear();
        source.fill(1, &mut bytes);
        frames.push(bytes.split_off(PACKET_HEADER_LEN));
    }
    frames
}

/// The addresses and ports of a TCP or UDP frame.
fn flow(frame: &[u8]) -> ([u8; 4], [u8; 4], u16, u16) {
    let four = |at: usize| *frame[at..].first_chunk::<4>().unwrap();
    let two = |at: usize| u16::from_be_bytes(*frame[at..].first_chunk::<2>().unwrap());
    (four(26), four(30), two(34), two(36))
}

/// The frame that [`frame`] builds for the flow of `like`, with its checksums.
fn built(like: &[u8]) -> Vec<u8> {
    let (source, target, source_port, target_port) = flow(like);
    let dotted = |address: [u8; 4]| std::net::Ipv4Addr::from(address);
    let transport = if like[23] == 6 { "tcp" } else { "udp" };
    frame(&format!(
        "eth / ipv4(src={},dst={}) / {transport}(src={source_port},dst={target_port})",
        dotted(source),
        dotted(target)
    ))
}

#[test]
fn stream_delivers_new_flows_with_good_checksums() {
    const COUNT: usize = 5000;
    let directory = Directory::new("stream");
    let workload = Workload::three_rules_with_frames("a list of 3", TrafficPattern::Random, 64);
    let stream = directory.stream(&Field::ALL, None);
    pcap::write(&stream.frames, &workload.frames()).unwrap();
    mkfifoat(CWD, &stream.fifo, Mode::RUSR | Mode::WUSR).unwrap();
    let fifo = stream.fifo.clone();
    let writer = thread::spawn(move || run(&stream).map_err(|failure| failure.to_string()));
    // More than the pipe holds: the writer finds the pipe full, and then a closed reader.
    let mut bytes = vec![0; 2 * READY];
    File::open(fifo).unwrap().read_exact(&mut bytes).unwrap();
    assert_eq!(writer.join().unwrap(), Ok(()));
    let mut end = FILE_HEADER_LEN;
    for _ in 0..COUNT {
        let len = bytes[end + 8..].first_chunk().copied();
        end += PACKET_HEADER_LEN + u32::from_ne_bytes(len.unwrap()) as usize;
    }
    let frames = frames_in(&directory, &bytes[..end], COUNT);
    for frame in &frames {
        assert_eq!(*frame, built(frame));
    }
    assert!(
        frames.iter().any(|frame| frame[23] == 6) && frames.iter().any(|frame| frame[23] == 17)
    );
    let flows: BTreeSet<_> = frames.iter().map(|frame| flow(frame)).collect();
    assert_eq!(flows.len(), COUNT);
}

#[test]
fn random_fields_change_and_other_fields_do_not() {
    let stack = "eth / ipv4(src=10.0.0.1,dst=10.0.0.2) / tcp(src=7,dst=80)";
    let mut source = RandomStream::new(&[frame(stack)], &[Field::Target], None).unwrap();
    let frames = next_frames(&mut source, 1000);
    for made in &frames {
        let (source, _, source_port, target_port) = flow(made);
        assert_eq!((source, source_port, target_port), ([10, 0, 0, 1], 7, 80));
        assert_eq!(*made, built(made));
    }
    let targets: BTreeSet<_> = frames.iter().map(|frame| flow(frame).1).collect();
    assert_eq!(targets.len(), frames.len());
}

#[test]
fn frames_without_ports_keep_the_bytes_in_their_place() {
    let stack = "eth / ipv4(src=10.0.0.1) / icmp / data(40)";
    let mut source = RandomStream::new(&[frame(stack)], &Field::ALL, None).unwrap();
    for made in next_frames(&mut source, 100) {
        let (source, target, ..) = flow(&made);
        let [source, target] = [source, target].map(std::net::Ipv4Addr::from);
        let stack = format!("eth / ipv4(src={source},dst={target}) / icmp / data(40)");
        assert_eq!(made, frame(&stack));
    }
}

#[test]
fn cycle_repeats_and_other_streams_do_not() {
    let stacks = [
        "eth / ipv4 / tcp",
        "eth / ipv4 / udp",
        "eth / ipv4 / udp(dst=53)",
    ];
    let mut source = RandomStream::new(&stacks.map(frame), &Field::ALL, Some(1000)).unwrap();
    let frames = next_frames(&mut source, 3000);
    assert_eq!(frames[..1000], frames[1000..2000]);
    assert_eq!(frames[..1000], frames[2000..]);
    let flows: BTreeSet<_> = frames.iter().map(|frame| flow(frame)).collect();
    assert_eq!(flows.len(), 1000);
}

#[test]
fn session_frames_have_one_client_and_sessions_do_not_share_it() {
    let stacks = [
        "eth / ipv4(src=10.0.0.1,dst=10.0.0.2) / tcp(src=7,dst=80)",
        "eth / ipv4(src=10.0.0.2,dst=10.0.0.1) / tcp(src=80,dst=7)",
        "eth / ipv4(src=10.0.0.1,dst=10.0.0.2) / tcp(src=7,dst=80)",
    ];
    let random = [Field::Source, Field::SourcePort];
    let mut source = RandomStream::sessions(&stacks.map(frame), &random).unwrap();
    let mut clients = BTreeSet::new();
    for _ in 0..4 {
        let frames = next_frames(&mut source, 3 * 256);
        for session in 0..256 {
            let [sent, answered, last] = [0, 1, 2].map(|turn| &frames[256 * turn + session]);
            let (client, server, client_port, server_port) = flow(sent);
            assert_eq!((server, server_port), ([10, 0, 0, 2], 80));
            assert_eq!(flow(answered), (server, client, server_port, client_port));
            assert_eq!(last, sent);
            assert!([sent, answered].iter().all(|frame| **frame == built(frame)));
            clients.insert((client, client_port));
        }
    }
    assert_eq!(clients.len(), 4 * 256);
    let other = frame("eth / ipv4(src=10.0.0.3,dst=10.0.0.1) / tcp(src=80,dst=7)");
    assert!(RandomStream::sessions(&[frame(stacks[0]), other], &random).is_err());
}

#[test]
fn attack_frames_are_one_in_ten_and_distinct() {
    let three = |traffic| Workload::three_rules_with_frames("a list of 3", traffic, 4096);
    let mixed = three(TrafficPattern::Fitting).mixed_nine_to_one(three(TrafficPattern::Attack));
    let mut source = RandomStream::new(&mixed.frames(), &[Field::Target], None).unwrap();
    let frames = next_frames(&mut source, 100_000);
    let fits = |frame: &Vec<u8>| {
        let (source, _, source_port, target_port) = flow(frame);
        source == [10, 0, 0, 1] || source_port == 12345 || target_port == 80
    };
    let attacks: Vec<_> = frames.iter().filter(|frame| !fits(frame)).collect();
    assert_eq!(attacks.len(), 10_000);
    let flows: BTreeSet<_> = attacks.iter().map(|frame| flow(frame)).collect();
    assert_eq!(flows.len(), attacks.len());
    // Each frame differs from the rules in one bit of each of the three fields.
    for (source, _, source_port, target_port) in flows {
        let of_source = u32::from_be_bytes(source) ^ 0x0a00_0001;
        let bits = [of_source.count_ones(), (source_port ^ 12345).count_ones()];
        assert_eq!((bits, (target_port ^ 80).count_ones()), ([1, 1], 1));
    }
}

#[test]
fn frames_without_plain_ipv4_are_refused() {
    let refused = |frames: &[Vec<u8>]| RandomStream::new(frames, &Field::ALL, None).is_err();
    assert!(refused(&[]));
    for stack in [
        "eth / arp",
        "eth / vlan(vid=5) / ipv4 / udp",
        "eth / ipv6 / tcp",
    ] {
        assert!(refused(&[frame(stack)]), "{stack}");
    }
    let whole = frame("eth / ipv4 / tcp");
    for len in 0..whole.len().min(52) {
        assert!(refused(&[whole[..len].to_vec()]), "{len} bytes");
    }
}

#[test]
fn stream_ends_without_a_reader() {
    let directory = Directory::new("nobody");
    let stream = Stream {
        seconds: 0,
        ..directory.stream(&Field::ALL, None)
    };
    pcap::write(&stream.frames, &[frame("eth / ipv4 / tcp")]).unwrap();
    mkfifoat(CWD, &stream.fifo, Mode::RUSR | Mode::WUSR).unwrap();
    let failure = run(&stream).unwrap_err();
    assert!(failure.to_string().contains("a reader"), "{failure}");
}

#[test]
fn truncated_file_is_refused() {
    let directory = Directory::new("cut");
    let path = directory.0.join("frames.pcap");
    let frames = [frame("eth / ipv4 / tcp"), frame("eth / arp")];
    pcap::write(&path, &frames).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!(pcap::read(&path).unwrap(), frames);
    for len in [0, 23, 30, bytes.len() - 1] {
        fs::write(&path, &bytes[..len]).unwrap();
        assert!(pcap::read(&path).is_err(), "{len} bytes");
    }
}
