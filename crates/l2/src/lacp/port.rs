//! One port of a group: the machines for receiving, for sending now and then, and the
//! multiplexer (802.1AX-2014, 6.4.12, 6.4.13, 6.4.15 and 6.4.16).

use std::time::Duration;

use base::Instant;
use packet::wire::slow::{LacpInfo, LacpState, Lacpdu};

use super::{
    FAST_PERIODIC, LONG_TIMEOUT, LacpActivity, LacpSettings, SENT_MAX, SHORT_TIMEOUT, SLOW_PERIODIC,
};

/// What is told of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LacpPortSettings {
    /// Its number in LACP.
    pub number: u16,
    /// Its priority.
    pub priority: u16,
    /// Which ports it may be aggregated with.
    pub key: u16,
}

/// What is known of the partner (the states of the receive machine).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveState {
    /// The cable is unplugged.
    Disabled,
    /// It is not heard any more, or not yet.
    Expired,
    /// Nothing: it was not heard for long.
    Defaulted,
    /// What it has told lately.
    Current,
}

impl ReceiveState {
    /// The word of `lacp/show`, which has none for a port without a carrier.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Disabled | Self::Expired => "expired",
            Self::Defaulted => "defaulted",
            Self::Current => "current",
        }
    }
}

/// What a port counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LacpCounters {
    /// LACPDUs sent.
    pub sent: u64,
    /// LACPDUs heard.
    pub heard: u64,
    /// Messages that could not be read.
    pub bad: u64,
    /// Markers answered.
    pub markers: u64,
    /// How often the partner was not heard in time.
    pub expired: u64,
    /// How often it was given up.
    pub defaulted: u64,
    /// How often the carrier came or went.
    pub carrier_changes: u64,
}

/// One port.
#[derive(Debug)]
pub struct LacpPort {
    pub(super) settings: LacpPortSettings,
    receive: ReceiveState,
    /// What was told of the partner.
    partner: LacpInfo,
    /// Attached to the aggregator (`SYNCHRONIZATION` of our state).
    attached: bool,
    /// Until when the partner is to be heard again.
    current_until: Option<Instant>,
    /// When a message is due though nothing has changed.
    periodic: Option<Instant>,
    /// Whether the partner needs to be told (`NTT`).
    needs_to_tell: bool,
    /// When the last messages were sent, the oldest first.
    recent: [Option<Instant>; SENT_MAX],
    pub(super) counters: LacpCounters,
}

impl LacpPort {
    /// A port without carrier.
    pub(super) fn new(settings: LacpPortSettings) -> Self {
        Self {
            settings,
            receive: ReceiveState::Disabled,
            partner: LacpInfo::default(),
            attached: false,
            current_until: None,
            periodic: None,
            needs_to_tell: false,
            recent: [None; SENT_MAX],
            counters: LacpCounters::default(),
        }
    }

    /// What is known of the partner.
    pub const fn receive(&self) -> ReceiveState {
        self.receive
    }

    /// What the partner has told of itself.
    pub const fn partner(&self) -> &LacpInfo {
        &self.partner
    }

    /// Whether it belongs to the aggregator.
    pub const fn is_attached(&self) -> bool {
        self.attached
    }

    /// What it has counted.
    pub const fn counters(&self) -> LacpCounters {
        self.counters
    }

    /// Whether both ends take and send frames here (`COLLECTING_DISTRIBUTING`).
    pub(crate) const fn is_distributing(&self) -> bool {
        self.attached && self.partner.state.has(LacpState::SYNCHRONIZATION)
    }

    /// What it tells of itself.
    pub fn actor(&self, of: &LacpSettings) -> LacpInfo {
        let distributing = self.is_distributing();
        let state = LacpState::default()
            .with(LacpState::ACTIVITY, of.activity == LacpActivity::Active)
            .with(LacpState::TIMEOUT, of.is_fast)
            .with(LacpState::AGGREGATION, of.aggregates)
            .with(LacpState::SYNCHRONIZATION, self.attached)
            .with(LacpState::COLLECTING, distributing)
            .with(LacpState::DISTRIBUTING, distributing)
            .with(
                LacpState::DEFAULTED,
                self.receive == ReceiveState::Defaulted,
            )
            .with(LacpState::EXPIRED, self.receive == ReceiveState::Expired);
        LacpInfo {
            system: of.system,
            key: self.settings.key,
            port_priority: self.settings.priority,
            port: self.settings.number,
            state,
        }
    }

    pub(super) fn need_to_tell(&mut self) {
        self.needs_to_tell = true;
    }

    /// The carrier came or went.
    pub(super) fn handle_carrier(&mut self, up: bool, now: Instant) {
        if up == (self.receive != ReceiveState::Disabled) {
            return;
        }
        self.counters.carrier_changes += 1;
        if up {
            self.expire(now);
        } else {
            self.receive = ReceiveState::Disabled;
            self.partner.state = self.partner.state.with(LacpState::SYNCHRONIZATION, false);
            (self.current_until, self.periodic, self.needs_to_tell) = (None, None, false);
        }
    }

