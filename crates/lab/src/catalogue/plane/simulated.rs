//! A device that does exactly what a test says, faults and all, in a time of its own. What an
//! experiment tells of it must be what was put in.

mod switch;
mod told;

use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::{Instant, Xid};
use controller::{Answer, ControllerError, Done as Requested, Reason, Refusal};
use flow::{AggregateStats, FlowMod, FlowModCommand, Instructions, Match, Refusal as Why};
use openflow::{ErrorMessage, FlowFormat, Message, MultipartReply, MultipartRequest, Version};
use record::{Conditions, OpenFlowEvidence};
use testbed::Interrupt;
use testbed::{Arrival, Stamp};
use trafficgen::memory::{Done, Path, SimulatedTime, Way, device};
use trafficgen::{Pace, Transmit, measure};

use super::{Enough, Plane, Pull};
use crate::catalogue::offered::{Load, Offered};
use crate::frame_echo::{self, FrameEcho, FrameEchoes, Wire};
use crate::frames::UdpFrame;
use crate::probe::ProbeError;
use crate::trial::TrialError;
use switch::Switch;
pub(in crate::catalogue) use told::*;

/// What a device is, and what is wrong with it.
#[derive(Clone, Debug)]
pub(in crate::catalogue) struct Faults {
    /// What becomes of frames from the first host of a pair, and from the second.
    pub(in crate::catalogue) forth: Path,
    pub(in crate::catalogue) back: Path,
    /// Whether it speaks OpenFlow.
    pub(in crate::catalogue) openflow: bool,
    /// Rules that it has room for.
    pub(in crate::catalogue) capacity: usize,
    /// Rules that it says it refuses.
    pub(in crate::catalogue) refuses: fn(&FlowMod) -> bool,
    /// Every how manieth rule it takes and does not go by.
    pub(in crate::catalogue) forgets_every: Option<u64>,
    /// By so many rules it tells of too few.
    pub(in crate::catalogue) hides: u32,
    /// What a message takes it.
    pub(in crate::catalogue) message: Duration,
    /// So long after its barrier it goes by the rules before.
    pub(in crate::catalogue) apply: Duration,
    /// Whether it outputs frames without changing them first.
    pub(in crate::catalogue) ignores_sets: bool,
    /// What a frame takes more for each rule that there is, and by its own forwarding.
    pub(in crate::catalogue) rule: Duration,
    pub(in crate::catalogue) normal: Duration,
    /// Frames towards the server that its rules do not count.
    pub(in crate::catalogue) uncounted: u64,
    /// Whether it sends every frame to all other hosts, and whether it does so until it has
    /// learnt where they are.
    pub(in crate::catalogue) floods: bool,
    pub(in crate::catalogue) learns: bool,
    /// Flows that it carries: frames of others are lost.
    pub(in crate::catalogue) flows: usize,
    /// How much later than its cable it comes back.
    pub(in crate::catalogue) recovers: Duration,
    /// Bytes by which its process grows, with a rule and with a load; none for a kernel's.
    pub(in crate::catalogue) grows: Option<[u64; 2]>,
    pub(in crate::catalogue) price: Option<f64>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            forth: Path::default(),
            back: Path::default(),
            openflow: true,
            capacity: usize::MAX,
            refuses: |_| false,
            forgets_every: None,
            hides: 0,
            message: Duration::from_micros(10),
            apply: Duration::ZERO,
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
    /// No other fault than that frames take so long, forth and back.
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

/// The device.
pub(in crate::catalogue) struct Simulated {
    faults: Faults,
    time: Arc<SimulatedTime>,
    switch: Arc<Mutex<Switch>>,
    resident_bytes: u64,
    /// What was done to frames of the last load, by the port where they came in.
    pub(in crate::catalogue) done: Vec<Done>,
}

impl Simulated {
    pub(in crate::catalogue) fn new(faults: Faults) -> Self {
        Self {
            switch: Arc::new(Mutex::new(Switch::new(&faults))),
            faults,
            time: SimulatedTime::new(1),
            resident_bytes: 10_000_000,
            done: Vec::new(),
        }
    }

