//! Bundles and time: commits with an execution time (OF 1.5.1, 6.9 and 7.3.9.9), and the expiry of
//! idle bundles. The clocks of the controller and the switch have to be synchronized by other means;
//! this code does not set them.

use std::time::Duration;

use base::{Instant, Xid};
use config::BUNDLE_IDLE_TIMEOUT;
use flow::Refusal;
use openflow::{
    BundleControl, BundleFeatures, BundleFeaturesRequest, BundleFlags, BundleStep, BundleTimes,
    Excerpt, Message, Version, WallTime,
};

use super::{Bridge, ConnectionId, Effect};
use crate::bundles::BundleMessage;

/// The accuracy of an execution time: the wake-up latency of the control thread and its work before
/// the commit, on a machine that is not overloaded.
const ACCURACY: Duration = Duration::from_millis(1);

/// The maximum distance of an execution time in the future: an hour outlives most connections.
const FUTURE_MAX: Duration = Duration::from_secs(3600);

/// The maximum distance of an execution time in the past: an allowance for network delay.
const PAST_MAX: Duration = Duration::from_millis(500);

/// The maximum number of scheduled bundles of a bridge.
const SCHEDULED_MAX: usize = 64;

/// A bundle that waits for its execution time.
#[derive(Debug)]
struct ScheduledBundle {
    at: Instant,
    id: ConnectionId,
    xid: Xid,
    control: BundleControl,
    messages: Vec<BundleMessage>,
}

/// The bundles that wait for their execution times, and the expiry of idle ones.
#[derive(Debug)]
pub(super) struct BundleSchedule {
    waiting: Vec<ScheduledBundle>,
    /// The time without a message after which a bundle that waits for no time expires.
    idle_timeout: Duration,
    /// A time before which no bundle expires; none if there are no bundles.
    next_expiry: Option<Instant>,
}

impl Default for BundleSchedule {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            idle_timeout: BUNDLE_IDLE_TIMEOUT,
            next_expiry: None,
        }
    }
}

impl BundleSchedule {
    /// Removes the bundles of a closed connection.
    pub(super) fn handle_down(&mut self, id: ConnectionId) {
        self.waiting.retain(|waiting| waiting.id != id);
    }

    /// Discards a bundle. Returns whether there was one.
    pub(super) fn discard(&mut self, id: ConnectionId, control: &BundleControl) -> bool {
        let before = self.waiting.len();
        self.waiting
            .retain(|waiting| waiting.id != id || waiting.control.bundle != control.bundle);
        self.waiting.len() < before
    }

    /// Records that a message was added to a bundle at this time.
    pub(super) fn expire_before(&mut self, now: Instant) {
        self.next_expiry.get_or_insert(now + self.idle_timeout);
    }

    /// Returns the time at which a bundle is committed or may expire.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        [self.next_commit(), self.next_expiry]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the execution time of the next bundle.
    fn next_commit(&self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.at).min()
    }

    /// Removes and returns the due bundles in the order of their execution times.
    fn take_due(&mut self, now: Instant) -> Vec<ScheduledBundle> {
        if self.next_commit().is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.waiting.sort_by_key(|waiting| waiting.at);
        let count = self.waiting.partition_point(|waiting| waiting.at <= now);
        self.waiting.drain(..count).collect()
    }
}

impl Bridge {
    /// Returns the features of bundles.
    pub(super) fn bundle_features(
        &self,
        request: BundleFeaturesRequest,
        now: Instant,
    ) -> Result<BundleFeatures, Refusal> {
        // A request cannot change the limits of the execution time.
        if request.flags & BundleFeaturesRequest::SET_SCHEDULE != 0 {
            return Err(Refusal::BundleScheduleUnsupported);
        }
        let wants_time = request.flags & BundleFeaturesRequest::TIMESTAMP != 0;
        Ok(BundleFeatures {
            capabilities: BundleFlags(
                BundleFlags::ATOMIC.0 | BundleFlags::ORDERED.0 | BundleFlags::TIME.0,
            ),
            times: Some(BundleTimes {
                accuracy: WallTime(ACCURACY),
                future_max: WallTime(FUTURE_MAX),
                past_max: WallTime(PAST_MAX),
                now: if wants_time {
                    self.wall_time(now)
                } else {
                    WallTime::default()
                },
            }),
        })
    }

