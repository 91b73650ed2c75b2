//! One port of a group: the receive, periodic transmission, mux and transmit machines
//! (802.1AX-2014, 6.4.12, 6.4.13, 6.4.15 and 6.4.16).

use std::time::Duration;

use base::Instant;
use packet::wire::slow::{LacpInfo, LacpState, Lacpdu};

use super::{
    FAST_PERIODIC, LONG_TIMEOUT, LacpActivity, LacpSettings, SENT_MAX, SHORT_TIMEOUT, SLOW_PERIODIC,
};

/// Configuration of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LacpPortSettings {
    /// The port number in LACP.
    pub number: u16,
    /// The port priority.
    pub priority: u16,
    /// The key: ports with equal keys may be aggregated.
    pub key: u16,
}

/// State of the receive machine. As in Open vSwitch, a port without a carrier has no state of its
/// own: it expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveState {
    /// The partner has timed out, or no LACPDU has arrived yet.
    Expired,
    /// No LACPDU has arrived for a long time; the partner is unknown.
    #[default]
    Defaulted,
    /// The partner information is current.
    Current,
}

impl ReceiveState {
    /// Returns the word that `lacp/show` prints.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Defaulted => "defaulted",
            Self::Current => "current",
        }
    }
}

/// Counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LacpCounters {
    /// LACPDUs sent.
    pub sent: u64,
    /// LACPDUs received.
    pub received: u64,
    /// Malformed or unknown slow-protocols frames received.
    pub malformed: u64,
    /// Markers answered.
    pub markers: u64,
    /// Timeouts of the partner.
    pub expired: u64,
    /// Transitions to the default partner.
    pub defaulted: u64,
    /// Carrier changes.
    pub carrier_changes: u64,
}

/// A port of a group.
#[derive(Debug)]
pub struct LacpPort {
    pub(super) settings: LacpPortSettings,
    has_carrier: bool,
    receive: ReceiveState,
    /// The information that the partner sent.
    partner: LacpInfo,
    /// The port is attached to the aggregator (`SYNCHRONIZATION` of our state).
    attached: bool,
    /// The port announces that it collects and distributes.
    announces_carrying: bool,
    /// The deadline of the next LACPDU from the partner.
    current_until: Option<Instant>,
    /// The time of the last transmission, from which the periodic interval runs.
    periodic: Option<Instant>,
    /// The partner needs an update (`NTT`).
    needs_transmission: bool,
    /// Times of the last transmissions, the oldest first.
    sent_times: [Option<Instant>; SENT_MAX],
    pub(super) counters: LacpCounters,
}

impl LacpPort {
    /// Returns a port without carrier.
    pub(super) fn new(settings: LacpPortSettings) -> Self {
        Self {
            settings,
            has_carrier: false,
            receive: ReceiveState::Defaulted,
            partner: LacpInfo::default(),
            attached: false,
            announces_carrying: true,
            current_until: None,
            periodic: None,
            needs_transmission: false,
            sent_times: [None; SENT_MAX],
            counters: LacpCounters::default(),
        }
    }

    /// Returns the state of the receive machine.
    pub const fn receive(&self) -> ReceiveState {
        self.receive
    }

    /// Returns the information that the partner sent.
    pub const fn partner(&self) -> &LacpInfo {
        &self.partner
    }

    /// Returns whether the port is attached to the aggregator.
    pub const fn is_attached(&self) -> bool {
        self.attached
    }

    /// Returns the counters.
    pub const fn counters(&self) -> LacpCounters {
        self.counters
    }

    /// Returns whether both ends are in synchronization, so that the port may carry frames.
    pub(crate) const fn is_distributing(&self) -> bool {
        self.attached && self.partner.state.has(LacpState::SYNCHRONIZATION)
    }

