//! Simulated switch under control, with configured speed and faults, on simulated time. An
//! experiment must report the configured values.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base::{Cookie, Instant, PortNo, TableId, Xid};
use controller::Kind;
use flow::{
    Action, AggregateStats, Field, FlowFlags, FlowKey, FlowMod, FlowModCommand, FlowRemoved,
    FlowRemovedReason, PacketIn, PacketInReason, PacketOut, PipelineFields, Refusal,
};
use openflow::{ErrorMessage, FlowFormat, Message, MultipartReply, MultipartRequest, Version};
use packet::{Depth, Frame, Headers};
use record::Profile;

use super::rig::{Caught, Rig, Told};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;
use record::{Settings, Value};

/// Time that passes at each poll for a message or a frame.
pub(super) const TICK: Duration = Duration::from_micros(1);

/// Resident memory of the switch without rules.
const EMPTY_BYTES: u64 = 1_000_000;

/// Speed and faults of the switch.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    /// Processing time of a message.
    pub(super) per_message: Duration,
    /// Additional processing time of a flow-mod for each rule in the table.
    pub(super) per_rule: Duration,
    /// Time from the processing of a flow-mod until it is in force.
    pub(super) apply: Duration,
    /// True if barrier replies do not wait until changes are in force.
    pub(super) lies: bool,
    /// True if every second change is in force at once, and so before earlier ones.
    pub(super) reorders: bool,
    /// Time for which frames are dropped when their rule is modified.
    pub(super) gap: Duration,
    /// Capacity of the table in rules.
    pub(super) capacity: usize,
    /// Every nth flow-mod has no effect.
    pub(super) ignores_one_in: u64,
    /// Number of rules that a deletion of all rules leaves.
    pub(super) keeps: usize,
    /// Memory of a rule, and the part of it that remains after its deletion.
    pub(super) rule_bytes: u64,
    pub(super) kept_bytes: u64,
    /// Processing time of an echo request, of a statistics request, of a frame, and of a packet-in.
    pub(super) echo: Duration,
    pub(super) statistics: Duration,
    pub(super) forward: Duration,
    pub(super) up: Duration,
    /// Least time between two forwarded frames; earlier frames wait in a queue.
    pub(super) per_frame: Duration,
    /// Every nth frame is lost.
    pub(super) loses_one_in: u64,
    /// Only every nth frame is sent to the controller.
    pub(super) up_one_in: u64,
    /// Only every nth packet-out is executed.
    pub(super) out_one_in: u64,
    /// Delay of timeouts.
    pub(super) timer_late: Duration,
    /// Number of messages after which the switch sends no more replies.
    pub(super) silent_after: u64,
    /// Number of messages after which the switch closes the connection.
    pub(super) closes_after: u64,
    /// Number of rules that are missing in statistics.
    pub(super) forgets: u32,
    /// Number of messages after which the switch reads no more.
    pub(super) reads: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            per_message: Duration::from_micros(5),
            per_rule: Duration::ZERO,
            apply: Duration::ZERO,
            lies: false,
            reorders: false,
            gap: Duration::ZERO,
            capacity: usize::MAX,
            ignores_one_in: u64::MAX,
            keeps: 0,
            rule_bytes: 0,
            kept_bytes: 0,
            echo: Duration::ZERO,
            statistics: Duration::ZERO,
            forward: Duration::from_micros(10),
            up: Duration::from_micros(50),
            per_frame: Duration::ZERO,
            loses_one_in: u64::MAX,
            up_one_in: 1,
            out_one_in: 1,
            timer_late: Duration::ZERO,
            silent_after: u64::MAX,
            closes_after: u64::MAX,
            forgets: 0,
            reads: u64::MAX,
        }
    }
}

/// A rule and the times of its validity.
struct Rule {
    rule: FlowMod,
    from: Instant,
    until: Option<Instant>,
    /// The rule drops frames before this time.
    deaf_until: Instant,
    used: Instant,
    packets: u64,
}

/// The simulated switch.
pub(super) struct Simulated {
    version: Version,
    faults: Faults,
    now: Instant,
    busy_until: Instant,
    last_apply: Instant,
    rules: Vec<Rule>,
    has_timeouts: bool,
    handed: Vec<Instant>,
    told: BTreeMap<(Instant, u64), Told>,
    out: VecDeque<Caught>,
    last_out: Instant,
    frames: u64,
    count: u64,
    /// Greatest number of rules so far.
    peak: usize,
    ups: u64,
    outs: u64,
    key: FlowKey,
}

/// Returns the first point of an experiment's quick profile, with these values.
pub(super) fn point(experiment: &Experiment, values: &[(&str, u64)]) -> Point {
    let settings = Settings {
        profile: Profile::Quick,
        ..Settings::default()
    };
    let points = settings.points(&experiment.description).unwrap();
    let values = values.iter();
    values.fold(points[0].clone(), |point, (name, value)| {
        point.with(name, Value::Number(*value))
    })
}

