//! The tracker of connections alone, without packets: new connections of one thread and of two, the
//! memory of four million connections, and their expiry under the packets of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use base::Instant;
use conntrack::{
    AddressFamily, Conntrack, CtAddress, CtCommit, CtMetadata, CtPacket, CtRequest, CtState,
    CtZone, Endpoint, HashSeed, KeyProtocol, PacketFacts, PacketTuple, TcpFacts, TransportFacts,
};
use testbed::{Clock, pin_current_thread};

use crate::sample::Sample;
use crate::select::select;
use crate::{Failure, Rounds, clock};

/// A measurement by name.
struct ConnectionRow {
    name: &'static str,
    measure: fn(&'static str, Duration) -> Result<(), Failure>,
}

#[rustfmt::skip]
const ROWS: [ConnectionRow; 4] = [
    ConnectionRow { name: "new",       measure: measure_new },
    ConnectionRow { name: "memory",    measure: measure_memory },
    ConnectionRow { name: "expiry",    measure: measure_expiry },
    ConnectionRow { name: "syn-flood", measure: measure_flood },
];

/// Connections of `memory` and `expiry`, and the bound of the table.
const HELD: u32 = 4_000_000;
const BOUND: u32 = 4_200_000;

/// Connections of `syn-flood` that are established, and the bound of the table there.
const ESTABLISHED: u32 = 1000;
const FLOOD_BOUND: u32 = 100_000;

/// Steps of one call of the control thread, and its calls in a turn.
const EXPIRY_STEPS: usize = 256;
const EXPIRY_CALLS: usize = 64;

/// A time after the expiry of all connections of UDP.
const LATER: Duration = Duration::from_secs(3600);

/// Flags of TCP (RFC 9293).
const SYN: u16 = 2;
const ACK: u16 = 16;

/// Takes `rounds` of samples.
pub(crate) fn measure(names: &[String], rounds: Rounds) -> Result<(), Failure> {
    let time = Duration::from_millis(rounds.millis.into());
    for row in select(names, &ROWS, |row| row.name)? {
        for _ in 0..rounds.runs {
            (row.measure)(row.name, time)?;
        }
    }
    Ok(())
}

fn print(row: &str, column: &str, value: f64) {
    Sample { row, column, value }.print();
}

fn tracker(bound: u32) -> Arc<Conntrack> {
    Arc::new(Conntrack::new(HashSeed([7, 11]), bound))
}

/// Returns the sender's packet of a connection: each number is another one.
fn facts(number: u64, protocol: u8, transport: TransportFacts) -> PacketFacts {
    let end = |address: u64, port: u64| Endpoint {
        address: CtAddress::from_bits(0x0a00_0000 | u128::from(address)),
        port: u16::try_from(port & 0xffff).unwrap_or_default(),
        message_type: 0,
    };
    PacketFacts {
        tuple: PacketTuple {
            src: end(number >> 14, 1024 + (number & 0x3fff)),
            dst: end(1 << 20, 53),
            protocol: KeyProtocol(protocol),
            family: AddressFamily::V4,
        },
        transport,
    }
}

const UDP: u8 = 17;
const TCP: u8 = 6;

fn udp(number: u64) -> PacketFacts {
    facts(number, UDP, TransportFacts::Other)
}

fn tcp(number: u64, flags: u16, sequence: u32, acknowledgment: u32) -> PacketFacts {
    let segment = TcpFacts {
        flags,
        sequence,
        acknowledgment,
        window: 60_000,
        ..TcpFacts::default()
    };
    facts(number, TCP, TransportFacts::Tcp(segment))
}

/// The same packet in the other direction.
fn reversed(packet: PacketFacts) -> PacketFacts {
    let tuple = packet.tuple;
    PacketFacts {
        tuple: PacketTuple {
            src: tuple.dst,
            dst: tuple.src,
            ..tuple
        },
        ..packet
    }
}

/// Tracks a packet as `ct(commit)` does; returns its state.
fn track(tracker: &Conntrack, packet: PacketFacts, now: Instant) -> CtState {
    let packet = CtPacket {
        facts: Some(packet),
        payload: &[],
        metadata: CtMetadata::default(),
    };
    let request = CtRequest {
        zone: CtZone(1),
        commit: CtCommit::Commit,
        ..CtRequest::default()
    };
    tracker.track(&packet, &request, now).metadata.state
}

/// New connections a second of so many threads, each with connections of its own.
fn new_connections(threads: u64, time: Duration) -> Result<f64, Failure> {
    let tracker = tracker(BOUND);
    let stop = AtomicBool::new(false);
    let count = AtomicU64::new(0);
    let start = clock::now();
    let seconds = thread::scope(|scope| -> Result<f64, Failure> {
        for thread in 0..threads {
            let (tracker, stop, count) = (&tracker, &stop, &count);
            scope.spawn(move || {
                let core = usize::try_from(thread).unwrap_or_default();
                // On a machine with fewer cores the threads share them.
                let _ = pin_current_thread(&[core]);
                let mut made = 0;
                while !stop.load(Ordering::Relaxed) && made < u64::from(HELD) / threads {
                    for _ in 0..64 {
                        track(tracker, udp(made * threads + thread), Instant::START);
                        made += 1;
                    }
                }
                count.fetch_add(made, Ordering::Relaxed);
                stop.store(true, Ordering::Relaxed);
            });
        }
        while start.elapsed() < time && !stop.load(Ordering::Relaxed) {
            pause(Duration::from_millis(1));
        }
        stop.store(true, Ordering::Relaxed);
        Ok(start.elapsed().as_secs_f64())
    })?;
    let made = count.load(Ordering::Relaxed);
    if u64::from(tracker.len()) != made {
        return Err(format!("{made} connections were made, {} exist", tracker.len()).into());
    }
    Ok(as_float(made) / seconds)
}

fn measure_new(row: &'static str, time: Duration) -> Result<(), Failure> {
    print(row, "one worker", new_connections(1, time)?);
    print(row, "two workers", new_connections(2, time)?);
    Ok(())
}

/// Returns the resident memory of this program in bytes.
fn resident_bytes() -> Result<u64, Failure> {
    Ok(testbed::usage(std::process::id())?.resident_bytes)
}

/// Returns a tracker with all connections: answered, so that each has all of its state.
fn filled() -> Arc<Conntrack> {
    let tracker = tracker(BOUND);
    for number in 0..u64::from(HELD) {
        let packet = udp(number);
        track(&tracker, packet, Instant::START);
        track(&tracker, reversed(packet), Instant::START);
        track(&tracker, packet, Instant::START);
    }
    tracker
}

fn measure_memory(row: &'static str, _: Duration) -> Result<(), Failure> {
    let before = resident_bytes()?;
    let tracker = filled();
    let bytes = resident_bytes()?.saturating_sub(before);
    print(row, "Comporta", as_float(bytes) / f64::from(tracker.len()));
    Ok(())
}

/// The longest time of a packet of another thread while all connections expire, and while none does.
fn measure_expiry(row: &'static str, time: Duration) -> Result<(), Failure> {
    let tracker = filled();
    let longest = |work: &dyn Fn()| {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let _ = pin_current_thread(&[1]);
                let mut longest = Duration::ZERO;
                while !done.load(Ordering::Relaxed) {
                    let start = clock::now();
                    track(&tracker, udp(u64::MAX >> 32), Instant::START + LATER);
                    longest = longest.max(start.elapsed());
                }
                longest
            });
            let _ = pin_current_thread(&[0]);
            work();
            done.store(true, Ordering::Relaxed);
            other.join().map_err(|_| "the thread ended".into())
        })
    };
    let quiet: Result<Duration, Failure> = longest(&|| pause(time));
    let expiring: Result<Duration, Failure> = longest(&|| {
        while tracker.len() > 1 {
            for _ in 0..EXPIRY_CALLS {
                tracker.expire(Instant::START + LATER, EXPIRY_STEPS);
            }
        }
    });
    print(row, "without", quiet?.as_secs_f64() * 1e6);
    print(row, "with", expiring?.as_secs_f64() * 1e6);
    Ok(())
}

