//! A maintenance point: transmission and reception of messages, and the periodic check for faults.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Instant, SplitMix64};
use packet::wire::cfm::{self, ContinuityCheck, ContinuityCheckHeader, MAID_LEN, MalformedCfm};
use packet::wire::ethernet::EtherType;
use packet::wire::vlan::VlanTag;
use packet::{Frame, MacAddr};

use super::{CfmConfig, CfmFault};
use config::CcmVlan;

/// The transmission intervals of the standard, in milliseconds, by their codes (802.1ag, table
/// 21-16); code 0 is none. Open vSwitch counts the first as 3 ms.
const INTERVALS_MS: [u64; 8] = [0, 3, 10, 100, 1000, 10_000, 60_000, 600_000];

/// The maintenance association of Open vSwitch: domain name and short name, both "ovs".
const ASSOCIATION: [u8; 10] = *b"\x04\x03ovs\x02\x03ovs";

/// The largest number of remote points.
const REMOTE_MAX: usize = 256;

/// The number of fault checks after which the health is recomputed.
const HEALTH_CHECKS: u32 = 6;

/// The number of messages of a healthy remote point in that time, since a check is due after 3.5
/// intervals.
const HEALTH_MESSAGES: u32 = HEALTH_CHECKS * 7 / 2;

/// The shortest interval that fault checks assume in demand mode: counters of interfaces are late.
const DEMAND_INTERVAL_MIN: Duration = Duration::from_millis(500);

/// The number of intervals within which one message must arrive in demand mode.
const DEMAND_INTERVALS: u32 = 100;

/// A maintenance point.
#[derive(Debug)]
pub struct CfmPoint {
    config: CfmConfig,
    random: SplitMix64,
    /// The code of the transmission interval; zero for an interval of the extended mode.
    interval_code: u8,
    interval: Duration,
    /// A check for faults has completed.
    has_checked: bool,
    faults: CfmFault,
    /// Faults since the last check.
    received_faults: CfmFault,
    is_remote_up: bool,
    fault_override: Option<bool>,
    sequence: u32,
    /// The time of the next transmission; none is at once.
    next_tx: Option<Instant>,
    next_check: Instant,
    remotes: BTreeMap<u64, RemotePoint>,
    /// The identifiers of the remote points that were heard before the last check.
    heard: Vec<u64>,
    health: Option<u8>,
    /// Checks since the health was recomputed.
    health_checks: u32,
    /// Frames that the interface had received at the last check.
    rx_frames: u64,
    demand_expires: Option<Instant>,
    flaps: u64,
    has_changed: bool,
}

/// A remote maintenance point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemotePoint {
    /// A message arrived since the last check.
    pub is_heard: bool,
    /// The point is operationally up.
    pub is_up: bool,
    /// The messages without faults since the health was recomputed.
    messages: u32,
}

/// The state of a point, for operators and for the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CfmStatus {
    /// The identifier.
    pub mpid: u64,
    /// Extended mode.
    pub is_extended: bool,
    /// An operator has set or cleared the fault.
    pub is_overridden: bool,
    /// The faults.
    pub faults: CfmFault,
    /// The percentage of expected messages that arrived, if there is one remote point at most.
    pub health: Option<u8>,
    /// This end is operationally up.
    pub is_up: bool,
    /// All remote points are operationally up.
    pub is_remote_up: bool,
    /// The transmission interval.
    pub interval: Duration,
    /// The time of the next message; none is at once.
    pub next_tx: Option<Instant>,
    /// The time of the next check for faults.
    pub next_check: Instant,
    /// The remote points, by identifier.
    pub remotes: BTreeMap<u64, RemotePoint>,
    /// The identifiers of the remote points that were heard before the last check.
    pub heard: Vec<u64>,
    /// Number of changes between faults and none.
    pub flaps: u64,
}

impl CfmPoint {
    /// Returns a point. `rx_frames` is the number of frames received so far.
    pub fn new(config: CfmConfig, seed: u64, rx_frames: u64, now: Instant) -> Self {
        let mut point = Self {
            config: CfmConfig {
                is_demand: false,
                ..config
            },
            random: SplitMix64::new(seed),
            interval_code: 0,
            interval: Duration::ZERO,
            has_checked: false,
            faults: CfmFault::NONE,
            received_faults: CfmFault::NONE,
            is_remote_up: true,
            fault_override: None,
            sequence: 0,
            next_tx: None,
            next_check: now,
            remotes: BTreeMap::new(),
            heard: Vec::new(),
            health: None,
            health_checks: 0,
            rx_frames,
            demand_expires: None,
            flaps: 0,
            has_changed: true,
        };
        point.configure(config, rx_frames, now);
        point
    }

