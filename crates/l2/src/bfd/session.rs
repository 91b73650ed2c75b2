//! A session: reception and transmission of control packets, and the poll sequence (RFC 5880,
//! 6.5, 6.8.6 and 6.8.7).

use std::time::Duration;

use base::{Instant, SplitMix64};
use packet::wire::bfd::{self, BfdAddresses, BfdControl, BfdDiagnostic, BfdFlags, BfdState};
use packet::{Frame, MacAddr};

use super::decay::Decay;
use super::intervals::{Intervals, announced, jittered, micros};
use super::status::{BfdEndStatus, BfdStatus, DiscardedBfd};
use super::{BfdConfig, BfdIdentity};

/// The interval at which the frames received on the interface are counted, if they matter.
const COUNT_INTERVAL: Duration = Duration::from_millis(100);

/// The shortest time for which received frames prove that the path forwards.
const FORWARDING_MIN: Duration = Duration::from_secs(2);

/// The number of receive intervals within which one control packet must arrive, if received frames
/// replace others.
const DEMAND_INTERVALS: u32 = 100;

/// A session.
#[derive(Debug)]
pub struct BfdSession {
    config: BfdConfig,
    identity: BfdIdentity,
    random: SplitMix64,
    state: BfdState,
    diagnostic: BfdDiagnostic,
    flags: BfdFlags,
    remote: RemoteSystem,
    intervals: Intervals,
    /// The local intervals that a poll sequence announces: transmission and reception.
    polled: [Duration; 2],
    last_tx: Option<Instant>,
    /// The time of the next transmission; none is at once.
    next_tx: Option<Instant>,
    detection_expires: Option<Instant>,
    decay: Decay,
    /// Frames that the interface had received at the last count.
    rx_frames: u64,
    /// The time of the last count.
    counted: Instant,
    /// The times until which received frames, and the last control packet, prove that the path
    /// forwards.
    frames_expire: Option<Instant>,
    demand_expires: Option<Instant>,
    is_forwarding: bool,
    forwarding_override: Option<bool>,
    flaps: u64,
    has_changed: bool,
}

/// The state of the remote system, as it announced it.
#[derive(Clone, Copy, Debug, Default)]
struct RemoteSystem {
    state: BfdState,
    diagnostic: BfdDiagnostic,
    flags: BfdFlags,
    discriminator: u32,
    multiplier: u8,
    /// The remote system wants no periodic packets (RFC 5880, 6.8.7).
    is_silent: bool,
}

impl BfdSession {
    /// Returns a session that is down. `rx_frames` is the number of frames received so far.
    pub fn new(config: &BfdConfig, identity: BfdIdentity, rx_frames: u64, now: Instant) -> Self {
        let mut session = Self {
            config: BfdConfig {
                decay_min_rx: None,
                cpath_down: false,
                ..config.clone()
            },
            identity,
            random: SplitMix64::new(identity.seed),
            state: BfdState::Down,
            diagnostic: BfdDiagnostic::NONE,
            flags: BfdFlags::default(),
            remote: RemoteSystem::default(),
            intervals: Intervals {
                min_tx: config.min_tx,
                min_rx: config.min_rx,
                remote_min_tx: Duration::ZERO,
                remote_min_rx: announced(0),
            },
            polled: [config.min_tx, config.min_rx],
            last_tx: None,
            next_tx: None,
            detection_expires: None,
            decay: Decay::default(),
            rx_frames,
            counted: now,
            frames_expire: None,
            demand_expires: None,
            is_forwarding: false,
            forwarding_override: None,
            flaps: 0,
            has_changed: true,
        };
        session.configure(config, rx_frames, now);
        session
    }