    /// The partner has told something (`recordPDU`, `update_NTT`).
    pub(super) fn handle_pdu(&mut self, of: &LacpSettings, pdu: &Lacpdu, now: Instant) {
        self.counters.heard += 1;
        if self.receive == ReceiveState::Disabled {
            return;
        }
        let actor = self.actor(of);
        let told = &pdu.partner;
        let same = |bits: u8| (told.state.0 ^ actor.state.0) & bits == 0;
        let knows_us = told.system == actor.system
            && (told.port, told.port_priority, told.key)
                == (actor.port, actor.port_priority, actor.key)
            && same(LacpState::AGGREGATION.0);
        let theirs = pdu.actor.state;
        let talks = theirs.has(LacpState::ACTIVITY)
            || (of.activity == LacpActivity::Active && told.state.has(LacpState::ACTIVITY));
        let in_sync = theirs.has(LacpState::SYNCHRONIZATION)
            && (knows_us || !theirs.has(LacpState::AGGREGATION))
            && talks;
        let others = LacpState::ACTIVITY.0 | LacpState::TIMEOUT.0 | LacpState::SYNCHRONIZATION.0;
        if !knows_us || !same(others) {
            self.needs_to_tell = true;
        }
        self.partner = pdu.actor;
        self.partner.state = theirs.with(LacpState::SYNCHRONIZATION, in_sync);
        self.receive = ReceiveState::Current;
        let patience = if of.is_fast {
            SHORT_TIMEOUT
        } else {
            LONG_TIMEOUT
        };
        self.current_until = Some(now + patience);
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.current_until.is_none_or(|until| now < until) {
            return;
        }
        self.current_until = None;
        match self.receive {
            ReceiveState::Current => {
                self.counters.expired += 1;
                self.expire(now);
            }
            ReceiveState::Expired => {
                self.counters.defaulted += 1;
                self.receive = ReceiveState::Defaulted;
                // Who is plugged in later need not wait for half a minute.
                self.partner = LacpInfo {
                    state: LacpState::TIMEOUT,
                    ..LacpInfo::default()
                };
                self.needs_to_tell = true;
            }
            ReceiveState::Disabled | ReceiveState::Defaulted => {}
        }
    }

    fn expire(&mut self, now: Instant) {
        self.receive = ReceiveState::Expired;
        // Whoever is not heard is spoken to often.
        self.partner.state = self
            .partner
            .state
            .with(LacpState::SYNCHRONIZATION, false)
            .with(LacpState::TIMEOUT, true);
        self.current_until = Some(now + SHORT_TIMEOUT);
        self.needs_to_tell = true;
    }

    /// The multiplexer: belongs to the aggregator, or no longer.
    pub(super) fn attach(&mut self, attached: bool) {
        if self.attached != attached {
            self.attached = attached;
            self.needs_to_tell = self.receive != ReceiveState::Disabled;
        }
    }

    /// How often it sends, if at all: two that wait for each other say nothing.
    fn interval(&self, of: &LacpSettings) -> Option<Duration> {
        let speaks =
            of.activity == LacpActivity::Active || self.partner.state.has(LacpState::ACTIVITY);
        if self.receive == ReceiveState::Disabled || !speaks {
            return None;
        }
        Some(if self.partner.state.has(LacpState::TIMEOUT) {
            FAST_PERIODIC
        } else {
            SLOW_PERIODIC
        })
    }

    /// When it sends next.
    pub(super) fn next_transmission(&self, of: &LacpSettings) -> Option<Instant> {
        let interval = self.interval(of)?;
        let [oldest, ..] = self.recent;
        let allowed = oldest.map_or(Instant::START, |sent| sent + FAST_PERIODIC);
        if self.needs_to_tell {
            return Some(allowed);
        }
        // The interval may have become shorter since the last message.
        let due = self.periodic.map_or(Instant::START, |last| last + interval);
        Some(due.max(allowed))
    }

    /// When [`LacpPort::handle_timeout`] has something to do.
    pub(super) const fn next_timeout(&self) -> Option<Instant> {
        self.current_until
    }

    /// What is to be sent now, if anything.
    pub(super) fn poll(&mut self, of: &LacpSettings, now: Instant) -> Option<Lacpdu> {
        if self.next_transmission(of).is_none_or(|due| now < due) {
            return None;
        }
        self.recent.rotate_left(1);
        self.recent[SENT_MAX - 1] = Some(now);
        self.periodic = Some(now);
        self.needs_to_tell = false;
        self.counters.sent += 1;
        Some(Lacpdu {
            actor: self.actor(of),
            partner: self.partner,
            collector_delay: 0,
        })
    }
}
