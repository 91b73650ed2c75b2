//! Scheduled bundles: commits with an execution time (OF 1.5.1, 6.9 and 7.3.9.9). The clocks of the
//! controller and the switch have to be synchronized by other means; this code does not set them.

use std::time::Duration;

use base::{Instant, Xid};
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
pub(super) struct ScheduledBundle {
    at: Instant,
    id: ConnectionId,
    xid: Xid,
    control: BundleControl,
    messages: Vec<BundleMessage>,
}

impl ScheduledBundle {
    /// Returns whether the bundle belongs to this connection.
    pub(super) fn belongs_to(&self, id: ConnectionId) -> bool {
        self.id == id
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

    /// Returns the execution time of a commit; none for an immediate commit.
    pub(super) fn commit_time(
        &self,
        control: &BundleControl,
        now: Instant,
    ) -> Result<Option<Instant>, Refusal> {
        let time = match (control.flags.contains(BundleFlags::TIME), control.time) {
            (false, None) => return Ok(None),
            (true, Some(time)) => time,
            (true, None) | (false, Some(_)) => return Err(Refusal::BundleBadFlags),
        };
        let present = self.wall_time(now);
        if time.0 > present.0 + FUTURE_MAX {
            return Err(Refusal::BundleScheduleFuture);
        }
        if time.0 + PAST_MAX < present.0 {
            return Err(Refusal::BundleSchedulePast);
        }
        let ahead = time.0.saturating_sub(present.0);
        Ok((!ahead.is_zero()).then(|| now + ahead))
    }

    /// Stores a bundle until its execution time.
    pub(super) fn schedule(
        &mut self,
        at: Instant,
        (id, xid): (ConnectionId, Xid),
        control: BundleControl,
    ) -> Result<(), Refusal> {
        if self.scheduled.len() >= SCHEDULED_MAX {
            return Err(Refusal::BundleOutOfBundles);
        }
        let messages = self
            .peer(id)?
            .bundles
            .commit(control.bundle, control.flags)?;
        self.scheduled.push(ScheduledBundle {
            at,
            id,
            xid,
            control,
            messages,
        });
        Ok(())
    }

    /// Discards a scheduled bundle. Returns whether there was one.
    pub(super) fn unschedule(&mut self, id: ConnectionId, control: &BundleControl) -> bool {
        let before = self.scheduled.len();
        self.scheduled
            .retain(|waiting| waiting.id != id || waiting.control.bundle != control.bundle);
        self.scheduled.len() < before
    }

    /// Commits due bundles in the order of their execution times. The reply or the error is sent
    /// only then, because it reports the result of the commit (OF 1.5.1, 7.3.9), and there is none
    /// earlier. The switch of the authors of EXT-340, the extension that became this section, did
    /// so too.
    pub(super) fn commit_scheduled(&mut self, now: Instant) {
        self.scheduled.sort_by_key(|waiting| waiting.at);
        let count = self.scheduled.partition_point(|waiting| waiting.at <= now);
        let due: Vec<_> = self.scheduled.drain(..count).collect();
        for waiting in due {
            let mut effects = Vec::new();
            let ScheduledBundle {
                id, xid, control, ..
            } = waiting;
            match self.commit(id, waiting.messages, now, &mut effects) {
                Ok(()) => self.queue_commit_reply(id, xid, control),
                Err(refusal) => {
                    effects.push(Effect::Refuse(id, xid, refusal, excerpt(xid, control)))
                }
            }
            self.deferred_effects.extend(effects);
        }
    }

    /// Returns the execution time of the next scheduled bundle.
    pub(super) fn next_commit(&self) -> Option<Instant> {
        self.scheduled.iter().map(|waiting| waiting.at).min()
    }

    fn wall_time(&self, now: Instant) -> WallTime {
        let WallTime(started) = self.identity.started;
        WallTime(started + now.since(Instant::START))
    }
}

/// Returns the first bytes of a commit request that is refused at its execution time.
fn excerpt(xid: Xid, control: BundleControl) -> Excerpt {
    let mut bytes = Vec::new();
    let commit = BundleControl {
        step: BundleStep::CommitRequest,
        ..control
    };
    let message = Message::BundleControl(commit);
    message
        .encode(xid, Version::V15, &mut bytes)
        .expect("only 1.5 has bundles with a time");
    Excerpt::of(&bytes)
}
