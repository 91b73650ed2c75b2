//! Flow monitors (OF 1.4.1, 7.3.5.17): those of one connection, and what they tell.
//!
//! What happened to rules is recorded once, and shared by all who are to hear of it.
//! It is put into words where it is told, as the peer reads. A peer that does not
//! read has its monitors paused: nothing more is recorded for it, and instead the
//! tables are kept as it knows them, which costs a few pointers and those rules that
//! are no longer there. When it has read what was on its way, it is told the
//! difference. So what it costs is bounded by what the tables may hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Xid;
use flow::{
    FlowChange, FlowEvent, FlowUpdate, Instructions, Monitor, MonitorFlags, MonitorId,
    MonitorRequest, Refusal,
};
use openflow::{Message, MultipartReply, Version};
use pipeline::{Pipeline, RuleEvent};

use super::connection::ConnectionId;

/// The most monitors of a connection: each is asked about every change.
pub(crate) const MONITORS_MAX: usize = 64;

/// Changes that may wait for a connection before its monitors are paused. Each keeps
/// a rule, a kilobyte or two.
pub const WAITING_MAX: usize = 4096;

/// Connections of a bridge whose monitors may be paused at once. Each may keep as many
/// rules that are gone as the tables hold.
pub(crate) const PAUSED_MAX: usize = 16;

/// Changes in one part of what is told.
const PART: usize = 256;

/// The monitors of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Monitors {
    monitors: Arc<BTreeMap<MonitorId, Monitor>>,
    /// The tables as the peer knows them, while it is told nothing.
    paused: Option<Pipeline>,
}

/// What happened to a rule, and who asked for it, in which message.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) happening: RuleEvent,
    pub(crate) by: Option<Author>,
}

/// A message of a connection.
pub(crate) type Author = (ConnectionId, Xid);

impl Monitors {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.monitors.is_empty()
    }

    /// Does all of `requests`, or none. Returns those monitors that are new.
    ///
    /// # Errors
    /// A number is taken, or is none; or there are too many.
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
                    let gone = monitors.remove(&id);
                    gone.ok_or(Refusal::MonitorUnknownMonitor)?;
                }
            }
        }
        self.monitors = Arc::new(monitors);
        Ok(new)
    }

    /// Whether they tell nothing for a while.
    pub(crate) const fn are_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// What is to be told of `changes`, if anything is told at present.
    pub(crate) fn updates(
        &self,
        changes: &Arc<Vec<Recorded>>,
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

    /// Tells nothing for a while: the peer knows the tables as they are now. Tells
    /// whether that is new.
    pub(crate) fn pause(&mut self, now: &Pipeline) -> bool {
        let is_new = self.paused.is_none();
        self.paused.get_or_insert_with(|| now.clone());
        is_new
    }

    /// Tells all again, first of all what became of the rules meanwhile; nothing if it
    /// was not paused.
    pub(crate) fn resume(&mut self, now: &Pipeline, version: Version) -> Option<Comparison> {
        let before = self.paused.take()?;
        Some(Comparison {
            before: Some(before),
            now: now.clone(),
            monitors: Arc::clone(&self.monitors),
            last: None,
            next: Next::Rules,
            resumed: Some(resumed(version)),
        })
    }
}

/// The message that monitors are paused.
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

/// Changes that are still to be told.
#[derive(Debug)]
pub struct Updates {
    changes: Arc<Vec<Recorded>>,
    monitors: Arc<BTreeMap<MonitorId, Monitor>>,
    to: ConnectionId,
    next: usize,
    /// The message that was told last by nothing but its number.
    abbreviated: Option<Xid>,
}

impl Updates {
    /// How many changes there are.
    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// The next part, which is a message of its own; none after the last.
    pub(crate) fn next_part(&mut self) -> Option<Message> {
        while self.next < self.changes.len() {
            let changes = Arc::clone(&self.changes);
            let part = changes.iter().skip(self.next).take(PART);
            self.next += part.len();
            let told: Vec<_> = part.filter_map(|change| self.told(change)).collect();
            if !told.is_empty() {
                return Some(Message::reply(MultipartReply::FlowMonitor(told)));
            }
        }
        None
    }