    /// Replaces the configuration. A new interval begins at once.
    pub fn configure(&mut self, config: CfmConfig, rx_frames: u64, now: Instant) {
        let is_demand = config.is_extended && config.is_demand;
        if is_demand && !self.config.is_demand {
            self.rx_frames = rx_frames;
        }
        self.config = CfmConfig {
            is_demand,
            ..config
        };
        let (code, interval) = interval_of(&self.config);
        if (code, interval) != (self.interval_code, self.interval) {
            (self.interval_code, self.interval) = (code, interval);
            self.next_tx = None;
            self.next_check = now + self.check_interval();
        }
        self.has_changed = true;
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &CfmConfig {
        &self.config
    }

    /// Returns whether the interface may be used: there is no fault, and in extended mode no remote
    /// point is operationally down.
    pub fn is_operational(&self) -> bool {
        self.faults().is_none() && (self.is_remote_up || !self.config.is_extended)
    }

    /// Sets or clears the fault, whatever messages arrive; `None` ends that.
    pub const fn override_fault(&mut self, fault: Option<bool>) {
        self.fault_override = fault;
        self.has_changed = true;
    }

    /// Returns whether the status in the database has changed since the last call.
    pub fn poll_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Returns the status.
    pub fn status(&self) -> CfmStatus {
        CfmStatus {
            mpid: self.config.mpid,
            is_extended: self.config.is_extended,
            is_overridden: self.fault_override.is_some(),
            faults: self.faults(),
            health: self.health,
            is_up: self.config.is_up,
            is_remote_up: self.is_remote_up,
            interval: self.interval,
            next_tx: self.next_tx,
            next_check: self.next_check,
            remotes: self.remotes.clone(),
            heard: self.heard.clone(),
            flaps: self.flaps,
        }
    }

    /// Returns the time at which [`CfmPoint::poll_transmit`] or [`CfmPoint::handle_timeout`] is
    /// due.
    pub fn next_timeout(&self) -> Instant {
        self.next_tx.unwrap_or(Instant::START).min(self.next_check)
    }

    /// Returns the frame that is due, if any. `own` is the interface's address.
    pub fn poll_transmit(&mut self, own: MacAddr, now: Instant) -> Option<Frame> {
        if self.next_tx.is_some_and(|due| now < due) {
            return None;
        }
        self.next_tx = Some(now + self.interval);
        self.sequence = self.sequence.wrapping_add(1);
        let is_extended = self.config.is_extended;
        let mut maid = [0; MAID_LEN];
        maid[..ASSOCIATION.len()].copy_from_slice(&ASSOCIATION);
        let message = ContinuityCheck {
            sequence: self.sequence,
            remote_defect: self.has_checked && self.remotes.is_empty(),
            interval: self.interval_code,
            // The standard's identifier has no meaning in extended mode.
            mpid: u16::try_from(self.config.mpid % (CfmConfig::MPID_MAX + 1)).unwrap_or_default(),
            maid,
            interval_ms: match self.interval_code {
                0 => u16::try_from(self.interval.as_millis()).unwrap_or(u16::MAX),
                _ => 0,
            },
            mpid_extended: if is_extended { self.config.mpid } else { 0 },
            is_down: is_extended && !self.config.is_up,
        };
        let header = ContinuityCheckHeader {
            dst: self.address(),
            src: own,
            tag: self.tag(),
        };
        Some(Frame::from_bytes(&header.emit(&message)))
    }

    /// Handles a received message.
    ///
    /// # Errors
    /// The message is malformed and is discarded.
    pub fn handle_message(&mut self, bytes: &[u8], now: Instant) -> Result<(), MalformedCfm> {
        let message = ContinuityCheck::parse(bytes)?;
        let (association, rest) = message.maid.split_at(ASSOCIATION.len());
        if association != ASSOCIATION || rest.iter().any(|byte| *byte != 0) {
            self.received_faults.add(CfmFault::ASSOCIATION);
            return Ok(());
        }
        let (mpid, is_down) = match self.config.is_extended {
            true => (message.mpid_extended, message.is_down),
            false => (u64::from(message.mpid), false),
        };
        let mut faults = CfmFault::NONE;
        if message.remote_defect {
            faults.add(CfmFault::REMOTE_DEFECT);
        }
        if mpid == self.config.mpid {
            faults.add(CfmFault::LOOPBACK);
        }
        if self.remotes.len() >= REMOTE_MAX && !self.remotes.contains_key(&mpid) {
            self.received_faults.add(CfmFault::OVERFLOW);
            return Ok(());
        }
        let remote = self.remotes.entry(mpid).or_default();
        (remote.is_heard, remote.is_up) = (true, !is_down);
        if faults.is_none() {
            remote.messages += 1;
            if self.config.is_demand {
                self.demand_expires = Some(now + self.interval * DEMAND_INTERVALS);
            }
        }
        self.received_faults.add(faults);
        Ok(())
    }

    /// Checks for faults, if that is due. `rx_frames` is the number of frames received so far.
    pub fn handle_timeout(&mut self, rx_frames: u64, now: Instant) {
        if now < self.next_check {
            return;
        }
        let before = (self.faults, self.health, self.is_remote_up, self.flaps);
        let remotes_before = self.heard.len();
        let faults = std::mem::take(&mut self.received_faults);
        let had_faults = !std::mem::replace(&mut self.faults, faults).is_none();
        self.update_health();
        let is_replaced = self.replaces_messages(rx_frames, now);
        let count = self.remotes.len();
        self.heard = self
            .remotes
            .iter()
            .filter(|(_, remote)| remote.is_heard)
            .map(|(mpid, _)| *mpid)
            .collect();
        let mut heard = self
            .remotes
            .values()
            .filter(|remote| remote.is_heard)
            .peekable();
        if heard.peek().is_some() {
            self.is_remote_up = heard.all(|remote| remote.is_up);
        }
        self.remotes
            .retain(|_, remote| std::mem::take(&mut remote.is_heard) || is_replaced);
        if self.remotes.is_empty() {
            self.faults.add(CfmFault::RECEIVE);
        }
        if had_faults == self.faults.is_none() {
            self.flaps += 1;
        }
        let after = (self.faults, self.health, self.is_remote_up, self.flaps);
        self.has_changed |=
            before != after || remotes_before != self.heard.len() || count != self.remotes.len();
        self.has_checked = true;
        self.next_check = now + self.check_interval();
    }

    /// Recomputes the health, if that is due.
    fn update_health(&mut self) {
        if self.health_checks == HEALTH_CHECKS {
            self.health_checks = 0;
            let mut remotes = self.remotes.values_mut();
            self.health = match (remotes.next(), remotes.next()) {
                (None, _) => Some(0),
                (Some(remote), None) => {
                    let percent =
                        std::mem::take(&mut remote.messages).saturating_mul(100) / HEALTH_MESSAGES;
                    u8::try_from(percent.min(100)).ok()
                }
                (Some(_), Some(_)) => None,
            };
        }
        self.health_checks += 1;
    }

    /// Returns whether frames of other kinds replace messages: in demand mode, if frames arrived
    /// since the last check, and a message not long ago.
    fn replaces_messages(&mut self, rx_frames: u64, now: Instant) -> bool {
        if !self.config.is_demand {
            return false;
        }
        let before = std::mem::replace(&mut self.rx_frames, rx_frames);
        self.remotes.len() == 1
            && rx_frames > before
            && self.demand_expires.is_some_and(|expires| now < expires)
    }

    fn faults(&self) -> CfmFault {
        match self.fault_override {
            None => self.faults,
            Some(true) => CfmFault::OVERRIDE,
            Some(false) => CfmFault::NONE,
        }
    }

    /// Returns the interval between two checks for faults: 3.5 intervals of transmission (802.1ag,
    /// 20.1).
    fn check_interval(&self) -> Duration {
        let interval = match self.config.is_demand {
            true => self.interval.max(DEMAND_INTERVAL_MIN),
            false => self.interval,
        };
        interval * 7 / 2
    }

    /// Returns the destination of messages.
    pub const fn address(&self) -> MacAddr {
        match self.config.is_extended {
            true => cfm::ADDRESS_EXTENDED,
            false => cfm::ADDRESS,
        }
    }

    /// Returns the VLAN tag of the next message.
    fn tag(&mut self) -> Option<VlanTag> {
        /// The number of VLAN identifiers.
        const VIDS: u16 = 1 << 12;
        let vid = match self.config.vlan {
            CcmVlan::None => 0,
            CcmVlan::Vid(vid) => vid % VIDS,
            CcmVlan::Random => u16::try_from(self.random.below(VIDS.into())).unwrap_or_default(),
        };
        let tag = VlanTag {
            tpid: EtherType::VLAN.0,
            pcp: self.config.pcp & 0x7,
            dei: false,
            vid,
        };
        (tag.vid, tag.pcp).ne(&(0, 0)).then_some(tag)
    }
}

/// Returns the code of the interval, and the interval: the longest of the standard that is not
/// longer. Extended mode has any interval, with code zero.
fn interval_of(config: &CfmConfig) -> (u8, Duration) {
    let wanted = config.interval.as_millis();
    let codes = (1..).zip(INTERVALS_MS.into_iter().skip(1));
    let fits = |(_, millis): &(u8, u64)| u128::from(*millis) <= wanted;
    let (code, millis) = codes.filter(fits).last().unwrap_or((1, INTERVALS_MS[1]));
    if config.is_extended && u128::from(millis) != wanted {
        return (
            0,
            config.interval.min(Duration::from_millis(u16::MAX.into())),
        );
    }
    (code, Duration::from_millis(millis))
}
