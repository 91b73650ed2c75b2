//! A large flow table: how fast a device takes flows from one controller, what memory
//! it keeps them in, how fast it tells them and whether others must wait meanwhile,
//! and how fast it forgets them.
//!
//! The messages are made before the clock starts, so that the controller is not what
//! is measured. Frames are not sent: what a large table does to them is another
//! experiment.

mod flows;
mod peer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use base::Instant;
use controller::{Ask, ControllerError, Link};
use record::{Conditions, FlowTableOutcome, Outcome};
use testbed::Clock;

use super::Tools;
use crate::cores::Watch;
use crate::station::Station;
use crate::trial::{Measured, TrialError};
use peer::Told;

/// The socket at which a device's bridge answers whoever asks, in its directory.
const SOCKET: &str = "br0.mgmt";

/// The first and the last flows whose rate is told apart; fewer if there are few in all.
const PART: u32 = 10_000;

/// How often the echo is asked for while the flows are told.
const ECHO_PAUSE: Duration = Duration::from_millis(1);

/// How long after the deletion a device is given to return its memory.
const RETURN: Duration = Duration::from_secs(2);

pub(super) fn measure(station: &Station, tools: &Tools<'_>) -> Result<Measured, TrialError> {
    // In a thread of its own, so that no other test is kept to these cores.
    thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            testbed::pin_current_thread(&tools.cores.tester)?;
            control(station, tools)
        });
        measuring
            .join()
            .expect("a thread of the lab does not panic")
    })
}

fn control(station: &Station, tools: &Tools<'_>) -> Result<Measured, TrialError> {
    let socket = station.directory.join(SOCKET);
    let mut live = Live {
        peer: peer::call(&socket, tools.clock)?,
        socket,
        station,
        tools,
    };
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let filled = fill(tools.parameters.flow_table.flows, &mut live)?;
    let conditions = watch.end(&station.bench)?;
    Ok(filled.measured(conditions))
}

/// A device with a flow table, and a controller of it.
trait Table {
    /// The time.
    fn now(&self) -> Instant;
    /// Waits.
    fn wait(&mut self, time: Duration);
    /// Has it do these messages, and waits for its barrier.
    fn add(&mut self, messages: &[u8]) -> Result<(), TrialError>;
    /// Has it tell all its flows.
    fn flows(&mut self) -> Result<Told, TrialError>;
    /// The same, while another asks for echoes.
    fn flows_amid_echoes(&mut self) -> Result<Telling, TrialError>;
    /// Has it forget them all.
    fn clear(&mut self) -> Result<(), TrialError>;
    /// Bytes that its process holds.
    fn resident_bytes(&self) -> Result<u64, TrialError>;
}

/// What came of it, and how many flows there were before and in the end.
struct Filled {
    outcome: FlowTableOutcome,
    before: u64,
    left: u64,
}

impl Filled {
    fn measured(self, conditions: Conditions) -> Measured {
        let (flows, told) = (self.outcome.flows, self.outcome.told);
        let mut measured = Measured::new(Outcome::FlowTable(self.outcome), conditions);
        judge(flows, (self.before, told, self.left), &mut measured);
        measured
    }
}

/// Fills the table, has it told, and empties it.
fn fill(flows: u32, table: &mut impl Table) -> Result<Filled, TrialError> {
    let before = table.flows()?.flows;
    let empty_bytes = table.resident_bytes()?;
    let (part, [first_seconds, middle_seconds, last_seconds]) = add(flows, table)?;
    let full_bytes = table.resident_bytes()?;
    let told = table.flows_amid_echoes()?;
    let delete_seconds = seconds(table, Table::clear)?;
    let deleted = table.now();
    let left = table.flows()?.flows;
    let over = table.now().since(deleted);
    table.wait(RETURN.saturating_sub(over));
    let left_bytes = table.resident_bytes()?;
    let outcome = FlowTableOutcome {
        flows,
        part,
        add_seconds: first_seconds + middle_seconds + last_seconds,
        first_seconds,
        last_seconds,
        empty_bytes,
        full_bytes,
        left_bytes,
        told: told.flows,
        told_bytes: told.bytes,
        tell_seconds: told.seconds,
        echoes: told.echoes,
        echo_ns_max: told.echo_ns_max,
        delete_seconds,
    };
    Ok(Filled {
        outcome,
        before,
        left,
    })
}

/// Whether the device says that it has what it was told.
fn judge(flows: u32, (before, told, left): (u64, u64, u64), measured: &mut Measured) {
    let wanted = before + u64::from(flows);
    if told != wanted {
        measured.void(format!(
            "{wanted} flows should be there, and {told} were told"
        ));
    }
    if left != 0 {
        measured.void(format!("{left} flows were left of all that were deleted"));
    }
}

