//! Simulated switch under control, with configured speed and faults, on simulated time. An
//! experiment must report the configured values.

mod faults;
mod forwarding;
mod link;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::{Instant, TableId, Xid};
use controller::IncomingKind;
use flow::{
    AggregateStats, FlowFlags, FlowMod, FlowModCommand, FlowRemoved, FlowRemovedReason, Refusal,
};
use openflow::{ErrorMessage, FlowFormat, Message, MultipartReply, MultipartRequest, Version};
use trafficgen::memory::SimulatedTime;

use super::nanos;
use super::rules::RuleTable;
use crate::catalogue::control::rig::{ControlRig, ServerFrame, SwitchMessage};
use crate::trial::TrialError;
pub(in crate::catalogue) use faults::SwitchFaults;
pub(in crate::catalogue) use link::PortReports;
use link::SimulatedLink;

/// Time that passes at each poll for a message or a frame.
pub(in crate::catalogue) const TICK: Duration = Duration::from_micros(1);

/// Resident memory of the switch without rules.
const EMPTY_BYTES: u64 = 1_000_000;

/// The simulated switch.
pub(in crate::catalogue) struct SimulatedSwitch {
    version: Version,
    faults: SwitchFaults,
    time: Arc<SimulatedTime>,
    busy_until: Instant,
    last_apply: Instant,
    table: RuleTable,
    has_timeouts: bool,
    written: Vec<Instant>,
    replies: BTreeMap<(Instant, u64), SwitchMessage>,
    out: VecDeque<ServerFrame>,
    last_out: Instant,
    frames: u64,
    count: u64,
    /// Rules added so far.
    added: u64,
    /// Greatest number of rules so far.
    peak: usize,
    packet_ins: u64,
    packet_outs: u64,
    link: SimulatedLink,
}

impl SimulatedSwitch {
    pub(in crate::catalogue) fn new(version: Version, faults: SwitchFaults) -> Self {
        Self::with_time(version, faults, SimulatedTime::new(0))
    }

    /// Returns a switch on the time of other simulated parts.
    pub(super) fn with_time(
        version: Version,
        faults: SwitchFaults,
        time: Arc<SimulatedTime>,
    ) -> Self {
        Self {
            version,
            faults,
            time,
            busy_until: Instant::START,
            last_apply: Instant::START,
            table: RuleTable::new(),
            has_timeouts: false,
            written: Vec::new(),
            replies: BTreeMap::new(),
            out: VecDeque::new(),
            last_out: Instant::START,
            frames: 0,
            count: 0,
            added: 0,
            peak: 0,
            packet_ins: 0,
            packet_outs: 0,
            link: SimulatedLink::UP,
        }
    }

    pub(in crate::catalogue) const fn faults(&self) -> &SwitchFaults {
        &self.faults
    }

    /// Advances the simulated time.
    pub(in crate::catalogue) fn advance(&self, time: Duration) {
        self.time.pass(nanos(time));
    }

    /// Advances the simulated time until all messages are processed.
    pub(in crate::catalogue) fn work_off(&self) {
        self.advance(self.busy_until.since(ControlRig::now(self)));
    }

    /// Returns the number of rules.
    pub(in crate::catalogue) fn rule_count(&self) -> usize {
        self.table.count()
    }

    /// Returns the next message that is due.
    pub(super) fn take_reply(&mut self) -> Option<SwitchMessage> {
        let ((at, _), _) = self.replies.first_key_value()?;
        let is_due = *at <= self.now();
        is_due
            .then(|| self.replies.pop_first())?
            .map(|(_, message)| message)
    }

    /// Returns the number of rules in a listing.
    pub(in crate::catalogue) fn flows_listed(&self) -> u64 {
        self.rule_count() as u64 - u64::from(self.faults.unlisted)
    }

    /// Returns the resident memory in bytes.
    pub(in crate::catalogue) fn resident_bytes(&self) -> u64 {
        let present = self.rule_count();
        let (rules, freed) = (present as u64, (self.peak - present) as u64);
        EMPTY_BYTES + self.faults.rule_bytes * rules + self.faults.kept_bytes * freed
    }

