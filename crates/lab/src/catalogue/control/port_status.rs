//! Link changes of a port: delay, number and content of the port-status messages.

use std::time::Duration;

use base::{Instant, PortNo, Xid};
use flow::{PortReason, PortState, PortStatus, SwitchConfig};
use openflow::{Message, Version};
use testbed::{Bench, DeviceKind, Namespace};

use super::figures::{bad, lack_all, ms, plain, time};
use super::flows::delete_all;
use super::rig::{ControlRig, LimitedInbox, LiveSwitch, ServerFrame, SwitchMessage, send_batch};
use super::{TrialReport, VERSION, on_rig, version};
use crate::catalogue::prelude::*;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment "port-status".
pub(crate) const PORT_STATUS: Experiment = Experiment {
    description: Description {
        name: "port-status",
        title: "Port-status delay and correctness",
        family: Family::Oflops,
        question: "How soon does the controller receive a port-status message after a link change, is it sent once, and is it correct?",
        source: "OFLOPS, port state; OpenFlow 1.0.1, 5.4.3, and OpenFlow 1.3.5, 7.4.3",
        steps: &[
            "The far end of the link of port 2 is set down, and up again after the port-status message, as often as given; a message that is three seconds late counts as missing.",
            "The kernel detects a link change after some time, sometimes a second: the time at which the device's end shows it is a separate figure, and so is the delay of the message after it.",
            "After each message there is a pause for further ones, and each is compared with the actual state: port, reason, and carrier.",
            "Finally the link changes in quick succession: the figures are the share of these changes that are reported, and whether the last message is correct.",
        ],
        parameters: &[
            Parameter::constant(
                "times",
                "number of link changes",
                Values::numbers(&[1], &[10], &[20], [1, 1_000]),
            ),
            Parameter::constant(
                "watch-millis",
                "pause after each message in milliseconds",
                Values::numbers(&[50], &[500], &[1_000], [1, 60_000]),
            ),
            Parameter::constant(
                "burst",
                "quick changes",
                Values::numbers(&[0], &[200], &[200], [0, 10_000]),
            ),
            Parameter::constant(
                "burst-rate",
                "quick changes per second",
                Values::numbers(&[100], &[100], &[100], [1, 1_000]),
            ),
            VERSION,
        ],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "Delay of the message of a link failure",
                figure: "down_ms",
                across: "version",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "down_ms",
                    "down_seen_ms",
                    "up_ms",
                    "up_seen_ms",
                    "lag_ms",
                    "never",
                    "again",
                    "wrong",
                    "burst_told_percent",
                    "burst_wrong",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: |device: DeviceKind, _| device.speaks_openflow() && !device.makes_taps(),
    seconds: |point| {
        let each = 0.6 + 2.0 * point.number("watch-millis") as f64 / 1e3;
        let burst = point.number("burst") as f64 / point.number("burst-rate") as f64;
        0.8 + point.number("times") as f64 * each + burst
    },
    measure: |point, setup, tools| on_cable(point, setup, tools),
    ..Experiment::BASE
};

const FIGURES: &[Figure] = &[
    time("down_ms", "Down: message after", "ms"),
    plain("down_seen_ms", "Down: kernel after", "ms"),
    time("up_ms", "Up: message after", "ms"),
    plain("up_seen_ms", "Up: kernel after", "ms"),
    time("lag_ms", "Message after the kernel, maximum", "ms"),
    bad("never", "Changes without a message"),
    bad("again", "Surplus messages"),
    bad("wrong", "Wrong messages"),
    plain("burst_told_percent", "Reported quick changes", "%"),
    bad("burst_wrong", "Wrong finally"),
];

/// The port whose link changes.
const PORT: PortNo = PortNo(2);

/// Time limit for a port-status message: the kernel examines links once a second.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The end of a burst: no change and no message for this time.
const QUIET: Duration = Duration::from_millis(1_100);

/// A switch under control with a link on port 2 that the experiment can take down.
trait LinkRig: ControlRig {
    /// Takes the link up or down.
    fn set_link(&mut self, up: bool) -> Result<(), TrialError>;
    /// Returns the carrier state of the device's end, or none if it is not visible.
    fn has_carrier(&mut self) -> Result<Option<bool>, TrialError>;
}

/// The link of a device under test.
struct LiveLink<'r, 'a> {
    live: &'r mut LiveSwitch<'a>,
    bench: &'r Bench,
    /// Namespace and interface of the device's end, if it has one.
    device_end: Option<(&'r Namespace, &'static str)>,
}

impl LinkRig for LiveLink<'_, '_> {
    fn set_link(&mut self, up: bool) -> Result<(), TrialError> {
        let server = self.bench.server();
        match up {
            true => server.namespace.set_up(server.interface)?,
            false => server.namespace.set_down(server.interface)?,
        }
        Ok(())
    }

    fn has_carrier(&mut self) -> Result<Option<bool>, TrialError> {
        match self.device_end {
            Some((namespace, port)) => Ok(Some(namespace.carries(port)?)),
            None => Ok(None),
        }
    }
}

impl ControlRig for LiveLink<'_, '_> {
    fn version(&self) -> Version {
        self.live.version()
    }

    fn now(&self) -> Instant {
        self.live.now()
    }

    fn queue(&mut self, message: &Message) -> Result<Xid, TrialError> {
        self.live.queue(message)
    }

    fn flush(&mut self) -> Result<(), TrialError> {
        self.live.flush()
    }

    fn has_room(&self) -> bool {
        self.live.has_room()
    }

    fn written_at(&self, xid: Xid) -> Option<Instant> {
        self.live.written_at(xid)
    }

    fn receive(&mut self) -> Result<Option<SwitchMessage>, TrialError> {
        self.live.receive()
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, TrialError> {
        self.live.send(frame)
    }

    fn receive_frame(&mut self) -> Result<Option<ServerFrame>, TrialError> {
        self.live.receive_frame()
    }
}

fn on_cable(
    point: &Point,
    setup: &TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let bench = &setup.bench;
    let has_device_ends = !bench.counters_of_ports()?.is_empty();
    let measured = on_rig(version(point), setup, tools, |live| {
        let device_end = has_device_ends.then(|| (bench.device_namespace(), "p2"));
        let mut link = LiveLink {
            live,
            bench,
            device_end,
        };
        let report = measure(point, &mut link);
        link.set_link(true)?;
        report
    });
    // The kernel deletes the neighbours of an interface that is set down, but later tests need
    // them.
    let (client, server) = (bench.client(), bench.server());
    let namespace = &server.namespace;
    namespace.add_neighbour(server.interface, client.address, client.mac)?;
    tools
        .clock
        .wait_for("the carrier of the link", TIMEOUT, || {
            Ok(namespace.carries(server.interface)?.then_some(()))
        })?;
    measured
}

/// Times of link changes in one direction.
#[derive(Default)]
struct LinkTimes {
    message_ms: Vec<f64>,
    kernel_ms: Vec<f64>,
}

/// Comparison of the link changes with the port-status messages.
#[derive(Default)]
struct LinkWatch {
    never: u64,
    again: u64,
    wrong: u64,
    lag_ms: Option<f64>,
}

impl LinkWatch {
    /// Returns the next port-status message of the port, with its arrival.
    fn receive(rig: &mut impl LinkRig) -> Result<Option<(Instant, PortStatus)>, TrialError> {
        let mut inbox = LimitedInbox::default();
        while let Some(message) = inbox.receive(rig)? {
            match message.body {
                Some(Message::PortStatus(status)) if status.port.number == PORT => {
                    return Ok(Some((message.at, status)));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Changes the link once and records the messages that follow.
    fn change(
        &mut self,
        rig: &mut impl LinkRig,
        up: bool,
        watch: Duration,
        times: &mut LinkTimes,
    ) -> Result<(), TrialError> {
        let began = rig.now();
        rig.set_link(up)?;
        let (mut kernel_at, mut reported) = (None, None);
        loop {
            if kernel_at.is_none() && rig.has_carrier()? == Some(up) {
                kernel_at = Some(rig.now());
            }
            if let Some((at, status)) = Self::receive(rig)? {
                self.wrong += u64::from(!is_correct(&status, up));
                match reported {
                    None => reported = Some(at),
                    Some(_) => self.again += 1,
                }
            }
            let now = rig.now();
            match reported {
                Some(at) if now.since(at) >= watch => break,
                None if now.since(began) >= TIMEOUT => break,
                _ => {}
            }
        }
        times
            .kernel_ms
            .extend(kernel_at.map(|at| ms(at.since(began))));
        match reported {
            None => self.never += 1,
            Some(at) => {
                times.message_ms.push(ms(at.since(began)));
                // A message that arrives before the kernel shows the change has no lag.
                let lag = kernel_at.map(|kernel_at| ms(at.since(kernel_at)));
                let longer = |lag: f64| self.lag_ms.is_none_or(|longest| lag > longest);
                if lag.is_some_and(longer) {
                    self.lag_ms = lag;
                }
            }
        }
        Ok(())
    }
}

/// Returns true if the message reports the actual state.
fn is_correct(status: &PortStatus, up: bool) -> bool {
    let is_down = status.port.state.contains(PortState::LINK_DOWN);
    status.reason == PortReason::Modify && is_down != up
}

fn measure(point: &Point, rig: &mut impl LinkRig) -> Result<TrialReport, TrialError> {
    let mut report = TrialReport::at(point);
    // Some devices send port-status messages only to a controller that accepts packet-ins.
    let config = SwitchConfig {
        miss_send_len: 128,
        ..SwitchConfig::default()
    };
    let prepared = send_batch(rig, vec![delete_all(), Message::SetConfig(config)])?;
    if let Some(reason) = prepared.first_refusal() {
        lack_all(&mut report.reading, FIGURES, &reason);
        return Ok(report);
    }
    let watch = Duration::from_millis(point.number("watch-millis"));
    let mut all = LinkWatch::default();
    let (mut down, mut up) = (LinkTimes::default(), LinkTimes::default());
    for _ in 0..point.number("times") {
        all.change(rig, false, watch, &mut down)?;
        all.change(rig, true, watch, &mut up)?;
    }
    let reading = &mut report.reading;
    for (name, times) in [
        ("down_ms", &down.message_ms),
        ("down_seen_ms", &down.kernel_ms),
        ("up_ms", &up.message_ms),
        ("up_seen_ms", &up.kernel_ms),
    ] {
        let count = times.len() as f64;
        match times.is_empty() {
            false => reading.put(name, times.iter().sum::<f64>() / count),
            true if name.contains("seen") => {
                reading.lack(name, "the device's end of the link is not visible");
            }
            true => reading.lack(name, "no port-status message arrived"),
        }
    }
    match all.lag_ms {
        Some(lag) => reading.put("lag_ms", lag),
        None => reading.lack("lag_ms", "no change could be compared"),
    }
    reading.put("never", all.never as f64);
    reading.put("again", all.again as f64);
    reading.put("wrong", all.wrong as f64);
    burst(point, rig, &mut report)?;
    Ok(report)
}

/// Changes the link in quick succession. The last change leaves it up.
fn burst(
    point: &Point,
    rig: &mut impl LinkRig,
    report: &mut TrialReport,
) -> Result<(), TrialError> {
    // An even number, so that the link is up at the end.
    let count = point.number("burst") / 2 * 2;
    let reading = &mut report.reading;
    if count == 0 {
        for name in ["burst_told_percent", "burst_wrong"] {
            reading.lack(name, "there were no quick changes");
        }
        return Ok(());
    }
    let gap = Duration::from_nanos(1_000_000_000 / point.number("burst-rate"));
    let began = rig.now();
    let (mut done, mut reported, mut last) = (0_u32, 0_u64, None);
    let mut last_event = began;
    while rig.now().since(last_event) < QUIET && rig.now().since(began) < gap * 10_000 + TIMEOUT {
        if u64::from(done) < count && rig.now() >= began + gap * done {
            rig.set_link(done % 2 == 1)?;
            done += 1;
            last_event = rig.now();
        }
        if let Some((_, status)) = LinkWatch::receive(rig)? {
            reported += 1;
            last = Some(status);
            last_event = rig.now();
        }
    }
    reading.put("burst_told_percent", reported as f64 / count as f64 * 100.0);
    match last {
        Some(status) => reading.put(
            "burst_wrong",
            f64::from(u8::from(!is_correct(&status, true))),
        ),
        None => reading.lack("burst_wrong", "no port-status message arrived"),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
