//! A large flow table: rates of additions, memory, listing and deletion.
//!
//! The messages are encoded before the measurement, so that the controller does not limit the rate.
//! No frames are sent.

mod flows;
mod peer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use base::Instant;
use controller::{ControllerError, DeviceRequests, Link};
use record::Conditions;
use testbed::Clock;

use crate::catalogue::prelude::*;
use crate::cores::run_on;
use crate::setup::{ConditionMonitor, TestSetup};
use crate::tools::Tools;
use peer::Listing;

/// The experiment "flow-table".
pub(crate) const FLOW_TABLE: Experiment = Experiment {
    description: Description {
        name: "flow-table",
        title: "Flow table",
        family: Family::Oflops,
        question: "How fast are flows added to a large flow table, listed and deleted, and how much memory does a flow take?",
        source: "after OFLOPS and its successors; memory and listing have no published counterpart",
        steps: &[
            "A controller connects by OpenFlow 1.0 and adds flows that match all twelve fields exactly, encoded beforehand and sent as fast as the connection accepts them; the time ends with the barrier reply.",
            "The rates of the first and of the last 10,000 flows are separate figures, because a device may slow down as its table fills.",
            "The resident memory of the device's processes is read before the additions, after them, and two seconds after the deletion of all flows.",
            "All flows are requested by flow statistics, while a second connection sends echo requests one after another; the greatest echo time shows for how long the listing delays other controllers.",
            "A trial is void if the device lists another number of flows than were added, or still has flows after the deletion.",
        ],
        parameters: &[Parameter::constant(
            "flows",
            "flows that are added",
            Values::numbers(&[20_000], &[100_000], &[100_000], [2, 1_000_000]),
        )],
        figures: FIGURES,
        views: &[
            View::Table {
                title: "Flow table",
                figures: &[
                    "add_s",
                    "add_first_s",
                    "add_last_s",
                    "flow_bytes",
                    "resident_flow_bytes",
                    "left_bytes",
                    "tell_ms",
                    "echo_max_ms",
                    "delete_ms",
                ],
            },
            View::Runs {
                title: "Flows added per second, run by run",
                figure: "add_s",
                across: "flows",
            },
        ],
        headlines: &[Headline {
            title: "Flows added",
            figure: HeadlineFigure::Figure("add_s"),
            at: &[],
        }],
        ..Description::EMPTY
    },
    applies_to: |device, _| device.speaks_openflow(),
    seconds: |point| 3.0 + point.number("flows") as f64 * 30e-6,
    measure,
    ..Experiment::BASE
};

const FIGURES: &[Figure] = &[
    Figure::new("add_s", "Flows added", "/s", Better::Higher).shown_in("1000/s", 1_000.0),
    Figure::new("add_first_s", "The first 10,000", "/s", Better::Higher)
        .shown_in("1000/s", 1_000.0),
    Figure::new("add_last_s", "The last 10,000", "/s", Better::Higher).shown_in("1000/s", 1_000.0),
    Figure::new("flow_bytes", "Memory per flow", "bytes", Better::Lower),
    Figure::new(
        "resident_flow_bytes",
        "Memory per flow, above the empty process",
        "bytes",
        Better::Lower,
    ),
    Figure::new("left_bytes", "Memory not returned", "bytes", Better::Lower).shown_in("MB", 1e6),
    Figure::new("tell_ms", "Time to list all", "ms", Better::Lower).shown_in("s", 1_000.0),
    Figure::new("echo_max_ms", "Longest echo meanwhile", "ms", Better::Lower),
    Figure::new("delete_ms", "Time to delete all", "ms", Better::Lower).shown_in("s", 1_000.0),
    Figure::new("empty_bytes", "Memory before", "bytes", Better::Neither),
    Figure::new(
        "full_bytes",
        "Memory with all flows",
        "bytes",
        Better::Neither,
    ),
    Figure::new("listed", "Flows listed", "", Better::Neither),
    Figure::new(
        "listed_bytes",
        "Size of the listing",
        "bytes",
        Better::Neither,
    ),
    Figure::new("echoes", "Echoes meanwhile", "", Better::Neither),
];