    /// What the peer is told of one change. One that it asked for itself is told once
    /// a message, unless it wants to be told all of it.
    fn told(&mut self, change: &Recorded) -> Option<FlowUpdate> {
        let own = change.by.filter(|(id, _)| *id == self.to);
        let wants = |flags: MonitorFlags| own.is_some() || flags.reports_others();
        let flags = flags_for(&self.monitors, &change.happening, wants)?;
        match own {
            Some((_, xid)) if !flags.reports_own_in_full() => {
                let is_told = self.abbreviated.replace(xid) == Some(xid);
                (!is_told).then_some(FlowUpdate::Abbrev(xid))
            }
            _ => Some(full(&change.happening, flags)),
        }
    }
}

/// The rules between two moments that are still to be told. Who changed them is not
/// known, and so all are told in full.
#[derive(Debug)]
pub struct Comparison {
    /// None if the rules of `now` are to be told as those that were there at first.
    before: Option<Pipeline>,
    now: Pipeline,
    monitors: Arc<BTreeMap<MonitorId, Monitor>>,
    /// The last rule looked at; the next part goes on behind it.
    last: Option<Arc<pipeline::Rule>>,
    next: Next,
    /// What is said at the end.
    resumed: Option<Message>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Rules,
    End,
    Nothing,
}

impl Comparison {
    /// The rules that there are, for monitors that are new.
    pub(crate) fn initial(now: &Pipeline, new: Vec<Monitor>) -> Self {
        let monitors = new.into_iter().map(|monitor| (monitor.id, monitor));
        Self {
            before: None,
            now: now.clone(),
            monitors: Arc::new(monitors.collect()),
            last: None,
            next: Next::Rules,
            resumed: None,
        }
    }

    /// How many rules it holds.
    pub(crate) fn len(&self) -> usize {
        let before = self.before.as_ref().map_or(0, Pipeline::len);
        before + self.now.len()
    }

    /// The next part; none after the last. The answer to a request has one at least.
    pub(crate) fn next_part(&mut self) -> Option<Message> {
        while self.next == Next::Rules {
            let told = self.next_rules();
            let more = self.next == Next::Rules;
            let reply = MultipartReply::FlowMonitor(told);
            match &self.resumed {
                None if !more => {
                    self.next = Next::Nothing;
                    return Some(Message::MultipartReply { reply, more });
                }
                None => return Some(Message::MultipartReply { reply, more }),
                Some(_) if reply == MultipartReply::FlowMonitor(Vec::new()) => {}
                // Nobody asked, and so every part is a message of its own.
                Some(_) => return Some(Message::reply(reply)),
            }
        }
        (self.next == Next::End).then(|| self.next = Next::Nothing)?;
        self.resumed.take()
    }

    fn next_rules(&mut self) -> Vec<FlowUpdate> {
        let last = self.last.take();
        let changes = self.now.diff_since(self.before.as_ref(), last.as_deref());
        let part: Vec<_> = changes.take(PART).collect();
        if part.len() < PART {
            self.next = Next::End;
        }
        self.last = part.last().map(|happening| Arc::clone(&happening.rule));
        let told = part.iter().filter_map(|happening| {
            let flags = flags_for(&self.monitors, happening, |_| true)?;
            Some(full(happening, flags))
        });
        told.collect()
    }
}

/// The flags of all monitors that tell of this; none if none does.
fn flags_for(
    monitors: &BTreeMap<MonitorId, Monitor>,
    happening: &RuleEvent,
    wants: impl Fn(MonitorFlags) -> bool,
) -> Option<MonitorFlags> {
    let occasion = match happening.event {
        FlowEvent::Initial => MonitorFlags::INITIAL,
        FlowEvent::Added => MonitorFlags::ADD,
        FlowEvent::Removed(_) => MonitorFlags::REMOVED,
        FlowEvent::Modified => MonitorFlags::MODIFY,
    };
    // A rule that sends to a port no longer is told to who watches the port.
    let both = || [Some(&happening.rule), happening.old.as_ref()].into_iter();
    let telling = monitors.values().filter(|monitor| {
        let asked = |rule: &Arc<pipeline::Rule>| rule.is_selected_by(&monitor.request);
        monitor.flags.contains(occasion) && wants(monitor.flags) && both().flatten().any(asked)
    });
    telling
        .map(|monitor| monitor.flags)
        .reduce(MonitorFlags::with)
}

fn full(happening: &RuleEvent, flags: MonitorFlags) -> FlowUpdate {
    let rule = &happening.rule;
    FlowUpdate::Full(Box::new(FlowChange {
        event: happening.event,
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
