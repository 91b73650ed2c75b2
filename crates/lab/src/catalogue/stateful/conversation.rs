//! Scripted connections between two ends, with a bounded number of them open: one busy-polling
//! thread sends each frame when the one before it has arrived, so that each lost frame is noticed
//! and no protocol stack takes part.

use std::ops::Range;
use std::time::Duration;

use testbed::Interrupt;
use trafficgen::Time;

use super::conversation_frame::{ConversationFrame, ConversationProtocol};
use crate::frame_echo::Wire;
use crate::probe::ProbeError;

/// Time without any arrival after which the open connections have failed.
const TIMEOUT: Duration = Duration::from_millis(200);
/// Consecutive timeouts that end the conversations: the device passes nothing more.
const TIMEOUTS_MAX: u32 = 3;
/// Connections that are open at the same time, unless a plan has its own number.
const PARALLEL: u32 = 64;
/// Frames that are received from an end before the other one has its turn.
const BURST: u32 = 64;

/// Connections to be made.
#[derive(Clone, Debug)]
pub(super) struct ConversationPlan {
    protocol: ConversationProtocol,
    connections: Range<u32>,
    /// First frame of each connection, and the one after the last.
    steps: Range<u8>,
    parallel: u32,
}

/// Outcome of a plan.
#[derive(Clone, Debug, Default)]
pub(super) struct ConversationResult {
    /// Connections whose last frame has arrived.
    pub(super) completed: u32,
    /// Connections that lack a frame.
    pub(super) failed: u32,
    /// Time of all of them, without that of waiting for lost frames.
    pub(super) seconds: f64,
    /// Delay of each frame from its sending to its arrival, by step, in nanoseconds; only if one
    /// connection was open at a time.
    pub(super) delays_ns: Vec<Vec<u64>>,
}

impl ConversationPlan {
    /// TCP connections with these numbers.
    pub(super) fn tcp(connections: Range<u32>) -> Self {
        Self {
            protocol: ConversationProtocol::Tcp,
            connections,
            steps: 0..7,
            parallel: PARALLEL,
        }
    }

    /// Requests and replies of UDP, each pair a connection.
    pub(super) fn udp(connections: Range<u32>) -> Self {
        Self {
            protocol: ConversationProtocol::Udp,
            steps: 0..2,
            ..Self::tcp(connections)
        }
    }

    /// The plan with other frames of each connection.
    pub(super) fn steps(mut self, first: u8, end: u8) -> Self {
        self.steps = first..end;
        self
    }

    /// The plan with one connection at a time, whose delays are recorded.
    pub(super) fn one_by_one(mut self) -> Self {
        self.parallel = 1;
        self
    }
}

/// Makes the connections of a plan between a client's end and a server's.
pub(super) fn converse<W: Wire, T: Time>(
    ends: &mut [W; 2],
    plan: &ConversationPlan,
    time: &T,
    interrupt: &Interrupt,
) -> Result<ConversationResult, ProbeError> {
    let count = plan.connections.len();
    let mut conversations = Conversations {
        ends,
        plan,
        time,
        awaited: vec![plan.steps.start; count],
        begun: 0,
        open: 0,
        sent_ns: 0,
        result: ConversationResult {
            delays_ns: vec![Vec::new(); usize::from(plan.steps.end)],
            ..ConversationResult::default()
        },
    };
    conversations.run(interrupt)?;
    Ok(conversations.result)
}

struct Conversations<'a, W, T> {
    ends: &'a mut [W; 2],
    plan: &'a ConversationPlan,
    time: &'a T,
    /// The step whose arrival each connection awaits.
    awaited: Vec<u8>,
    begun: u32,
    open: u32,
    /// Time at which the last frame was sent.
    sent_ns: u64,
    result: ConversationResult,
}

/// Awaited step of a connection that has completed or failed.
const ENDED: u8 = u8::MAX;

