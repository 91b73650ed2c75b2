//! Flow monitors of one connection (OF 1.4.1, 7.3.5.17) and their updates.
//!
//! Rule events are recorded once and shared by all connections with monitors. They are encoded as
//! the peer reads. If a peer does not read, its monitors are paused: no event is recorded for it,
//! and instead a snapshot of the tables as the peer knows them is kept, which costs a few pointers
//! and the rules that were removed since. When the peer has read everything sent, it receives the
//! difference. The memory for a slow peer is thus bounded by the size of the tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{GroupId, Xid};
use flow::{
    FlowChange, FlowEvent, FlowUpdate, Instructions, Monitor, MonitorFlags, MonitorId,
    MonitorRequest, Refusal,
};
use openflow::{Message, MultipartReply, Version};
use pipeline::{Pipeline, RuleEvent};

use super::connection::ConnectionId;

/// The maximum number of monitors of a connection: every change is compared with each.
pub(crate) const MONITORS_MAX: usize = 64;

/// Unread changes of a connection at which its monitors are paused. Each change keeps a rule in
/// memory, one or two KB.
pub const WAITING_MAX: usize = 4096;

/// The maximum number of connections of a bridge with paused monitors. Each may keep as many
/// removed rules in memory as the tables hold.
pub(crate) const PAUSED_MAX: usize = 16;

/// Changes in one part of an update.
const PART: usize = 256;

/// The monitors of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Monitors {
    monitors: Arc<BTreeMap<MonitorId, Monitor>>,
    /// The tables as the peer knows them, while the monitors are paused.
    paused: Option<Pipeline>,
}

/// A rule event with the message that caused it.
#[derive(Clone, Debug)]
pub(crate) struct RuleEventRecord {
    pub(crate) rule_event: RuleEvent,
    pub(crate) by: Option<Author>,
}

/// A message of a connection.
pub(crate) type Author = (ConnectionId, Xid);

impl Monitors {
    /// Returns whether there are no monitors.
    pub(crate) fn is_empty(&self) -> bool {
        self.monitors.is_empty()
    }

    /// Executes all of `requests`, or none. Returns the added and modified monitors.
    ///
    /// # Errors
    /// An id is in use or unknown, or there are too many monitors.
    pub(crate) fn apply(&mut self, requests: Vec<MonitorRequest>) -> Result<Vec<Monitor>, Refusal> {
        let mut monitors = (*self.monitors).clone();
        let mut new = Vec::new();
        for request in requests {
            match request {
                MonitorRequest::Add(monitor) if monitors.contains_key(&monitor.id) => {
                    return Err(Refusal::MonitorExists);
                }
                MonitorRequest::Add(_) if monitors.len() >= MONITORS_MAX => {
                    return Err(Refusal::MonitorUnknown);
                }
                MonitorRequest::Modify(monitor) if !monitors.contains_key(&monitor.id) => {
                    return Err(Refusal::MonitorUnknownMonitor);
                }
                MonitorRequest::Add(monitor) | MonitorRequest::Modify(monitor) => {
                    monitors.insert(monitor.id, monitor.clone());
                    new.push(monitor);
                }
                MonitorRequest::Delete(id) => {
                    let removed = monitors.remove(&id);
                    removed.ok_or(Refusal::MonitorUnknownMonitor)?;
                }
            }
        }
        self.monitors = Arc::new(monitors);
        Ok(new)
    }

    /// Returns whether the monitors are paused.
    pub(crate) const fn are_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Returns the updates about `changes`, unless there are no monitors or they are paused.
    pub(crate) fn updates(
        &self,
        changes: &Arc<Vec<RuleEventRecord>>,
        to: ConnectionId,
    ) -> Option<Updates> {
        (!self.is_empty() && self.paused.is_none()).then(|| Updates {
            changes: Arc::clone(changes),
            monitors: Arc::clone(&self.monitors),
            to,
            next: 0,
            abbreviated: None,
        })
    }