    /// Replaces the configuration. New intervals are announced by a poll sequence; while the
    /// session is up, an interval in use changes only after the remote system's answer if it would
    /// break the remote system's timing (RFC 5880, 6.8.3).
    pub fn configure(&mut self, config: &BfdConfig, rx_frames: u64, now: Instant) {
        let old = std::mem::replace(&mut self.config, config.clone());
        let (is_up, is_polling) = (self.state == BfdState::Up, self.is_polling());
        let mut polls = false;
        if old.min_tx != config.min_tx {
            if !is_up || (!is_polling && config.min_tx < self.intervals.min_tx) {
                self.intervals.min_tx = config.min_tx;
            }
            polls = true;
        }
        let rx_changes = old.min_rx != config.min_rx;
        if rx_changes {
            if !is_up || (!is_polling && config.min_rx > self.intervals.min_rx) {
                self.intervals.min_rx = config.min_rx;
            }
            polls = true;
        }
        if old.decay_min_rx != config.decay_min_rx || rx_changes {
            self.decay.min_rx = config
                .decay_min_rx
                .filter(|decayed| *decayed >= config.min_rx);
            self.decay.is_active = false;
            self.decay.begin(rx_frames, now);
            polls = true;
        }
        if old.cpath_down != config.cpath_down {
            self.set_state(self.state, BfdDiagnostic::NONE, rx_frames, now);
            polls = true;
        }
        if old.forwarding_if_rx != config.forwarding_if_rx {
            self.frames_expire = None;
            if is_up && config.forwarding_if_rx {
                self.note_frames(now);
            }
        } else if is_up && config.forwarding_if_rx && old.multiplier != config.multiplier {
            self.note_frames(now);
        }
        if polls {
            self.begin_poll();
        }
        self.update_forwarding(now);
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &BfdConfig {
        &self.config
    }

    /// Returns whether the interface may be used to forward frames.
    pub fn is_forwarding(&self) -> bool {
        self.forwarding_override.unwrap_or(self.is_forwarding)
    }

    /// Sets whether the interface forwards, whatever the session's state is; `None` ends that.
    pub fn override_forwarding(&mut self, forwarding: Option<bool>, now: Instant) {
        self.forwarding_override = forwarding;
        self.has_changed = true;
        self.update_forwarding(now);
    }

    /// Returns whether the status in the database has changed since the last call.
    pub fn poll_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Returns the status.
    pub fn status(&self) -> BfdStatus {
        BfdStatus {
            is_forwarding: self.is_forwarding(),
            multiplier: self.config.multiplier,
            cpath_down: self.config.cpath_down,
            tx_interval: self.intervals.transmission(self.state),
            rx_interval: self.intervals.reception(),
            detection_expires: self.detection_expires,
            next_tx: self.next_tx,
            last_tx: self.last_tx,
            local: BfdEndStatus {
                flags: self.flags,
                state: self.state,
                diagnostic: self.diagnostic,
                discriminator: self.identity.discriminator,
                min_tx: self.intervals.desired_min_tx(self.state),
                min_rx: self.intervals.min_rx,
            },
            remote: BfdEndStatus {
                flags: self.remote.flags,
                state: self.remote.state,
                diagnostic: self.remote.diagnostic,
                discriminator: self.remote.discriminator,
                min_tx: self.intervals.remote_min_tx,
                min_rx: self.intervals.remote_min_rx,
            },
            remote_multiplier: self.remote.multiplier,
            flaps: self.flaps,
        }
    }

    /// Executes expired timers. `rx_frames` is the number of frames received so far.
    pub fn handle_timeout(&mut self, rx_frames: u64, now: Instant) {
        self.counted = now;
        if rx_frames > std::mem::replace(&mut self.rx_frames, rx_frames)
            && self.config.forwarding_if_rx
        {
            self.update_forwarding(now);
            self.note_frames(now);
        }
        let was_decayed = self.decay.is_active;
        if self.is_detecting() && self.detection_expires.is_some_and(|expires| expires <= now) {
            self.set_state(BfdState::Down, BfdDiagnostic::EXPIRED, rx_frames, now);
        }
        self.update_forwarding(now);
        if self.state == BfdState::Up {
            self.decay.check(rx_frames, now);
        }
        let Intervals { min_tx, min_rx, .. } = self.intervals;
        if min_tx != self.config.min_tx
            || (min_rx != self.config.min_rx && Some(min_rx) != self.decay.min_rx)
            || self.decay.is_active != was_decayed
        {
            self.begin_poll();
        }
    }

    /// Returns the time at which [`BfdSession::handle_timeout`] or [`BfdSession::poll_transmit`] is
    /// due.
    pub fn next_timeout(&self) -> Option<Instant> {
        let detection = self.detection_expires.filter(|_| self.is_detecting());
        let decay = self.decay.next_check();
        let decay = decay.filter(|_| self.state == BfdState::Up);
        let count = self
            .config
            .forwarding_if_rx
            .then(|| self.counted + COUNT_INTERVAL);
        let due = [self.next_transmission(), detection, decay, count];
        due.into_iter().flatten().min()
    }

    /// Returns the frame that is due, if any. `own` is the interface's address.
    pub fn poll_transmit(&mut self, own: MacAddr, now: Instant) -> Option<Frame> {
        self.next_transmission().filter(|due| *due <= now)?;
        let [min_tx, min_rx] = match self.is_polling() {
            true => self.polled,
            false => [
                self.intervals.desired_min_tx(self.state),
                self.intervals.min_rx,
            ],
        };
        let control = BfdControl {
            diagnostic: self.diagnostic,
            state: self.state,
            flags: self.flags,
            multiplier: self.config.multiplier,
            my_discriminator: self.identity.discriminator,
            your_discriminator: self.remote.discriminator,
            min_tx_us: micros(min_tx),
            min_rx_us: micros(min_rx),
            min_echo_rx_us: 0,
        };
        self.flags = self.flags.with(BfdFlags::FINAL, false);
        self.last_tx = Some(now);
        self.schedule_transmission(now);
        let addresses = BfdAddresses {
            eth_dst: self.config.eth_dst,
            eth_src: self.config.eth_src.unwrap_or(own),
            ip_src: self.config.ip_src,
            ip_dst: self.config.ip_dst,
            udp_src: self.identity.udp_src,
        };
        Some(Frame::from_bytes(&addresses.emit(&control)))
    }

    /// Handles a control packet (RFC 5880, 6.8.6); one that does not fit the session is discarded.
    ///
    /// # Errors
    /// The packet is discarded, for this reason.
    pub fn handle_packet(
        &mut self,
        (payload, ttl): (&[u8], u8),
        rx_frames: u64,
        now: Instant,
    ) -> Result<(), DiscardedBfd> {
        self.decay.control_packets += 1;
        self.update_forwarding(now);
        if ttl != bfd::TTL {
            return Err(DiscardedBfd::Ttl(ttl));
        }
        let control = BfdControl::parse(payload)?;
        match control.your_discriminator {
            0 if control.state > BfdState::Down => return Err(DiscardedBfd::NoDiscriminator),
            0 => {}
            other if other != self.identity.discriminator => {
                return Err(DiscardedBfd::Discriminator(other));
            }
            _ => {}
        }
        self.take_announcement(&control, now);
        self.advance(control.state, rx_frames, now);
        if self.config.forwarding_if_rx {
            self.demand_expires = Some(now + self.config.min_rx * DEMAND_INTERVALS);
        }
        self.update_forwarding(now);
        Ok(())
    }

    /// Stores the announcement of the remote system, and answers polls.
    fn take_announcement(&mut self, control: &BfdControl, now: Instant) {
        self.has_changed |= self.remote.state != control.state;
        self.remote = RemoteSystem {
            state: control.state,
            diagnostic: control.diagnostic,
            flags: control.flags,
            discriminator: control.my_discriminator,
            multiplier: control.multiplier,
            is_silent: control.min_rx_us == 0,
        };
        if control.flags.has(BfdFlags::FINAL) && self.is_polling() {
            [self.intervals.min_tx, self.intervals.min_rx] = self.polled;
            self.flags = self.flags.with(BfdFlags::POLL, false);
        }
        if control.flags.has(BfdFlags::POLL) {
            // A packet never has both flags (RFC 5880, 6.5).
            self.flags = self.flags.with(BfdFlags::POLL, false);
            self.flags = self.flags.with(BfdFlags::FINAL, true);
        }
        let min_rx = announced(control.min_rx_us);
        if std::mem::replace(&mut self.intervals.remote_min_rx, min_rx) != min_rx
            && self.next_tx.is_some()
        {
            self.schedule_transmission(now);
        }
        self.intervals.remote_min_tx = announced(control.min_tx_us);
        let detection = self.intervals.reception() * u32::from(control.multiplier);
        self.detection_expires = Some(now + detection);
    }

    /// Follows the state of the remote system.
    fn advance(&mut self, remote: BfdState, rx_frames: u64, now: Instant) {
        use BfdState::{AdminDown, Down, Init, Up};
        let next = match (self.state, remote) {
            (AdminDown, _) | (Down, AdminDown | Up) | (Init, Down) | (Up, Init | Up) => return,
            (Down, Down) => (Init, self.diagnostic),
            (Down, Init) | (Init, Init | Up) => (Up, self.diagnostic),
            (Init, AdminDown) | (Up, AdminDown | Down) => (Down, BfdDiagnostic::NEIGHBOR_DOWN),
        };
        self.set_state(next.0, next.1, rx_frames, now);
    }

    fn set_state(
        &mut self,
        state: BfdState,
        diagnostic: BfdDiagnostic,
        rx_frames: u64,
        now: Instant,
    ) {
        let diagnostic = match self.config.cpath_down {
            true => BfdDiagnostic::CONCATENATED_PATH_DOWN,
            false => diagnostic,
        };
        if (self.state, self.diagnostic) == (state, diagnostic) {
            return;
        }
        (self.state, self.diagnostic) = (state, diagnostic);
        if state <= BfdState::Down {
            self.remote = RemoteSystem {
                multiplier: self.remote.multiplier,
                ..RemoteSystem::default()
            };
            self.intervals.remote_min_rx = announced(0);
            self.intervals.remote_min_tx = Duration::ZERO;
            if std::mem::take(&mut self.decay.is_active) {
                self.intervals.min_rx = self.config.min_rx;
            }
        }
        if state == BfdState::Up {
            self.decay.begin(rx_frames, now);
            // The interval is shorter than that of a session that is not up (RFC 5880, 6.8.7).
            if self.next_tx.is_some() {
                self.schedule_transmission(now);
            }
        }
        self.has_changed = true;
    }

    /// Begins a poll sequence, which announces the configured intervals (RFC 5880, 6.5).
    fn begin_poll(&mut self) {
        let is_busy = self.is_polling() || self.flags.has(BfdFlags::FINAL);
        if self.is_detecting() && !is_busy {
            let decayed = self.decay.min_rx.filter(|_| self.decay.is_active);
            self.polled = [self.config.min_tx, decayed.unwrap_or(self.config.min_rx)];
            self.flags = self.flags.with(BfdFlags::POLL, true);
            self.next_tx = None;
        }
    }

    /// Returns whether the session waits for the answer to a poll.
    const fn is_polling(&self) -> bool {
        self.flags.has(BfdFlags::POLL)
    }

    /// Returns whether the detection time runs.
    fn is_detecting(&self) -> bool {
        self.state > BfdState::Down
    }

    /// Returns the time of the next transmission. A silent remote system receives only answers.
    fn next_transmission(&self) -> Option<Instant> {
        match self.flags.has(BfdFlags::FINAL) {
            true => Some(Instant::START),
            false if self.remote.is_silent => None,
            false => Some(self.next_tx.unwrap_or(Instant::START)),
        }
    }

    fn schedule_transmission(&mut self, now: Instant) {
        let interval = self.intervals.transmission(self.state);
        let interval = jittered(interval, self.config.multiplier, &mut self.random);
        self.next_tx = Some(self.last_tx.unwrap_or(now) + interval);
    }

    /// Notes that frames were received.
    fn note_frames(&mut self, now: Instant) {
        let time = self.intervals.reception() * u32::from(self.config.multiplier);
        self.frames_expire = Some(now + time.max(FORWARDING_MIN));
    }

    /// Recomputes whether the interface forwards. An override stops that, and counts no change.
    fn update_forwarding(&mut self, now: Instant) {
        if self.forwarding_override.is_some() {
            return;
        }
        let lasts = |expires: Option<Instant>| expires.is_some_and(|expires| expires > now);
        let by_frames =
            self.config.forwarding_if_rx && lasts(self.frames_expire) && lasts(self.demand_expires);
        let remote_path_is_down = [
            BfdDiagnostic::PATH_DOWN,
            BfdDiagnostic::CONCATENATED_PATH_DOWN,
            BfdDiagnostic::REVERSE_CONCATENATED_PATH_DOWN,
        ];
        let is_forwarding = (self.state == BfdState::Up || by_frames)
            && !remote_path_is_down.contains(&self.remote.diagnostic);
        if std::mem::replace(&mut self.is_forwarding, is_forwarding) != is_forwarding {
            self.flaps += 1;
            self.has_changed = true;
        }
    }
}