/// Management socket of a device's bridge, in the device's directory.
const SOCKET: &str = "br0.mgmt";
/// Number of the first and of the last flows whose rates are separate figures; fewer in a small
/// table.
const PART: u32 = 10_000;
/// Pause between two echo requests.
const ECHO_PAUSE: Duration = Duration::from_millis(1);
/// Time in which a device returns memory to the kernel after the deletion.
const MEMORY_RETURN: Duration = Duration::from_secs(2);

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let mut least = setup.least_empty_bytes;
    let measured = run_on(&tools.cores.tester, || {
        let socket = setup.directory.join(SOCKET);
        let mut table = LiveTable {
            link: peer::connect(&socket, tools.clock)?,
            socket,
            setup,
            tools,
        };
        let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
        let test = TableTest::run(point.small("flows"), &mut table)?;
        let conditions = watch.end(&setup.bench)?;
        let empty =
            *least.insert(least.map_or(test.empty_bytes, |least| least.min(test.empty_bytes)));
        Ok::<_, TrialError>(test.measured(point, empty, conditions))
    })?;
    setup.least_empty_bytes = least;
    Ok(measured)
}

/// Flow table of a device.
trait TableUnderTest {
    /// Returns the current time.
    fn now(&self) -> Instant;
    /// Waits for this time.
    fn wait(&mut self, time: Duration);
    /// Sends encoded messages and waits for the reply to a barrier after them.
    fn send(&mut self, messages: &[u8]) -> Result<(), TrialError>;
    /// Lists all flows.
    fn list(&mut self) -> Result<Listing, TrialError>;
    /// Lists all flows while a second connection sends echo requests.
    fn list_with_echoes(&mut self) -> Result<TimedListing, TrialError>;
    /// Deletes all flows.
    fn clear(&mut self) -> Result<(), TrialError>;
    /// Returns the resident memory of the device's processes.
    fn resident_bytes(&self) -> Result<u64, TrialError>;
}

/// A listing of all flows, with the echoes of a second connection meanwhile.
#[derive(Clone, Copy, Debug)]
struct TimedListing {
    listing: Listing,
    time: Duration,
    echoes: u64,
    echo_max: Duration,
}

/// Results of one test.
#[derive(Clone, Copy, Debug)]
struct TableTest {
    flows: u32,
    /// Number of flows in the first and in the last part.
    part: u32,
    /// Times to add the first part, the middle part and the last part.
    additions: [Duration; 3],
    empty_bytes: u64,
    full_bytes: u64,
    left_bytes: u64,
    listing: TimedListing,
    deletion: Duration,
    /// Number of flows before the additions, and after the deletion.
    before: u64,
    left: u64,
}

impl TableTest {
    /// Fills the table, lists it, and empties it.
    fn run(flows: u32, table: &mut impl TableUnderTest) -> Result<Self, TrialError> {
        let before = table.list()?.flows;
        let empty_bytes = table.resident_bytes()?;
        let part = PART.min(flows / 2).max(1);
        let messages = [0..part, part..flows - part, flows - part..flows].map(flows::messages);
        let mut additions = [Duration::ZERO; 3];
        for (messages, time) in messages.iter().zip(&mut additions) {
            *time = timed(table, |table| table.send(messages))?;
        }
        let full_bytes = table.resident_bytes()?;
        let listing = table.list_with_echoes()?;
        let deletion = timed(table, TableUnderTest::clear)?;
        let deleted = table.now();
        let left = table.list()?.flows;
        let passed = table.now().since(deleted);
        table.wait(MEMORY_RETURN.saturating_sub(passed));
        Ok(Self {
            flows,
            part,
            additions,
            empty_bytes,
            full_bytes,
            left_bytes: table.resident_bytes()?,
            listing,
            deletion,
            before,
            left,
        })
    }

    /// Returns the figures, and voids the trial if the device lists other flows than it should.
    /// `empty_bytes` is the least resident memory of the empty process so far: a process that keeps
    /// freed memory fills it again in later trials, and does not grow.
    fn measured(self, point: &Point, empty_bytes: u64, conditions: Conditions) -> TrialResult {
        let mut measured = TrialResult::new(self.reading(point, empty_bytes), conditions);
        let (listed, expected) = (
            self.listing.listing.flows,
            self.before + u64::from(self.flows),
        );
        if listed != expected {
            measured.void(format!(
                "the device listed {listed} flows instead of {expected}"
            ));
        }
        if self.left != 0 {
            let left = self.left;
            measured.void(format!(
                "the device still had {left} flows after the deletion of all"
            ));
        }
        measured
    }