    /// Pauses the monitors; `now` are the tables as the peer knows them. Returns whether they were
    /// not paused before.
    pub(crate) fn pause(&mut self, now: &Pipeline) -> bool {
        let is_new = self.paused.is_none();
        self.paused.get_or_insert_with(|| now.clone());
        is_new
    }

    /// Resumes the monitors. Returns the difference since the pause; none if they were not paused.
    pub(crate) fn resume(&mut self, now: &Pipeline, version: Version) -> Option<Comparison> {
        let before = self.paused.take()?;
        Some(Comparison {
            before: Some(before),
            now: now.clone(),
            monitors: Arc::clone(&self.monitors),
            last: None,
            next: NextPart::Rules,
            resumed: Some(resumed(version)),
        })
    }
}

/// Returns the message that monitors are paused.
pub(crate) fn paused(version: Version) -> Message {
    match version {
        Version::V10 | Version::V11 | Version::V12 | Version::V13 => Message::MonitorPaused,
        Version::V14 | Version::V15 => one(FlowUpdate::Paused),
    }
}

fn resumed(version: Version) -> Message {
    match version {
        Version::V10 | Version::V11 | Version::V12 | Version::V13 => Message::MonitorResumed,
        Version::V14 | Version::V15 => one(FlowUpdate::Resumed),
    }
}

fn one(update: FlowUpdate) -> Message {
    Message::reply(MultipartReply::FlowMonitor(vec![update]))
}

/// Recorded changes that are not sent yet.
#[derive(Debug)]
pub struct Updates {
    changes: Arc<Vec<RuleEventRecord>>,
    monitors: Arc<BTreeMap<MonitorId, Monitor>>,
    to: ConnectionId,
    next: usize,
    /// The transaction of the last abbreviated update.
    abbreviated: Option<Xid>,
}

impl Updates {
    /// Returns the number of changes.
    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Returns the next part, which is a message of its own; none after the last.
    pub(crate) fn next_part(&mut self) -> Option<Message> {
        while self.next < self.changes.len() {
            let changes = Arc::clone(&self.changes);
            let part = changes.iter().skip(self.next).take(PART);
            self.next += part.len();
            let updates: Vec<_> = part.filter_map(|change| self.update_for(change)).collect();
            if !updates.is_empty() {
                return Some(Message::reply(MultipartReply::FlowMonitor(updates)));
            }
        }
        None
    }

    /// Returns the update about one change. A change by the peer itself is abbreviated to one
    /// update a message, unless the monitor has the flag for full updates.
    fn update_for(&mut self, change: &RuleEventRecord) -> Option<FlowUpdate> {
        let own = change.by.filter(|(id, _)| *id == self.to);
        let wants = |flags: MonitorFlags| own.is_some() || flags.reports_others();
        let flags = flags_for(&self.monitors, &change.rule_event, wants)?;
        match own {
            Some((_, xid)) if !flags.reports_own_in_full() => {
                let is_repeated = self.abbreviated.replace(xid) == Some(xid);
                (!is_repeated).then_some(FlowUpdate::Abbrev(xid))
            }
            _ => Some(full(&change.rule_event, flags)),
        }
    }
}

/// The difference between two snapshots, as updates. The author of each change is unknown, so all
/// updates are full.
#[derive(Debug)]
pub struct Comparison {
    /// The older snapshot; none for the initial rules of a new monitor.
    before: Option<Pipeline>,
    now: Pipeline,
    monitors: Arc<BTreeMap<MonitorId, Monitor>>,
    /// The last rule visited; the next part continues after it.
    last: Option<Arc<pipeline::Rule>>,
    next: NextPart,
    /// The final message.
    resumed: Option<Message>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextPart {
    Rules,
    End,
    Nothing,
}

impl Comparison {
    /// Returns the present rules for new monitors.
    pub(crate) fn initial(now: &Pipeline, new: Vec<Monitor>) -> Self {
        let monitors = new.into_iter().map(|monitor| (monitor.id, monitor));
        Self {
            before: None,
            now: now.clone(),
            monitors: Arc::new(monitors.collect()),
            last: None,
            next: NextPart::Rules,
            resumed: None,
        }
    }

