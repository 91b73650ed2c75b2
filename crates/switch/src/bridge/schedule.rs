//! Bundles that are done at a time which their commit names (OF 1.5.1, 6.9 and
//! 7.3.9.9). The controller's clock and the switch's are the same if both are right;
//! nobody here sets them.

use std::time::Duration;

use base::{Instant, Xid};
use flow::Refusal;
use openflow::{
    BundleControl, BundleFeatures, BundleFeaturesRequest, BundleFlags, BundleStep, BundleTimes,
    Excerpt, Message, Version, WallTime,
};

use super::{Bridge, ConnectionId, Effect};
use crate::bundles::Held;

/// How exactly a time is kept: what it takes the control thread to wake up and to get to
/// its work on a machine that is not overloaded.
const ACCURACY: Duration = Duration::from_millis(1);

/// How far a time may lie in the future: a plan for an hour outlives most connections.
const FUTURE_MAX: Duration = Duration::from_secs(3600);

/// How far a time may lie in the past: what a message may be late on its way.
const PAST_MAX: Duration = Duration::from_millis(500);

/// The most bundles of a bridge that wait for their time.
const SCHEDULED_MAX: usize = 64;

/// A bundle that waits for its time.
#[derive(Debug)]
pub(super) struct Scheduled {
    at: Instant,
    id: ConnectionId,
    xid: Xid,
    control: BundleControl,
    messages: Vec<Held>,
}

impl Scheduled {
    /// Whether it is of this connection.
    pub(super) fn is_of(&self, id: ConnectionId) -> bool {
        self.id == id
    }
}

impl Bridge {
    /// What bundles can do.
    pub(super) fn bundle_features(
        &self,
        asked: BundleFeaturesRequest,
        now: Instant,
    ) -> Result<BundleFeatures, Refusal> {
        // How far a time may lie away cannot be set.
        if asked.flags & BundleFeaturesRequest::SET_SCHEDULE != 0 {
            return Err(Refusal::BundleScheduleUnsupported);
        }
        let told = asked.flags & BundleFeaturesRequest::TIMESTAMP != 0;
        Ok(BundleFeatures {
            capabilities: BundleFlags(
                BundleFlags::ATOMIC.0 | BundleFlags::ORDERED.0 | BundleFlags::TIME.0,
            ),
            times: Some(BundleTimes {
                accuracy: WallTime(ACCURACY),
                future_max: WallTime(FUTURE_MAX),
                past_max: WallTime(PAST_MAX),
                now: if told {
                    self.wall_time(now)
                } else {
                    WallTime::default()
                },
            }),
        })
    }

    /// When a commit is to be done; none for at once.
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

    /// Keeps a bundle until its time.
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
        self.scheduled.push(Scheduled {
            at,
            id,
            xid,
            control,
            messages,
        });
        Ok(())
    }

    /// Forgets a bundle that waits for its time. Tells whether there was one.
    pub(super) fn unschedule(&mut self, id: ConnectionId, control: &BundleControl) -> bool {
        let before = self.scheduled.len();
        self.scheduled
            .retain(|waiting| waiting.id != id || waiting.control.bundle != control.bundle);
        self.scheduled.len() < before
    }

    /// Does the bundles whose time has come, in the order of their times. Only then are their
    /// commits answered: the reply, or the error, tells what became of a commit (OF 1.5.1,
    /// 7.3.9), and before its time nothing has. The authors of the extension that became this
    /// (EXT-340) did so in their switch.
    pub(super) fn commit_scheduled(&mut self, now: Instant) {
        self.scheduled.sort_by_key(|waiting| waiting.at);
        let count = self.scheduled.partition_point(|waiting| waiting.at <= now);
        let due: Vec<_> = self.scheduled.drain(..count).collect();
        for waiting in due {
            let mut effects = Vec::new();
            let Scheduled {
                id, xid, control, ..
            } = waiting;
            match self.commit(id, waiting.messages, now, &mut effects) {
                Ok(()) => self.answer_commit(id, xid, control),
                Err(refusal) => {
                    effects.push(Effect::Refuse(id, xid, refusal, excerpt(xid, control)))
                }
            }
            self.late.extend(effects);
        }
    }

    /// When the next bundle is to be done.
    pub(super) fn next_commit(&self) -> Option<Instant> {
        self.scheduled.iter().map(|waiting| waiting.at).min()
    }

    fn wall_time(&self, now: Instant) -> WallTime {
        let WallTime(started) = self.identity.started;
        WallTime(started + now.since(Instant::START))
    }
}

/// How a commit began that is refused after its time.
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