    /// Returns the information that the port sends about itself. As in Open vSwitch, an attached
    /// port announces collecting and distributing before the partner is in synchronization.
    pub fn actor(&self, of: &LacpSettings) -> LacpInfo {
        let distributing = self.announces_carrying;
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

    pub(super) fn request_transmission(&mut self) {
        self.needs_transmission = true;
    }

    /// Sets the carrier state.
    pub(super) fn handle_carrier(&mut self, of: &LacpSettings, up: bool, now: Instant) {
        if std::mem::replace(&mut self.has_carrier, up) == up {
            return;
        }
        self.counters.carrier_changes += 1;
        if of.activity == LacpActivity::Active || self.receive == ReceiveState::Current {
            self.expire(now);
        }
    }

    /// Processes a LACPDU (`recordPDU`, `update_NTT`).
    pub(super) fn handle_pdu(&mut self, of: &LacpSettings, pdu: &Lacpdu, now: Instant) {
        self.counters.received += 1;
        if !self.has_carrier {
            return;
        }
        let actor = self.actor(of);
        let reported = &pdu.partner;
        let same = |bits: u8| (reported.state.0 ^ actor.state.0) & bits == 0;
        let matches_actor = reported.system == actor.system
            && (reported.port, reported.port_priority, reported.key)
                == (actor.port, actor.port_priority, actor.key)
            && same(LacpState::AGGREGATION.0);
        let theirs = pdu.actor.state;
        let is_active = theirs.has(LacpState::ACTIVITY)
            || (of.activity == LacpActivity::Active && reported.state.has(LacpState::ACTIVITY));
        let in_sync = theirs.has(LacpState::SYNCHRONIZATION)
            && (matches_actor || !theirs.has(LacpState::AGGREGATION))
            && is_active;
        let others = LacpState::ACTIVITY.0 | LacpState::TIMEOUT.0 | LacpState::SYNCHRONIZATION.0;
        if !matches_actor || !same(others) {
            self.needs_transmission = true;
        }
        self.partner = pdu.actor;
        self.partner.state = theirs.with(LacpState::SYNCHRONIZATION, in_sync);
        self.receive = ReceiveState::Current;
        let timeout = if of.is_fast {
            SHORT_TIMEOUT
        } else {
            LONG_TIMEOUT
        };
        self.current_until = Some(now + timeout);
    }

    /// Executes expired timers.
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
                self.partner = LacpInfo::default();
                self.needs_transmission = true;
            }
            ReceiveState::Defaulted => {}
        }
    }

    fn expire(&mut self, now: Instant) {
        self.receive = ReceiveState::Expired;
        // Request and expect fast LACPDUs from a partner that has timed out.
        self.partner.state = self
            .partner
            .state
            .with(LacpState::SYNCHRONIZATION, false)
            .with(LacpState::TIMEOUT, true);
        self.current_until = Some(now + SHORT_TIMEOUT);
        self.needs_transmission = true;
    }

    /// Attaches the port to the aggregator, or detaches it (the mux machine). `negotiated` is true
    /// if any port is attached.
    pub(super) fn attach(&mut self, attached: bool, negotiated: bool) {
        self.announces_carrying = attached || !negotiated;
        if self.attached != attached {
            self.attached = attached;
            self.needs_transmission = true;
        }
    }

    /// Returns the transmission interval; `None` if neither end is active, since two passive ends
    /// send nothing.
    fn interval(&self, of: &LacpSettings) -> Option<Duration> {
        let is_active =
            of.activity == LacpActivity::Active || self.partner.state.has(LacpState::ACTIVITY);
        if !self.has_carrier || !is_active {
            return None;
        }
        // A partner that is connected later need not wait for half a minute.
        let is_unknown = self.receive == ReceiveState::Defaulted;
        Some(
            if is_unknown || self.partner.state.has(LacpState::TIMEOUT) {
                FAST_PERIODIC
            } else {
                SLOW_PERIODIC
            },
        )
    }

    /// Returns the time of the next transmission.
    pub(super) fn next_transmission(&self, of: &LacpSettings) -> Option<Instant> {
        let interval = self.interval(of)?;
        let [oldest, ..] = self.sent_times;
        let allowed = oldest.map_or(Instant::START, |sent| sent + FAST_PERIODIC);
        if self.needs_transmission {
            return Some(allowed);
        }
        // The interval may be shorter than at the last LACPDU.
        let due = self.periodic.map_or(Instant::START, |last| last + interval);
        Some(due.max(allowed))
    }

    /// Returns the time at which [`LacpPort::handle_timeout`] is due.
    pub(super) const fn next_timeout(&self) -> Option<Instant> {
        self.current_until
    }

    /// Returns the LACPDU that is due, if any.
    pub(super) fn poll(&mut self, of: &LacpSettings, now: Instant) -> Option<Lacpdu> {
        if self.next_transmission(of).is_none_or(|due| now < due) {
            return None;
        }
        self.sent_times.rotate_left(1);
        self.sent_times[SENT_MAX - 1] = Some(now);
        self.periodic = Some(now);
        self.needs_transmission = false;
        self.counters.sent += 1;
        Some(Lacpdu {
            actor: self.actor(of),
            partner: self.partner,
            collector_delay: 0,
        })
    }
}