/// Adds all flows. Answers how many are the first and the last, and the seconds that
/// these took, those between, and the last.
fn add(flows: u32, table: &mut impl Table) -> Result<(u32, [f64; 3]), TrialError> {
    let part = PART.min(flows / 2).max(1);
    let first = flows::messages(0..part);
    let middle = flows::messages(part..flows - part);
    let last = flows::messages(flows - part..flows);
    let mut took = [0.0; 3];
    for (messages, took) in [first, middle, last].iter().zip(&mut took) {
        *took = seconds(table, |table| table.add(messages))?;
    }
    Ok((part, took))
}

fn seconds<T: Table>(
    table: &mut T,
    work: impl FnOnce(&mut T) -> Result<(), TrialError>,
) -> Result<f64, TrialError> {
    let began = table.now();
    work(table)?;
    Ok(table.now().since(began).as_secs_f64())
}

/// A real one.
struct Live<'a> {
    peer: Link,
    socket: PathBuf,
    station: &'a Station,
    tools: &'a Tools<'a>,
}

impl Table for Live<'_> {
    fn now(&self) -> Instant {
        self.tools.clock.now()
    }

    fn wait(&mut self, time: Duration) {
        let clock = self.tools.clock;
        clock.sleep_until(clock.now() + time);
    }

    fn add(&mut self, messages: &[u8]) -> Result<(), TrialError> {
        if self.tools.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        Ok(self.peer.request_encoded(messages)?)
    }

    fn flows(&mut self) -> Result<Told, TrialError> {
        Ok(peer::flows(&mut self.peer)?)
    }

    fn flows_amid_echoes(&mut self) -> Result<Telling, TrialError> {
        tell(&mut self.peer, &self.socket, self.tools.clock)
    }

    fn clear(&mut self) -> Result<(), TrialError> {
        Ok(self.peer.clear()?)
    }

    fn resident_bytes(&self) -> Result<u64, TrialError> {
        let usage = self.station.bench.device().usage()?;
        Ok(usage.map_or(0, |usage| usage.resident_bytes))
    }
}

/// What came of having all flows told.
struct Telling {
    flows: u64,
    bytes: u64,
    seconds: f64,
    echoes: u64,
    echo_ns_max: u64,
}

/// Has all flows told, while another connection asks for echoes.
fn tell(peer: &mut Link, socket: &Path, clock: &Clock) -> Result<Telling, TrialError> {
    let mut other = peer::call(socket, clock)?;
    other.echo(Vec::new())?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let echoes = scope.spawn(|| echo_until(&mut other, &done, clock));
        let began = clock.now();
        let flows = peer::flows(peer);
        let seconds = clock.now().since(began).as_secs_f64();
        done.store(true, Ordering::Relaxed);
        let echoes = echoes.join().expect("a thread of the lab does not panic");
        let (flows, (echoes, echo_ns_max)) = (flows?, echoes?);
        Ok(Telling {
            flows: flows.flows,
            bytes: flows.bytes,
            seconds,
            echoes,
            echo_ns_max,
        })
    })
}

