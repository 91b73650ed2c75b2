//! Simulated data plane with configured faults, on simulated time. An experiment must report the
//! configured values.

mod forwarding;

use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::{Instant, Xid};
use controller::{Answer, ControllerError, Reason, Refusal, RequestOutcome};
use flow::{FlowMod, FlowModCommand, Instructions, Match};
use openflow::{Message, Version};
use record::{Conditions, OpenFlowEvidence};
use testbed::Interrupt;
use testbed::{Arrival, Stamp};
use trafficgen::memory::{Path, PathCounts, SimulatedPort, SimulatedTime, device};
use trafficgen::{Pace, Transmit, measure};

use super::nanos;
use super::switch::SwitchFaults;
use crate::catalogue::offered::{Load, LoadResult};
use crate::catalogue::plane::{Enough, Plane, Pull};
use crate::frame_echo::{self, FrameEcho, FrameEchoes, Wire};
use crate::frames::UdpFrame;
use crate::probe::ProbeError;
use crate::trial::TrialError;
use forwarding::SimulatedForwarding;

/// Properties and faults of the device.
#[derive(Clone, Debug)]
pub(in crate::catalogue) struct Faults {
    /// Paths from the first host of a pair to the second, and back.
    pub(in crate::catalogue) forth: Path,
    pub(in crate::catalogue) back: Path,
    /// True if the device supports OpenFlow.
    pub(in crate::catalogue) openflow: bool,
    /// Control of the device. Its delays of frames have no effect: the paths have theirs.
    pub(in crate::catalogue) switch: SwitchFaults,
    /// True if the device outputs frames without the modifications of their rule.
    pub(in crate::catalogue) ignores_sets: bool,
    /// Additional delay of a frame for each rule in the table, and for forwarding by NORMAL.
    pub(in crate::catalogue) rule: Duration,
    pub(in crate::catalogue) normal: Duration,
    /// Number of frames towards the server that are missing in the counters of the rules.
    pub(in crate::catalogue) uncounted: u64,
    /// True if the device sends every frame to all other hosts, and true if it does so until it has
    /// learned the destination.
    pub(in crate::catalogue) floods: bool,
    pub(in crate::catalogue) learns: bool,
    /// Number of flows that the device carries: frames of further flows are lost.
    pub(in crate::catalogue) flows: usize,
    /// Time from the repair of the link until the device forwards again.
    pub(in crate::catalogue) recovers: Duration,
    /// Memory growth of the process in bytes for each rule and for each load; none for a device
    /// without a process.
    pub(in crate::catalogue) grows: Option<[u64; 2]>,
    pub(in crate::catalogue) price: Option<f64>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            forth: Path::default(),
            back: Path::default(),
            openflow: true,
            switch: SwitchFaults::default(),
            ignores_sets: false,
            rule: Duration::ZERO,
            normal: Duration::ZERO,
            uncounted: 0,
            floods: false,
            learns: false,
            flows: usize::MAX,
            recovers: Duration::ZERO,
            grows: Some([0, 0]),
            price: None,
        }
    }
}

impl Faults {
    /// Returns a device without other faults than these path delays.
    pub(in crate::catalogue) fn slow(forth_ns: u64, back_ns: u64) -> Self {
        let path = |delay_ns| Path {
            delay_ns,
            ..Path::default()
        };
        Self {
            forth: path(forth_ns),
            back: path(back_ns),
            ..Self::default()
        }
    }
}

/// The simulated device.
pub(in crate::catalogue) struct SimulatedPlane {
    faults: Faults,
    time: Arc<SimulatedTime>,
    switch: Arc<Mutex<SimulatedForwarding>>,
    resident_bytes: u64,
    /// Effects of the last load's paths on frames, by the ingress port.
    pub(in crate::catalogue) done: Vec<PathCounts>,
}

impl SimulatedPlane {
    pub(in crate::catalogue) fn new(faults: Faults) -> Self {
        let time = SimulatedTime::new(1);
        let switch = SimulatedForwarding::new(&faults, Arc::clone(&time));
        Self {
            switch: Arc::new(Mutex::new(switch)),
            faults,
            time,
            resident_bytes: 10_000_000,
            done: Vec::new(),
        }
    }