/// Packets a second of established connections, without and with a SYN from a new address between
/// any two of them.
fn measure_flood(row: &'static str, time: Duration) -> Result<(), Failure> {
    let tracker = tracker(FLOOD_BOUND);
    for number in 0..u64::from(ESTABLISHED) {
        track(&tracker, tcp(number, SYN, 100, 0), Instant::START);
        let answer = tcp(number, SYN | ACK, 500, 101);
        track(&tracker, reversed(answer), Instant::START);
        track(&tracker, tcp(number, ACK, 101, 501), Instant::START);
    }
    let mut next = u64::from(ESTABLISHED);
    let mut rate = |with_flood: bool| -> Result<f64, Failure> {
        let start = clock::now();
        let mut sent = 0;
        while start.elapsed() < time {
            for number in 0..u64::from(ESTABLISHED) {
                let state = track(&tracker, tcp(number, ACK, 101, 501), Instant::START);
                if !state.intersects(CtState::ESTABLISHED) {
                    return Err(format!("connection {number} is lost: {state:?}").into());
                }
                if with_flood {
                    track(&tracker, tcp(next, SYN, 1, 0), Instant::START);
                    next += 1;
                }
            }
            sent += u64::from(ESTABLISHED);
        }
        Ok(as_float(sent) / start.elapsed().as_secs_f64())
    };
    print(row, "without", rate(false)?);
    print(row, "with", rate(true)?);
    Ok(())
}

fn pause(time: Duration) {
    let clock = Clock::start();
    clock.sleep_until(clock.now() + time);
}

#[expect(clippy::cast_precision_loss, reason = "counts are exact in 52 bits")]
const fn as_float(count: u64) -> f64 {
    count as f64
}