    /// Stores a bundle until its execution time.
    pub(super) fn schedule(
        &mut self,
        at: Instant,
        (id, xid): (ConnectionId, Xid),
        control: BundleControl,
    ) -> Result<(), Refusal> {
        if self.schedule.waiting.len() >= SCHEDULED_MAX {
            return Err(Refusal::BundleOutOfBundles);
        }
        let messages = self
            .peer(id)?
            .bundles
            .commit(control.bundle, control.flags)?;
        self.schedule.waiting.push(ScheduledBundle {
            at,
            id,
            xid,
            control,
            messages,
        });
        Ok(())
    }

    /// Commits due bundles in the order of their execution times. The reply or the error is sent
    /// only then, because it reports the result of the commit (OF 1.5.1, 7.3.9), and there is none
    /// earlier. The switch of the authors of EXT-340, the extension that became this section, did
    /// so too.
    pub(super) fn commit_scheduled(&mut self, now: Instant) {
        for waiting in self.schedule.take_due(now) {
            let mut effects = Vec::new();
            let ScheduledBundle {
                id, xid, control, ..
            } = waiting;
            match self.commit(id, waiting.messages, now, &mut effects) {
                Ok(()) => self.queue_commit_reply(id, xid, control),
                Err(refusal) => {
                    let commit = BundleControl {
                        step: BundleStep::CommitRequest,
                        ..control
                    };
                    let excerpt = excerpt(xid, commit, Version::V15);
                    effects.push(Effect::Refuse(id, xid, refusal, excerpt));
                }
            }
            self.notifications.defer(effects);
        }
    }

    /// Sets the time without a message after which bundles expire.
    pub fn set_bundle_timeout(&mut self, idle: Option<Duration>) {
        self.schedule.idle_timeout = idle.unwrap_or(BUNDLE_IDLE_TIMEOUT);
        self.schedule_expiry();
    }

    /// Discards idle bundles. The controller receives an error for the request that opened the
    /// bundle.
    pub(super) fn expire_bundles(&mut self, now: Instant) {
        if self.schedule.next_expiry.is_none_or(|due| due > now) {
            return;
        }
        let idle = self.schedule.idle_timeout;
        let mut effects = Vec::new();
        for (id, peer) in self.connections.iter_mut() {
            for (xid, control) in peer.bundles.expire(idle, now) {
                let excerpt = excerpt(xid, control, peer.version);
                effects.push(Effect::Refuse(id, xid, Refusal::BundleTimeout, excerpt));
            }
        }
        self.notifications.defer(effects);
        self.publication.request();
        self.schedule_expiry();
    }

    fn schedule_expiry(&mut self) {
        let idle = self.schedule.idle_timeout;
        let peers = self.connections.iter();
        let expiries = peers.filter_map(|(_, peer)| peer.bundles.next_expiry(idle));
        self.schedule.next_expiry = expiries.min();
    }

    /// Returns the wall-clock time.
    pub(super) fn wall_time(&self, now: Instant) -> WallTime {
        let WallTime(started) = self.identity.started;
        WallTime(started + now.since(Instant::START))
    }
}

/// Returns the execution time of a commit; none for an immediate commit.
pub(super) fn commit_time(
    control: &BundleControl,
    present: WallTime,
    now: Instant,
) -> Result<Option<Instant>, Refusal> {
    let time = match (control.flags.contains(BundleFlags::TIME), control.time) {
        (false, None) => return Ok(None),
        (true, Some(time)) => time,
        (true, None) | (false, Some(_)) => return Err(Refusal::BundleBadFlags),
    };
    if time.0 > present.0 + FUTURE_MAX {
        return Err(Refusal::BundleScheduleFuture);
    }
    if time.0 + PAST_MAX < present.0 {
        return Err(Refusal::BundleSchedulePast);
    }
    let ahead = time.0.saturating_sub(present.0);
    Ok((!ahead.is_zero()).then(|| now + ahead))
}

/// Returns a bundle control request as the peer sent it.
fn excerpt(xid: Xid, control: BundleControl, version: Version) -> Excerpt {
    let mut bytes = Vec::new();
    Message::BundleControl(control)
        .encode(xid, version, &mut bytes)
        .expect("the peer sent it in this version");
    Excerpt::of(&bytes)
}