    fn switch(&self) -> MutexGuard<'_, SimulatedForwarding> {
        self.switch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ports(&self, pairs: usize, dark_ns: &Range<u64>) -> Vec<SimulatedPort> {
        let dark = |path: &Path| Path {
            dark_ns: dark_ns.clone(),
            ..path.clone()
        };
        let paths = [dark(&self.faults.forth), dark(&self.faults.back)];
        let paths = paths.into_iter().cycle().take(2 * pairs).collect();
        let switch = Arc::clone(&self.switch);
        let forward = move |at| {
            let mut switch = switch.lock().unwrap_or_else(PoisonError::into_inner);
            switch.forward(at, 2 * pairs)
        };
        device(&self.time, paths, Box::new(forward))
    }

    fn run(&mut self, load: &Load, dark_ns: &Range<u64>) -> Result<LoadResult, TrialError> {
        let ports = self.ports(load.pairs, dark_ns);
        if self.faults.learns {
            for (port, frame) in ports.iter().zip(load.introductions().iter().cycle()) {
                let sent = port.clone().send(&[frame]);
                assert_eq!(sent.unwrap(), 1);
            }
            self.time.pass(1_000_000_000);
            for port in &ports {
                while port.take().is_some() {}
            }
        }
        self.time.set_step(self.step_ns(load));
        let mut ends: Vec<_> = ports.iter().map(SimulatedPort::end).collect();
        let interrupt = Interrupt::never();
        let measured = measure(&mut ends, &load.request(), &*self.time, &interrupt);
        self.time.set_step(1);
        self.done = ports.iter().map(SimulatedPort::done).collect();
        Ok(LoadResult {
            measurement: measured.map_err(|error| TrialError::Impossible(error.to_string()))?,
            conditions: Conditions::default(),
        })
    }

    /// Returns the step of the simulated time in nanoseconds: small enough for each stream to send
    /// each frame on time.
    fn step_ns(&self, load: &Load) -> u64 {
        let bytes = load.frames.mean_bytes();
        let gap_ns = match load.pace {
            Pace::Constant(rate) => 1e9 / rate.frames_per_second(bytes),
            Pace::FlatOut => self.faults.forth.sender_gap_ns as f64,
            other => panic!("no experiment has {other:?}"),
        };
        // A round reads the time once for each stream.
        let looks = 4 * load.request().streams.len() as u64;
        let step = nanos(Duration::from_secs_f64(gap_ns / 1e9)) / looks;
        step.max(1)
    }

    fn hosts(&self) -> [SimulatedHost; 2] {
        let ports = self.ports(1, &(0..0));
        let host = |port| SimulatedHost {
            port,
            time: Arc::clone(&self.time),
            buffer: Vec::new(),
        };
        let hosts: Result<[SimulatedHost; 2], _> =
            ports.into_iter().map(host).collect::<Vec<_>>().try_into();
        hosts.unwrap_or_else(|_| panic!("there are two"))
    }
}

impl Plane for SimulatedPlane {
    fn speaks_openflow(&self) -> bool {
        self.faults.openflow
    }

    fn install(&mut self, rules: &[FlowMod]) -> Result<(), ControllerError> {
        if !self.faults.openflow {
            return Ok(());
        }
        let all = Match::any();
        let clear = FlowMod::new(FlowModCommand::Delete, 0, all, Instructions::default());
        let messages = [&clear].into_iter().chain(rules).cloned();
        let done = Plane::request(self, messages.map(Message::FlowMod).collect())?;
        done.all_done("a rule").map(drop)
    }