    fn reply(&mut self, at: Instant, kind: IncomingKind, xid: Xid, body: Option<Message>) {
        if self.count > self.faults.silent_after {
            return;
        }
        let index = usize::try_from(xid.0).unwrap();
        let written = index.checked_sub(1).and_then(|at| self.written.get(at));
        let written = written.copied();
        let message = SwitchMessage {
            kind,
            xid,
            at,
            written,
            length: 100,
            body,
        };
        let sequence = self.replies.len() as u64 + self.count * 1_000_000;
        self.replies.insert((at, sequence), message);
    }

    /// Processes a message, and returns its transaction number.
    pub(super) fn process(&mut self, message: &Message) -> Xid {
        self.count += 1;
        self.written.push(self.now());
        let xid = Xid(u32::try_from(self.written.len()).unwrap());
        self.busy_until = self.busy_until.max(self.now()) + self.faults.per_message;
        let done = self.busy_until;
        match message {
            Message::FlowMod(rule) => self.flow_mod(rule, xid),
            Message::BarrierRequest => {
                let at = match self.faults.replies_early {
                    true => done,
                    false => done.max(self.last_apply),
                };
                self.reply(at, IncomingKind::Barrier, xid, None);
            }
            Message::EchoRequest(_) => {
                self.reply(done + self.faults.echo, IncomingKind::EchoReply, xid, None);
            }
            Message::MultipartRequest(request) => self.statistics(request, xid, done),
            Message::PacketOut(out) => self.packet_out(out, done),
            Message::SetConfig(_) => {}
            other => panic!("no experiment sends {other:?}"),
        }
        xid
    }

    fn flow_mod(&mut self, rule: &FlowMod, xid: Xid) {
        if !self.faults.per_rule.is_zero() {
            let rules = u32::try_from(self.rule_count()).unwrap();
            self.busy_until += self.faults.per_rule * rules;
        }
        if self.count.is_multiple_of(self.faults.ignores_one_in) {
            return;
        }
        let done = self.busy_until;
        let is_early = self.faults.reorders && self.count.is_multiple_of(2);
        let delay = if is_early {
            Duration::ZERO
        } else {
            self.faults.apply
        };
        let from = done + delay;
        self.last_apply = self.last_apply.max(from);
        match rule.command {
            FlowModCommand::Add => {
                let present = self.rule_count();
                if let Some(refusal) = self.refusal(rule) {
                    let error = ErrorMessage::new(refusal, self.version, Vec::new());
                    self.reply(done, IncomingKind::Error, xid, Some(Message::Error(error)));
                    return;
                }
                self.has_timeouts |= rule.hard_timeout_s + rule.idle_timeout_s > 0;
                self.added += 1;
                let works = !self.added.is_multiple_of(self.faults.forgets_one_in);
                self.table.add(rule.clone(), from).works = works;
                self.peak = self.peak.max(present + 1);
            }
            FlowModCommand::Delete => {
                self.table.forget(self.now());
                self.table.delete_all(from, self.faults.undeletable);
            }
            FlowModCommand::ModifyStrict | FlowModCommand::DeleteStrict => {
                let Some(old) = self.table.find(rule) else {
                    return;
                };
                old.until = Some(from);
                if rule.command == FlowModCommand::ModifyStrict {
                    let new = self.table.add(rule.clone(), from);
                    new.drops_until = from + self.faults.gap;
                }
            }
            FlowModCommand::Modify => panic!("no experiment sends this"),
        }
    }

    /// Returns the reason to refuse a rule; none if the switch adds it.
    fn refusal(&self, rule: &FlowMod) -> Option<Refusal> {
        if (self.faults.refuses)(rule) {
            return Some(Refusal::ActionBadType);
        }
        let is_full = self.rule_count() >= self.faults.capacity;
        is_full.then_some(Refusal::FlowModTableFull)
    }