    fn switch(&self) -> MutexGuard<'_, Switch> {
        self.switch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ports(&self, pairs: usize, dark_ns: &Range<u64>) -> Vec<Way> {
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

    fn run(&mut self, load: &Load, dark_ns: &Range<u64>) -> Result<Offered, TrialError> {
        let ways = self.ports(load.pairs, dark_ns);
        if self.faults.learns {
            for (way, frame) in ways.iter().zip(load.introductions().iter().cycle()) {
                let sent = way.clone().send(&[frame]);
                assert_eq!(sent.unwrap(), 1);
            }
            self.time.pass(1_000_000_000);
            for way in &ways {
                while way.take().is_some() {}
            }
        }
        self.time.set_step(self.step_ns(load));
        let mut ends: Vec<_> = ways.iter().map(Way::end).collect();
        let interrupt = Interrupt::never();
        let measured = measure(&mut ends, &load.request(), &*self.time, &interrupt);
        self.time.set_step(1);
        self.done = ways.iter().map(Way::done).collect();
        Ok(Offered {
            measurement: measured.map_err(|error| TrialError::Impossible(error.to_string()))?,
            conditions: Conditions::default(),
        })
    }

    /// By how much time goes on, so that each frame of each stream goes at its time.
    fn step_ns(&self, load: &Load) -> u64 {
        let bytes = load.frames.mean_bytes();
        let gap_ns = match load.pace {
            Pace::Constant(rate) => 1e9 / rate.frames_per_second(bytes),
            Pace::FlatOut => self.faults.forth.sender_gap_ns as f64,
            other => panic!("no experiment has {other:?}"),
        };
        // A round looks at the time once for each stream.
        let looks = 4 * load.request().streams.len() as u64;
        let step = nanos(Duration::from_secs_f64(gap_ns / 1e9)) / looks;
        step.max(1)
    }

    fn hosts(&self) -> [Host; 2] {
        let ways = self.ports(1, &(0..0));
        let host = |way| Host {
            way,
            time: Arc::clone(&self.time),
            room: Vec::new(),
        };
        let hosts: Result<[Host; 2], _> = ways.into_iter().map(host).collect::<Vec<_>>().try_into();
        hosts.unwrap_or_else(|_| panic!("there are two"))
    }

    /// Does what a message says, or refuses.
    fn handle(&mut self, message: &Message) -> Result<Option<Message>, Why> {
        self.time.pass(nanos(self.faults.message));
        let now = self.time.look_ns();
        let apply = nanos(self.faults.apply);
        match message {
            Message::FlowMod(rule) if rule.command == FlowModCommand::Delete => {
                self.switch().clear(now + apply);
                Ok(None)
            }
            Message::FlowMod(rule) => {
                assert_eq!(rule.command, FlowModCommand::Add, "no experiment says more");
                if (self.faults.refuses)(rule) {
                    return Err(Why::ActionBadType);
                }
                self.switch().add(rule)?;
                self.resident_bytes += self.faults.grows.map_or(0, |[rule, _]| rule);
                Ok(None)
            }
            Message::MultipartRequest(MultipartRequest::Aggregate(..)) => {
                let sums = AggregateStats {
                    packets: 0,
                    bytes: 0,
                    flows: self.switch().listed(),
                };
                let reply = MultipartReply::Aggregate(FlowFormat::Standard, sums);
                Ok(Some(Message::reply(reply)))
            }
            other => panic!("no experiment says {other:?}"),
        }
    }
}

impl Plane for Simulated {
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

    fn request(&mut self, messages: Vec<Message>) -> Result<Requested, ControllerError> {
        let (mut answers, mut refusals) = (Vec::new(), Vec::new());
        for (place, message) in messages.iter().enumerate() {
            let outcome = self.handle(message);
            let xid = Xid(1);
            let arrival = arrival(self.now());
            match outcome {
                Ok(None) => {}
                Ok(Some(message)) => answers.push(Answer {
                    xid,
                    handed: None,
                    arrival,
                    message,
                }),
                Err(why) => refusals.push(Refusal {
                    place,
                    xid,
                    message: "the addition of a rule",
                    reason: Reason::Error {
                        fault: ErrorMessage::new(why, Version::V10, Vec::new()).code,
                        version: Version::V10,
                        arrival,
                    },
                }),
            }
        }
        Ok(Requested {
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

    fn offer_once(&mut self, load: &Load) -> Result<Offered, TrialError> {
        self.resident_bytes += self.faults.grows.map_or(0, |[_, load]| load);
        self.run(load, &(0..0))
    }

    fn offer_and_pull(
        &mut self,
        load: &Load,
        Pull { after, down }: Pull,
    ) -> Result<(Offered, Duration), TrialError> {
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

    fn come_out(&mut self, frames: &[UdpFrame], patience: Duration) -> Result<usize, TrialError> {
        let mut ends = self.hosts();
        let interrupt = Interrupt::never();
        let out = frame_echo::come_out(&mut ends, frames, patience, &*self.time, &interrupt)?;
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

/// A host's end, whose time leaps to when a frame comes.
struct Host {
    way: Way,
    time: Arc<SimulatedTime>,
    room: Vec<u8>,
}

/// Where nothing is under way, time passes by so much.
const LEAP_NS: u64 = 1_000_000;

impl Wire for Host {
    fn send(&mut self, frame: &[u8]) -> Result<(), ProbeError> {
        let sent = self.way.send(&[frame]);
        assert_eq!(sent.unwrap(), 1);
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<&[u8]>, ProbeError> {
        if let Some((_, frame)) = self.way.take() {
            self.room = frame;
            return Ok(Some(&self.room));
        }
        let now = self.time.look_ns();
        let next = self.way.next_ns();
        self.time.pass(next.map_or(LEAP_NS, |next| next - now));
        Ok(None)
    }
}

fn arrival(at: Instant) -> Arrival {
    let by = Stamp::Read;
    Arrival { at, by }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap()
}