/// Asks for one echo after the other; answers how many came, and the longest that one
/// took, in nanoseconds.
fn echo_until(
    peer: &mut Link,
    done: &AtomicBool,
    clock: &Clock,
) -> Result<(u64, u64), ControllerError> {
    let (mut count, mut worst) = (0, 0);
    while !done.load(Ordering::Relaxed) {
        let took = peer.echo(Vec::new())?;
        count += 1;
        worst = worst.max(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        clock.sleep_until(clock.now() + ECHO_PAUSE);
    }
    Ok((count, worst))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flaws(counts: (u64, u64, u64)) -> Vec<String> {
        let outcome = record::fixture::flow_table_trial("ovs", 1).outcome.unwrap();
        let mut measured = Measured::new(outcome, Conditions::default());
        judge(100, counts, &mut measured);
        measured.flaws.into_iter().map(|flaw| flaw.reason).collect()
    }

    #[test]
    fn flows_that_are_not_told_or_not_deleted_void() {
        assert!(flaws((2, 102, 0)).is_empty());
        assert_eq!(
            flaws((2, 101, 3)),
            [
                "102 flows should be there, and 101 were told",
                "3 flows were left of all that were deleted"
            ]
        );
    }

    /// A device in memory, of which all is known.
    struct Simulated {
        now: Instant,
        there: u64,
        /// What a flow takes to be added, with each that is there already, and what all take
        /// to be told and deleted.
        add: Duration,
        more: Duration,
        tell: Duration,
        delete: Duration,
        /// Bytes of a flow, and of those that are kept when it is gone.
        bytes: u64,
        kept: u64,
        peak: u64,
        /// Flows that it does not take, and that it does not delete.
        refused: u64,
        stays: u64,
    }

    impl Simulated {
        fn new() -> Self {
            Self {
                now: Instant::from_secs(1),
                there: 2,
                add: Duration::from_micros(3),
                more: Duration::ZERO,
                tell: Duration::from_millis(90),
                delete: Duration::from_millis(40),
                bytes: 350,
                kept: 50,
                peak: 0,
                refused: 0,
                stays: 0,
            }
        }

        fn filled(&mut self) -> (FlowTableOutcome, Vec<String>) {
            let measured = fill(30_000, self).unwrap().measured(Conditions::default());
            let flaws = measured.flaws.into_iter().map(|flaw| flaw.reason);
            match measured.outcome {
                Outcome::FlowTable(outcome) => (outcome, flaws.collect()),
                other => panic!("{other:?}"),
            }
        }
    }

    impl Table for Simulated {
        fn now(&self) -> Instant {
            self.now
        }

        fn wait(&mut self, time: Duration) {
            self.now += time;
        }

        fn add(&mut self, messages: &[u8]) -> Result<(), TrialError> {
            let length = flows::messages(0..1).len();
            for _ in 0..messages.len() / length {
                self.now += self.add + self.more * u32::try_from(self.there).unwrap();
                self.there += 1;
            }
            self.there -= std::mem::take(&mut self.refused);
            self.peak = self.there;
            Ok(())
        }

        fn flows(&mut self) -> Result<Told, TrialError> {
            Ok(Told {
                flows: self.there,
                bytes: 12 + 96 * self.there,
            })
        }

        fn flows_amid_echoes(&mut self) -> Result<Telling, TrialError> {
            let Told { flows, bytes } = self.flows()?;
            self.now += self.tell;
            Ok(Telling {
                flows,
                bytes,
                seconds: self.tell.as_secs_f64(),
                echoes: 90,
                echo_ns_max: 77_000,
            })
        }

        fn clear(&mut self) -> Result<(), TrialError> {
            self.now += self.delete;
            self.there = self.stays;
            Ok(())
        }

        fn resident_bytes(&self) -> Result<u64, TrialError> {
            Ok(1_000_000
                + self.bytes * self.there
                + self.kept * (self.peak - self.there.min(self.peak)))
        }
    }

    #[test]
    fn rates_memory_and_flows_of_a_table_are_those_of_the_device() {
        let (outcome, flaws) = Simulated::new().filled();
        assert_eq!(flaws, [""; 0]);
        let near = |value: f64, wanted: f64| assert!((value - wanted).abs() < 1e-9, "{value}");
        assert_eq!((outcome.flows, outcome.part), (30_000, 10_000));
        near(outcome.add_seconds, 0.09);
        near(outcome.first_seconds, 0.03);
        near(outcome.last_seconds, 0.03);
        near(outcome.tell_seconds, 0.09);
        near(outcome.delete_seconds, 0.04);
        assert_eq!(outcome.full_bytes - outcome.empty_bytes, 30_000 * 350);
        assert_eq!(outcome.left_bytes, 1_000_000 + 50 * 30_002);
        assert_eq!(
            (outcome.told, outcome.told_bytes),
            (30_002, 12 + 96 * 30_002)
        );
        assert_eq!((outcome.echoes, outcome.echo_ns_max), (90, 77_000));
    }

    #[test]
    fn a_table_that_slows_down_as_it_fills_shows_it_in_the_last() {
        let mut device = Simulated {
            more: Duration::from_nanos(1),
            ..Simulated::new()
        };
        let (outcome, _) = device.filled();
        // 3 us and a nanosecond for each that is there: 5,000 of the first, 25,000 of the last.
        assert!((outcome.first_seconds - 0.080).abs() < 1e-4, "{outcome:?}");
        assert!((outcome.last_seconds - 0.280).abs() < 1e-4, "{outcome:?}");
    }

    #[test]
    fn a_device_that_lies_of_its_flows_is_found() {
        let mut device = Simulated {
            refused: 3,
            stays: 1,
            ..Simulated::new()
        };
        let (_, flaws) = device.filled();
        assert_eq!(
            flaws,
            [
                "30002 flows should be there, and 29999 were told",
                "1 flows were left of all that were deleted"
            ]
        );
    }
}