    fn statistics(&mut self, request: &MultipartRequest, xid: Xid, done: Instant) {
        let at = done + self.faults.statistics;
        let flows = u32::try_from(self.flows_listed()).unwrap();
        let reply = match request {
            MultipartRequest::Aggregate(..) => {
                let sums = AggregateStats {
                    packets: 0,
                    bytes: 0,
                    flows,
                };
                MultipartReply::Aggregate(FlowFormat::Standard, sums)
            }
            MultipartRequest::Port(_) => MultipartReply::Port(Vec::new()),
            _ => {
                self.reply(at, IncomingKind::StatisticsPart, xid, None);
                MultipartReply::Flow(FlowFormat::Standard, Vec::new())
            }
        };
        self.reply(
            at,
            IncomingKind::Statistics,
            xid,
            Some(Message::reply(reply)),
        );
    }

    /// Removes rules with an expired timeout and sends flow-removed messages.
    fn expire(&mut self) {
        let (now, late) = (ControlRig::now(self), self.faults.timer_late);
        let mut ended = Vec::new();
        for one in self.table.present() {
            let seconds = |seconds: u16| Duration::from_secs(seconds.into()) + late;
            let hard = (one.rule.hard_timeout_s > 0).then(|| {
                (
                    one.from + seconds(one.rule.hard_timeout_s),
                    FlowRemovedReason::HardTimeout,
                )
            });
            let idle = (one.rule.idle_timeout_s > 0).then(|| {
                (
                    one.used + seconds(one.rule.idle_timeout_s),
                    FlowRemovedReason::IdleTimeout,
                )
            });
            let due = hard.or(idle).filter(|(due, _)| now >= *due);
            if let Some((_, reason)) = due {
                one.until = Some(now);
                assert_ne!(one.rule.flags.0 & FlowFlags::SEND_FLOW_REMOVED.0, 0);
                ended.push(FlowRemoved {
                    matching: one.rule.matching.clone(),
                    cookie: one.rule.cookie,
                    priority: one.rule.priority,
                    reason,
                    table: TableId::FIRST,
                    duration: now.since(one.from),
                    idle_timeout_s: one.rule.idle_timeout_s,
                    hard_timeout_s: one.rule.hard_timeout_s,
                    packets: one.packets,
                    bytes: 0,
                });
            }
        }
        for removed in ended {
            self.count += 1;
            let message = Some(Message::FlowRemoved(removed));
            self.reply(now, IncomingKind::FlowRemoved, Xid(0), message);
        }
    }
}

impl ControlRig for SimulatedSwitch {
    fn version(&self) -> Version {
        self.version
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.time.look_ns())
    }

    fn queue(&mut self, message: &Message) -> Result<Xid, TrialError> {
        message
            .encode(Xid(1), self.version, &mut Vec::new())
            .expect("the version has no such message");
        Ok(self.process(message))
    }

    fn flush(&mut self) -> Result<(), TrialError> {
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.count < self.faults.reads
    }

    fn written_at(&self, xid: Xid) -> Option<Instant> {
        let index = usize::try_from(xid.0).ok()?.checked_sub(1)?;
        self.written.get(index).copied()
    }

    fn receive(&mut self) -> Result<Option<SwitchMessage>, TrialError> {
        self.advance(TICK);
        if self.count > self.faults.closes_after {
            let reason = "the device's OpenFlow connection is down: the device closed it";
            return Err(TrialError::Impossible(reason.to_owned()));
        }
        if self.has_timeouts {
            self.expire();
        }
        Ok(self.take_reply())
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, TrialError> {
        self.forward(frame);
        Ok(true)
    }

    fn receive_frame(&mut self) -> Result<Option<ServerFrame>, TrialError> {
        self.advance(TICK);
        match self.out.front() {
            Some(frame) if frame.at <= self.now() => Ok(self.out.pop_front()),
            _ => Ok(None),
        }
    }
}