impl<W: Wire, T: Time> Conversations<'_, W, T> {
    fn run(&mut self, interrupt: &Interrupt) -> Result<(), ProbeError> {
        let timeout = u64::try_from(TIMEOUT.as_nanos()).unwrap_or(u64::MAX);
        let began = self.time.now_ns();
        let (mut progress, mut waited, mut timeouts) = (began, 0, 0);
        loop {
            self.begin()?;
            if self.open == 0 {
                break;
            }
            let arrivals = self.receive(0)? + self.receive(1)?;
            let now = self.time.now_ns();
            if arrivals > 0 {
                (progress, timeouts) = (now, 0);
                continue;
            }
            if interrupt.is_set() {
                return Err(ProbeError::Interrupted);
            }
            if now.saturating_sub(progress) < timeout {
                continue;
            }
            self.fail_open();
            timeouts += 1;
            waited += now - progress;
            progress = now;
            if timeouts == TIMEOUTS_MAX {
                self.result.failed += self.count() - self.begun;
                break;
            }
        }
        let lasted = self.time.now_ns().saturating_sub(began + waited);
        self.result.seconds = lasted as f64 / 1e9;
        Ok(())
    }

    fn count(&self) -> u32 {
        self.plan.connections.end - self.plan.connections.start
    }

    /// Begins connections until the intended number is open.
    fn begin(&mut self) -> Result<(), ProbeError> {
        while self.open < self.plan.parallel && self.begun < self.count() {
            let index = self.begun;
            self.begun += 1;
            self.open += 1;
            self.send(index, self.plan.steps.start)?;
        }
        Ok(())
    }

    fn send(&mut self, index: u32, step: u8) -> Result<(), ProbeError> {
        let frame = ConversationFrame {
            protocol: self.plan.protocol,
            number: self.plan.connections.start + index,
            step,
        };
        let bytes = frame.encode();
        let end = usize::from(!frame.is_of_client());
        self.sent_ns = self.time.now_ns();
        self.ends[end].send(&bytes)
    }

    /// Receives frames at an end, and continues their connections. Returns the number of awaited
    /// ones.
    fn receive(&mut self, end: usize) -> Result<u32, ProbeError> {
        let mut arrivals = 0;
        for _ in 0..BURST {
            let Some(bytes) = self.ends[end].receive()? else {
                break;
            };
            let arrived = ConversationFrame::parse(bytes);
            let is_for_end = |frame: &ConversationFrame| usize::from(frame.is_of_client()) == end;
            if let Some(frame) = arrived.filter(is_for_end)
                && self.continue_with(frame)?
            {
                arrivals += 1;
            }
        }
        Ok(arrivals)
    }

    /// Continues the connection of an arrived frame; returns false if it was not awaited.
    fn continue_with(&mut self, frame: ConversationFrame) -> Result<bool, ProbeError> {
        let index = frame.number.wrapping_sub(self.plan.connections.start);
        let awaited = self.awaited.get_mut(index as usize);
        let Some(awaited) = awaited.filter(|step| **step == frame.step) else {
            return Ok(false);
        };
        if self.plan.parallel == 1 {
            let delay = self.time.now_ns().saturating_sub(self.sent_ns);
            self.result.delays_ns[usize::from(frame.step)].push(delay);
        }
        let next = frame.step + 1;
        if next < self.plan.steps.end {
            *awaited = next;
            self.send(index, next)?;
        } else {
            *awaited = ENDED;
            self.open -= 1;
            self.result.completed += 1;
        }
        Ok(true)
    }

    /// Gives up the open connections.
    fn fail_open(&mut self) {
        for awaited in &mut self.awaited[..self.begun as usize] {
            *awaited = ENDED;
        }
        self.result.failed += self.open;
        self.open = 0;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::{BTreeSet, VecDeque};
    use std::rc::Rc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Time that advances by a microsecond at each reading.
    #[derive(Default)]
    struct ReadingTime(AtomicU64);

    impl Time for ReadingTime {
        fn now_ns(&self) -> u64 {
            self.0.fetch_add(1_000, Ordering::Relaxed)
        }
    }

    /// A firewall that holds a bounded number of connections, and loses each nth frame.
    #[derive(Default)]
    struct SimulatedFirewall {
        capacity: usize,
        lose_every: u32,
        frames: u32,
        connections: BTreeSet<u32>,
        queues: [VecDeque<Vec<u8>>; 2],
    }

    struct FirewallEnd {
        firewall: Rc<RefCell<SimulatedFirewall>>,
        end: usize,
        room: Vec<u8>,
    }

    impl Wire for FirewallEnd {
        fn send(&mut self, frame: &[u8]) -> Result<(), ProbeError> {
            let mut firewall = self.firewall.borrow_mut();
            firewall.frames += 1;
            if firewall.lose_every > 0 && firewall.frames.is_multiple_of(firewall.lose_every) {
                return Ok(());
            }
            let number = ConversationFrame::parse(frame).expect("ours").number;
            let has_room = firewall.connections.len() < firewall.capacity;
            if self.end == 0 && has_room {
                firewall.connections.insert(number);
            }
            if firewall.connections.contains(&number) {
                firewall.queues[1 - self.end].push_back(frame.to_vec());
            }
            Ok(())
        }

        fn receive(&mut self) -> Result<Option<&[u8]>, ProbeError> {
            match self.firewall.borrow_mut().queues[self.end].pop_front() {
                Some(frame) => {
                    self.room = frame;
                    Ok(Some(&self.room))
                }
                None => Ok(None),
            }
        }
    }

    fn ends(capacity: usize, lose_every: u32) -> [FirewallEnd; 2] {
        let firewall = Rc::new(RefCell::new(SimulatedFirewall {
            capacity,
            lose_every,
            ..SimulatedFirewall::default()
        }));
        [0, 1].map(|end| FirewallEnd {
            firewall: Rc::clone(&firewall),
            end,
            room: Vec::new(),
        })
    }

    fn result(ends: &mut [FirewallEnd; 2], plan: &ConversationPlan) -> ConversationResult {
        let interrupt = Interrupt::never();
        converse(ends, plan, &ReadingTime::default(), &interrupt).expect("no interruption")
    }

    #[test]
    fn conversations_all_complete_through_a_perfect_firewall() {
        for plan in [ConversationPlan::tcp(5..505), ConversationPlan::udp(5..505)] {
            let result = result(&mut ends(1_000, 0), &plan);
            assert_eq!((result.completed, result.failed), (500, 0));
            assert!(result.seconds > 0.0 && result.seconds < 0.1);
        }
    }

    #[test]
    fn conversations_with_a_lost_frame_fail() {
        // Of 200 requests and their replies, each tenth frame is lost.
        let plan = ConversationPlan::udp(0..200).one_by_one();
        let result = result(&mut ends(1_000, 10), &plan);
        assert_eq!(result.completed + result.failed, 200);
        assert!((30..=45).contains(&result.failed), "{}", result.failed);
        // The time of waiting for lost frames does not count.
        assert!(result.seconds < 0.2, "{}", result.seconds);
    }

    #[test]
    fn full_firewall_holds_its_capacity() {
        let mut ends = ends(300, 0);
        let opened = result(&mut ends, &ConversationPlan::udp(0..1_000));
        assert_eq!((opened.completed, opened.failed), (300, 700));
        let held = result(&mut ends, &ConversationPlan::udp(0..1_000).steps(1, 2));
        assert!(held.completed >= 256, "{}", held.completed);
    }

    #[test]
    fn reply_without_a_request_does_not_pass() {
        let stray = ConversationPlan::udp(0..1).steps(1, 2);
        assert_eq!(result(&mut ends(10, 0), &stray).completed, 0);
    }

    #[test]
    fn delays_are_recorded_one_by_one() {
        let plan = ConversationPlan::udp(0..10).steps(0, 4).one_by_one();
        let result = result(&mut ends(10, 0), &plan);
        assert!(result.delays_ns.iter().all(|step| step.len() == 10));
    }
}