    /// Returns an upper bound of the number of rules in memory.
    pub(crate) fn len(&self) -> usize {
        let before = self.before.as_ref().map_or(0, Pipeline::len);
        before + self.now.len()
    }

    /// Returns the next part; none after the last. The reply to a request has at least one.
    pub(crate) fn next_part(&mut self) -> Option<Message> {
        while self.next == NextPart::Rules {
            let updates = self.next_rules();
            let more = self.next == NextPart::Rules;
            let reply = MultipartReply::FlowMonitor(updates);
            match &self.resumed {
                None if !more => {
                    self.next = NextPart::Nothing;
                    return Some(Message::MultipartReply { reply, more });
                }
                None => return Some(Message::MultipartReply { reply, more }),
                Some(_) if reply == MultipartReply::FlowMonitor(Vec::new()) => {}
                // Without a request every part is a message of its own.
                Some(_) => return Some(Message::reply(reply)),
            }
        }
        (self.next == NextPart::End).then(|| self.next = NextPart::Nothing)?;
        self.resumed.take()
    }

    fn next_rules(&mut self) -> Vec<FlowUpdate> {
        let last = self.last.take();
        let changes = self.now.diff_since(self.before.as_ref(), last.as_deref());
        let part: Vec<_> = changes.take(PART).collect();
        if part.len() < PART {
            self.next = NextPart::End;
        }
        self.last = part.last().map(|rule_event| Arc::clone(&rule_event.rule));
        let updates = part.iter().filter_map(|rule_event| {
            let flags = flags_for(&self.monitors, rule_event, |_| true)?;
            Some(full(rule_event, flags))
        });
        updates.collect()
    }
}

/// Returns the union of the flags of all monitors that report this event; none if no monitor does.
fn flags_for(
    monitors: &BTreeMap<MonitorId, Monitor>,
    rule_event: &RuleEvent,
    wants: impl Fn(MonitorFlags) -> bool,
) -> Option<MonitorFlags> {
    let event_flag = match rule_event.event {
        FlowEvent::Initial => MonitorFlags::INITIAL,
        FlowEvent::Added => MonitorFlags::ADD,
        FlowEvent::Removed(_) => MonitorFlags::REMOVED,
        FlowEvent::Modified => MonitorFlags::MODIFY,
    };
    let reporting = monitors.values().filter(|monitor| {
        let request = &monitor.request;
        // As in Open vSwitch, a monitor of a port also reports a rule that no longer outputs to the
        // port; one of a group does not.
        let old = rule_event.old.iter();
        let old = old.filter(|_| request.out_group == GroupId::ANY);
        let mut rules = [&rule_event.rule].into_iter().chain(old);
        monitor.flags.contains(event_flag)
            && wants(monitor.flags)
            && rules.any(|rule| rule.is_selected_by(request))
    });
    reporting
        .map(|monitor| monitor.flags)
        .reduce(MonitorFlags::with)
}

fn full(rule_event: &RuleEvent, flags: MonitorFlags) -> FlowUpdate {
    let rule = &rule_event.rule;
    FlowUpdate::Full(Box::new(FlowChange {
        event: rule_event.event,
        table: rule.table(),
        priority: rule.priority(),
        idle_timeout_s: rule.idle_timeout_s,
        hard_timeout_s: rule.hard_timeout_s,
        cookie: rule.cookie,
        matching: rule.matching().clone(),
        instructions: match flags.contains(MonitorFlags::INSTRUCTIONS) {
            true => Instructions::clone(&rule.instructions),
            false => Instructions::default(),
        },
    }))
}