    fn request(&mut self, messages: Vec<Message>) -> Result<RequestOutcome, ControllerError> {
        let (mut answers, mut refusals) = (Vec::new(), Vec::new());
        for (position, message) in messages.iter().enumerate() {
            let reply = self.switch().request(message);
            let xid = Xid(1);
            let arrival = arrival(self.now());
            match reply.and_then(|reply| reply.body) {
                Some(Message::Error(error)) => refusals.push(Refusal {
                    position,
                    xid,
                    message: "the addition of a rule",
                    reason: Reason::Error {
                        fault: error.code,
                        version: Version::V10,
                        arrival,
                    },
                }),
                Some(message) => answers.push(Answer {
                    xid,
                    handed: None,
                    arrival,
                    message,
                }),
                None => {
                    let is_added = matches!(message, Message::FlowMod(rule)
                        if rule.command == FlowModCommand::Add);
                    let bytes = self.faults.grows.filter(|_| is_added);
                    self.resident_bytes += bytes.map_or(0, |[rule, _]| rule);
                }
            }
        }
        Ok(RequestOutcome {
            began: None,
            handed: None,
            answered: arrival(self.now()),
            answers,
            refused: refusals.len() as u64,
            refusals,
        })
    }

    fn evidence(&mut self, _: &Enough<'_>) -> Result<Option<OpenFlowEvidence>, TrialError> {
        let switch = self.switch();
        let [towards_server, towards_client] = switch.counts;
        let evidence = OpenFlowEvidence {
            packet_ins: switch.packet_ins,
            towards_server: towards_server - self.faults.uncounted,
            towards_client,
        };
        Ok(self.faults.openflow.then_some(evidence))
    }

    fn offer_once(&mut self, load: &Load) -> Result<LoadResult, TrialError> {
        self.resident_bytes += self.faults.grows.map_or(0, |[_, load]| load);
        self.run(load, &(0..0))
    }

    fn offer_and_pull(
        &mut self,
        load: &Load,
        Pull { after, down }: Pull,
    ) -> Result<(LoadResult, Duration), TrialError> {
        let from = self.time.look_ns() + nanos(after);
        let until = from + nanos(down + self.faults.recovers);
        Ok((self.run(load, &(from..until))?, down))
    }

    fn addresses(&self) -> [Ipv4Addr; 2] {
        [1, 2].map(|number| Ipv4Addr::new(10, 0, 0, number))
    }

    fn echo(&mut self, echo: &FrameEcho) -> Result<FrameEchoes, TrialError> {
        let ends = self.hosts();
        let echoes = frame_echo::between(ends, echo, &*self.time, &Interrupt::never())?;
        Ok(echoes)
    }

    fn count_arrivals(
        &mut self,
        frames: &[UdpFrame],
        timeout: Duration,
    ) -> Result<usize, TrialError> {
        let mut ends = self.hosts();
        let interrupt = Interrupt::never();
        let out = frame_echo::count_arrivals(&mut ends, frames, timeout, &*self.time, &interrupt)?;
        Ok(out)
    }

    fn resident_bytes(&self) -> Result<Option<u64>, TrialError> {
        Ok(self.faults.grows.map(|_| self.resident_bytes))
    }

    fn price(&self) -> Option<f64> {
        self.faults.price
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.time.look_ns())
    }

    fn wait(&mut self, time: Duration) {
        self.time.pass(nanos(time));
    }

    fn watch(&mut self) -> Result<(), TrialError> {
        Ok(())
    }

    fn conditions(&mut self) -> Result<Conditions, TrialError> {
        Ok(Conditions::default())
    }
}

/// The end of a host. A receive without a frame advances the time to the next arrival.
struct SimulatedHost {
    port: SimulatedPort,
    time: Arc<SimulatedTime>,
    buffer: Vec<u8>,
}

/// Time that passes if no frame is in flight.
const LEAP_NS: u64 = 1_000_000;

impl Wire for SimulatedHost {
    fn send(&mut self, frame: &[u8]) -> Result<(), ProbeError> {
        let sent = self.port.send(&[frame]);
        assert_eq!(sent.unwrap(), 1);
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<&[u8]>, ProbeError> {
        if let Some((_, frame)) = self.port.take() {
            self.buffer = frame;
            return Ok(Some(&self.buffer));
        }
        let now = self.time.look_ns();
        let next = self.port.next_ns();
        self.time.pass(next.map_or(LEAP_NS, |next| next - now));
        Ok(None)
    }
}

fn arrival(at: Instant) -> Arrival {
    let by = Stamp::Read;
    Arrival { at, by }
}