impl Simulated {
    pub(super) fn new(version: Version, faults: Faults) -> Self {
        Self {
            version,
            faults,
            now: Instant::from_secs(1),
            busy_until: Instant::START,
            last_apply: Instant::START,
            rules: Vec::new(),
            has_timeouts: false,
            handed: Vec::new(),
            told: BTreeMap::new(),
            out: VecDeque::new(),
            last_out: Instant::START,
            frames: 0,
            count: 0,
            peak: 0,
            ups: 0,
            outs: 0,
            key: FlowKey::new(),
        }
    }

    pub(super) const fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Advances the simulated time.
    pub(super) fn advance(&mut self, time: Duration) {
        self.now += time;
    }

    /// Advances the simulated time until all messages are processed.
    pub(super) fn work_off(&mut self) {
        self.now = self.now.max(self.busy_until);
    }

    /// Returns the number of rules.
    pub(super) fn rule_count(&self) -> usize {
        self.rules.iter().filter(|one| one.until.is_none()).count()
    }

    /// Returns the number of rules in a listing.
    pub(super) fn flows_listed(&self) -> u64 {
        self.rule_count() as u64 - u64::from(self.faults.forgets)
    }

    /// Returns the resident memory in bytes.
    pub(super) fn resident_bytes(&self) -> u64 {
        let there = self.rule_count();
        let (rules, freed) = (there as u64, (self.peak - there) as u64);
        EMPTY_BYTES + self.faults.rule_bytes * rules + self.faults.kept_bytes * freed
    }

    fn tell(&mut self, at: Instant, kind: Kind, xid: Xid, message: Option<Message>) {
        if self.count > self.faults.silent_after {
            return;
        }
        let place = usize::try_from(xid.0).unwrap();
        let handed = place.checked_sub(1).and_then(|at| self.handed.get(at));
        let handed = handed.copied();
        let told = Told {
            kind,
            xid,
            at,
            handed,
            length: 100,
            message,
        };
        let order = self.told.len() as u64 + self.count * 1_000_000;
        self.told.insert((at, order), told);
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
                let there = self.rule_count();
                if there >= self.faults.capacity {
                    let full = Refusal::FlowModTableFull;
                    let error = ErrorMessage::new(full, self.version, Vec::new());
                    self.tell(done, Kind::Error, xid, Some(Message::Error(error)));
                    return;
                }
                self.has_timeouts |= rule.hard_timeout_s + rule.idle_timeout_s > 0;
                self.put(rule.clone(), from, from);
                self.peak = self.peak.max(there + 1);
            }
            FlowModCommand::Delete => {
                for one in self.rules.iter_mut().skip(self.faults.keeps) {
                    one.until.get_or_insert(from);
                }
            }
            FlowModCommand::ModifyStrict | FlowModCommand::DeleteStrict => {
                let same = |one: &&mut Rule| {
                    one.until.is_none()
                        && (one.rule.priority, &one.rule.matching)
                            == (rule.priority, &rule.matching)
                };
                let Some(old) = self.rules.iter_mut().find(same) else {
                    return;
                };
                old.until = Some(from);
                if rule.command == FlowModCommand::ModifyStrict {
                    self.put(rule.clone(), from, from + self.faults.gap);
                }
            }
            FlowModCommand::Modify => panic!("no experiment says that"),
        }
    }

    fn put(&mut self, rule: FlowMod, from: Instant, deaf_until: Instant) {
        self.rules.push(Rule {
            rule,
            from,
            until: None,
            deaf_until,
            used: from,
            packets: 0,
        });
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
                self.tell(at, Kind::StatisticsPart, xid, None);
                MultipartReply::Flow(FlowFormat::Standard, Vec::new())
            }
        };
        self.tell(at, Kind::Statistics, xid, Some(Message::reply(reply)));
    }

    /// Forwards a frame that arrived at port 1.
    fn handle(&mut self, frame: &[u8]) {
        self.frames += 1;
        if self.frames.is_multiple_of(self.faults.loses_one_in) {
            return;
        }
        let packet = Frame::from_bytes(frame);
        let headers = Headers::parse(&packet, Depth::Transport).expect("frames are whole");
        self.key.fill(&headers, &PipelineFields::new(PortNo(1)));
        let now = self.now;
        let (key, rules) = (&self.key, &mut self.rules);
        let in_force = rules
            .iter_mut()
            .filter(|one| one.from <= now && one.until.is_none_or(|until| now < until));
        let matching = in_force.filter(|one| one.rule.matching.accepts(key));
        let best = matching.max_by_key(|one| one.rule.priority);
        let actions = match best {
            Some(rule) => {
                rule.used = now;
                rule.packets += 1;
                if now < rule.deaf_until {
                    return;
                }
                rule.rule.instructions.apply.clone()
            }
            None if self.version == Version::V10 => vec![Action::output(PortNo::CONTROLLER)],
            None => Vec::new(),
        };
        self.execute(frame, &actions);
    }

    fn execute(&mut self, frame: &[u8], actions: &[Action]) {
        let mut bytes = frame.to_vec();
        for action in actions {
            match action {
                Action::SetField {
                    field: Field::IpDscp,
                    value,
                    ..
                } => bytes[15] = u8::try_from(*value).unwrap() << 2,
                Action::PopVlan => drop(bytes.drain(12..16)),
                Action::Output {
                    port: PortNo::CONTROLLER,
                    ..
                } => self.send_up(&bytes),
                Action::Output { port, .. } => {
                    assert_eq!(*port, PortNo(2));
                    let free = self.last_out + self.faults.per_frame;
                    let at = (self.now + self.faults.forward).max(free);
                    self.last_out = at;
                    let bytes = bytes.clone();
                    self.out.push_back(Caught { at, bytes });
                }
                other => panic!("no experiment says {other:?}"),
            }
        }
    }

    fn send_up(&mut self, frame: &[u8]) {
        self.ups += 1;
        if !self.ups.is_multiple_of(self.faults.up_one_in) {
            return;
        }
        let message = Message::PacketIn(PacketIn {
            reason: PacketInReason::NoMatch,
            table: TableId::FIRST,
            cookie: Cookie::NONE,
            registers: PipelineFields::new(PortNo(1)),
            total_len: u16::try_from(frame.len()).unwrap(),
            data: frame.to_vec(),
            userdata: Vec::new(),
            continuation: Vec::new(),
        });
        let at = self.now + self.faults.up;
        self.count += 1;
        self.tell(at, Kind::PacketIn, Xid(0), Some(message));
    }

    fn packet_out(&mut self, out: &PacketOut, done: Instant) {
        self.outs += 1;
        if self.outs.is_multiple_of(self.faults.out_one_in) {
            let before = std::mem::replace(&mut self.now, done);
            self.execute(&out.data, &out.actions);
            self.now = before;
        }
    }

    /// Removes rules with an expired timeout and sends flow-removed messages.
    fn expire(&mut self) {
        let (now, late) = (self.now, self.faults.timer_late);
        let mut ended = Vec::new();
        for one in &mut self.rules {
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
            let due = hard
                .or(idle)
                .filter(|(due, _)| one.until.is_none() && now >= *due);
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
            self.tell(now, Kind::FlowRemoved, Xid(0), message);
        }
    }
}