    fn reading(self, point: &Point, empty_bytes: u64) -> Reading {
        let Self {
            flows,
            part,
            additions,
            listing,
            ..
        } = self;
        let rate = |flows: u32, time: Duration| f64::from(flows) / time.as_secs_f64();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let grown = |bytes: u64, from: u64| bytes.saturating_sub(from) as f64;
        let per_flow = |bytes: f64| bytes / f64::from(flows);
        let mut reading = Reading::at(point);
        for (name, value) in [
            ("add_s", rate(flows, additions.iter().sum())),
            ("add_first_s", rate(part, additions[0])),
            ("add_last_s", rate(part, additions[2])),
            (
                "flow_bytes",
                per_flow(grown(self.full_bytes, self.empty_bytes)),
            ),
            (
                "resident_flow_bytes",
                per_flow(grown(self.full_bytes, empty_bytes)),
            ),
            ("left_bytes", grown(self.left_bytes, self.empty_bytes)),
            ("tell_ms", ms(listing.time)),
            ("echo_max_ms", ms(listing.echo_max)),
            ("delete_ms", ms(self.deletion)),
            ("empty_bytes", self.empty_bytes as f64),
            ("full_bytes", self.full_bytes as f64),
            ("listed", listing.listing.flows as f64),
            ("listed_bytes", listing.listing.bytes as f64),
            ("echoes", listing.echoes as f64),
        ] {
            reading.put(name, value);
        }
        reading
    }
}

fn timed<T: TableUnderTest>(
    table: &mut T,
    work: impl FnOnce(&mut T) -> Result<(), TrialError>,
) -> Result<Duration, TrialError> {
    let began = table.now();
    work(table)?;
    Ok(table.now().since(began))
}

/// Flow table of the device under test.
struct LiveTable<'a> {
    link: Link,
    socket: PathBuf,
    setup: &'a TestSetup,
    tools: &'a Tools<'a>,
}

impl TableUnderTest for LiveTable<'_> {
    fn now(&self) -> Instant {
        self.tools.clock.now()
    }

    fn wait(&mut self, time: Duration) {
        let clock = self.tools.clock;
        clock.sleep_until(clock.now() + time);
    }

    fn send(&mut self, messages: &[u8]) -> Result<(), TrialError> {
        if self.tools.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        Ok(self.link.request_encoded(messages)?)
    }

    fn list(&mut self) -> Result<Listing, TrialError> {
        Ok(peer::list(&mut self.link)?)
    }

    fn list_with_echoes(&mut self) -> Result<TimedListing, TrialError> {
        list_with_echoes(&mut self.link, &self.socket, self.tools.clock)
    }

    fn clear(&mut self) -> Result<(), TrialError> {
        Ok(self.link.clear()?)
    }

    fn resident_bytes(&self) -> Result<u64, TrialError> {
        let usage = self.setup.bench.device().usage()?;
        Ok(usage.map_or(0, |usage| usage.resident_bytes))
    }
}

fn list_with_echoes(
    link: &mut Link,
    socket: &Path,
    clock: &Clock,
) -> Result<TimedListing, TrialError> {
    let mut other = peer::connect(socket, clock)?;
    other.echo(Vec::new())?;
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let echoing = scope.spawn(|| echo_until(&mut other, &is_done, clock));
        let began = clock.now();
        let listing = peer::list(link);
        let time = clock.now().since(began);
        is_done.store(true, Ordering::Relaxed);
        let echoes = echoing.join().expect("a thread of the lab does not panic");
        let (listing, (echoes, echo_max)) = (listing?, echoes?);
        Ok(TimedListing {
            listing,
            time,
            echoes,
            echo_max,
        })
    })
}

/// Sends one echo request after another. Returns the number of replies and the longest echo time.
fn echo_until(
    link: &mut Link,
    is_done: &AtomicBool,
    clock: &Clock,
) -> Result<(u64, Duration), ControllerError> {
    let (mut count, mut greatest) = (0, Duration::ZERO);
    while !is_done.load(Ordering::Relaxed) {
        greatest = greatest.max(link.echo(Vec::new())?);
        count += 1;
        clock.sleep_until(clock.now() + ECHO_PAUSE);
    }
    Ok((count, greatest))
}

#[cfg(test)]
mod tests;