impl Rig for Simulated {
    fn version(&self) -> Version {
        self.version
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn say(&mut self, message: &Message) -> Result<Xid, TrialError> {
        message
            .encode(Xid(1), self.version, &mut Vec::new())
            .expect("an experiment says what its version has words for");
        self.count += 1;
        self.handed.push(self.now);
        let xid = Xid(u32::try_from(self.handed.len()).unwrap());
        self.busy_until = self.busy_until.max(self.now) + self.faults.per_message;
        let done = self.busy_until;
        match message {
            Message::FlowMod(rule) => self.flow_mod(rule, xid),
            Message::BarrierRequest => {
                let at = match self.faults.lies {
                    true => done,
                    false => done.max(self.last_apply),
                };
                self.tell(at, Kind::Barrier, xid, None);
            }
            Message::EchoRequest(_) => {
                self.tell(done + self.faults.echo, Kind::EchoReply, xid, None);
            }
            Message::MultipartRequest(request) => self.statistics(request, xid, done),
            Message::PacketOut(out) => self.packet_out(out, done),
            Message::SetConfig(_) => {}
            other => panic!("no experiment says {other:?}"),
        }
        Ok(xid)
    }

    fn flush(&mut self) -> Result<(), TrialError> {
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.count < self.faults.reads
    }

    fn handed_at(&self, xid: Xid) -> Option<Instant> {
        let place = usize::try_from(xid.0).ok()?.checked_sub(1)?;
        self.handed.get(place).copied()
    }

    fn hear(&mut self) -> Result<Option<Told>, TrialError> {
        self.now += TICK;
        if self.count > self.faults.closes_after {
            let reason = "the device's OpenFlow connection is down: the device closed it";
            return Err(TrialError::Impossible(reason.to_owned()));
        }
        if self.has_timeouts {
            self.expire();
        }
        match self.told.first_key_value() {
            Some(((at, _), _)) if *at <= self.now => {
                Ok(self.told.pop_first().map(|(_, told)| told))
            }
            _ => Ok(None),
        }
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, TrialError> {
        self.handle(frame);
        Ok(true)
    }

    fn catch(&mut self) -> Result<Option<Caught>, TrialError> {
        self.now += TICK;
        match self.out.front() {
            Some(frame) if frame.at <= self.now => Ok(self.out.pop_front()),
            _ => Ok(None),
        }
    }
}

/// Asserts that a figure differs by at most `slack` from the configured value.
pub(super) fn assert_near(found: &super::Found, figure: &str, wanted: f64, slack: f64) {
    let value = found.reading.figures.get(figure);
    let value = value.unwrap_or_else(|| panic!("{figure}: {:?}", found.reading.absent));
    assert!(
        (value - wanted).abs() <= slack,
        "{figure}: {value} instead of {wanted}"
    );
}

/// Returns the reason for an absent figure.
pub(super) fn why_not(found: &super::Found, figure: &str) -> String {
    let reason = found.reading.absent.get(figure);
    reason
        .unwrap_or_else(|| panic!("{figure}: {:?}", found.reading.figures))
        .clone()
}
