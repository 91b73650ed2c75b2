//! The bundles of one connection: messages to be executed together (OF 1.4.1, 6.9 and 7.3.9). They
//! end with the connection, or if they receive no message for the idle timeout.
//!
//! Not here: the execution and the undo of the messages, which the bridge does.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Instant, MemoryBudget, MemoryShare, Xid};
use flow::Refusal;
use openflow::{
    BundleAdd, BundleControl, BundleFlags, BundleId, BundleStep, Excerpt, Message, ReceivedMessage,
};

/// The maximum number of bundles of a connection. Controllers use one at a time, or a few.
const BUNDLES_MAX: usize = 64;

/// The maximum number of message bytes, as received, in all bundles of a connection: more than half
/// a million rules, since `ovn-controller` installs all of a chassis in one bundle. Their memory is
/// reserved from the budget of all connections, which is the lower limit for small messages.
const BYTES_MAX: usize = 128 * 1024 * 1024;

/// The cost of every message besides its own bytes, so that small ones are not free.
const OVERHEAD: usize = 64;

/// A message of a bundle, and the data to refuse it.
#[derive(Clone, Debug)]
pub(crate) struct BundleMessage {
    /// The transaction id.
    pub(crate) xid: Xid,
    /// The message.
    pub(crate) message: Message,
    /// The message as received, for an error.
    pub(crate) excerpt: Excerpt,
    /// Its share of the memory of all connections, if that is limited.
    _share: Option<MemoryShare>,
}

/// One bundle.
#[derive(Clone, Debug)]
struct Bundle {
    flags: BundleFlags,
    /// The transaction id of the message that opened it.
    xid: Xid,
    /// The time of the last message.
    used: Instant,
    is_closed: bool,
    messages: Vec<BundleMessage>,
    bytes: usize,
}

impl Bundle {
    const fn new(flags: BundleFlags, xid: Xid, now: Instant) -> Self {
        Self {
            flags,
            xid,
            used: now,
            is_closed: false,
            messages: Vec::new(),
            bytes: 0,
        }
    }
}

/// All bundles of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bundles {
    bundles: BTreeMap<BundleId, Bundle>,
    /// The bytes of all messages.
    bytes: usize,
    /// The memory of all connections; none if it is not limited.
    memory: Option<MemoryBudget>,
}

impl Bundles {
    /// Makes later messages take their memory from this budget.
    pub(crate) fn limit_memory(&mut self, memory: MemoryBudget) {
        self.memory = Some(memory);
    }

    /// Reserves the memory of a message.
    fn reserve(&self, add: &BundleAdd) -> Result<Option<MemoryShare>, Refusal> {
        let Some(memory) = &self.memory else {
            return Ok(None);
        };
        let bytes = ReceivedMessage::memory_of(usize::from(add.length));
        match memory.reserve(bytes) {
            Some(share) => Ok(Some(share)),
            None => Err(Refusal::BundleMessageTooMany),
        }
    }

    /// Opens a bundle.
    ///
    /// # Errors
    /// The id is in use, there are too many bundles, or the flags are unknown.
    pub(crate) fn open(
        &mut self,
        id: BundleId,
        flags: BundleFlags,
        xid: Xid,
        now: Instant,
    ) -> Result<(), Refusal> {
        if self.bundles.contains_key(&id) {
            return Err(Refusal::BundleBadId);
        }
        self.begin(id, flags, xid, now)
    }

    /// Adds a message. The first message opens a bundle that was not opened (OF 1.4.1, 7.3.9.6).
    ///
    /// # Errors
    /// The bundle is closed, has other flags or cannot be opened, or there is no room.
    pub(crate) fn add(&mut self, xid: Xid, add: BundleAdd, now: Instant) -> Result<(), Refusal> {
        let cost = usize::from(add.length) + OVERHEAD;
        if self.bytes + cost > BYTES_MAX {
            return Err(Refusal::BundleMessageTooMany);
        }
        if !self.bundles.contains_key(&add.bundle) {
            self.begin(add.bundle, add.flags, xid, now)?;
        }
        let share = self.reserve(&add)?;
        let bundle = self.find(add.bundle, add.flags)?;
        bundle.used = now;
        if bundle.is_closed {
            return Err(Refusal::BundleClosed);
        }
        bundle.bytes += cost;
        bundle.messages.push(BundleMessage {
            xid,
            message: *add.message,
            excerpt: add.excerpt,
            _share: share,
        });
        self.bytes += cost;
        Ok(())
    }

    /// Closes a bundle to further messages.
    ///
    /// # Errors
    /// There is no bundle of this id, it has other flags, or it is closed.
    pub(crate) fn close(
        &mut self,
        id: BundleId,
        flags: BundleFlags,
        now: Instant,
    ) -> Result<(), Refusal> {
        let bundle = self.find(id, flags)?;
        bundle.used = now;
        if std::mem::replace(&mut bundle.is_closed, true) {
            return Err(Refusal::BundleClosed);
        }
        Ok(())
    }

    /// Removes a bundle and returns its messages for execution.
    ///
    /// # Errors
    /// There is no bundle of this id, or it has other flags.
    pub(crate) fn commit(
        &mut self,
        id: BundleId,
        flags: BundleFlags,
    ) -> Result<Vec<BundleMessage>, Refusal> {
        self.find(id, flags)?;
        self.take(id)
    }

    /// Discards a bundle.
    ///
    /// # Errors
    /// There is no bundle of this id.
    pub(crate) fn discard(&mut self, id: BundleId) -> Result<(), Refusal> {
        self.take(id).map(drop)
    }

    /// Removes the bundles that were idle for this time. Returns the requests that opened them.
    pub(crate) fn expire(&mut self, idle: Duration, now: Instant) -> Vec<(Xid, BundleControl)> {
        let is_idle = |bundle: &Bundle| bundle.used + idle <= now;
        let idle = self.bundles.extract_if(.., |_, bundle| is_idle(bundle));
        let idle: Vec<_> = idle.collect();
        self.bytes -= idle.iter().map(|(_, bundle)| bundle.bytes).sum::<usize>();
        let opened = |(id, bundle): (BundleId, Bundle)| {
            let control = BundleControl {
                bundle: id,
                step: BundleStep::OpenRequest,
                flags: bundle.flags,
                time: None,
            };
            (bundle.xid, control)
        };
        idle.into_iter().map(opened).collect()
    }

    /// Returns the time at which the first bundle expires after this idle timeout.
    pub(crate) fn next_expiry(&self, idle: Duration) -> Option<Instant> {
        self.bundles.values().map(|bundle| bundle.used + idle).min()
    }

    fn begin(
        &mut self,
        id: BundleId,
        flags: BundleFlags,
        xid: Xid,
        now: Instant,
    ) -> Result<(), Refusal> {
        if !flags.is_known() {
            return Err(Refusal::BundleBadFlags);
        }
        if self.bundles.len() >= BUNDLES_MAX {
            return Err(Refusal::BundleOutOfBundles);
        }
        self.bundles.insert(id, Bundle::new(flags, xid, now));
        Ok(())
    }

    fn find(&mut self, id: BundleId, flags: BundleFlags) -> Result<&mut Bundle, Refusal> {
        let bundle = self.bundles.get_mut(&id).ok_or(Refusal::BundleBadId)?;
        // Only the commit has to carry the flag for an execution time.
        let without_time = |flags: BundleFlags| flags.0 & !BundleFlags::TIME.0;
        match without_time(bundle.flags) == without_time(flags) {
            true => Ok(bundle),
            false => Err(Refusal::BundleBadFlags),
        }
    }

    fn take(&mut self, id: BundleId) -> Result<Vec<BundleMessage>, Refusal> {
        let bundle = self.bundles.remove(&id).ok_or(Refusal::BundleBadId)?;
        self.bytes -= bundle.bytes;
        Ok(bundle.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: BundleId = BundleId(1);
    const FLAGS: BundleFlags = BundleFlags::ORDERED;
    const NOW: Instant = Instant::START;

    fn message(bundle: u32, length: u16) -> BundleAdd {
        BundleAdd {
            bundle: BundleId(bundle),
            flags: FLAGS,
            message: Box::new(Message::BarrierRequest),
            excerpt: Excerpt::of(&[]),
            length,
        }
    }

    #[test]
    fn bundle_opens_once_or_by_its_first_message() {
        let mut bundles = Bundles::default();
        assert_eq!(bundles.add(Xid(7), message(1, 8), NOW), Ok(()));
        assert_eq!(
            bundles.open(ID, FLAGS, Xid(6), NOW),
            Err(Refusal::BundleBadId)
        );
        assert_eq!(bundles.open(BundleId(2), FLAGS, Xid(6), NOW), Ok(()));
        let unknown = bundles.open(BundleId(3), BundleFlags(8), Xid(6), NOW);
        assert_eq!(unknown, Err(Refusal::BundleBadFlags));
        assert_eq!(bundles.commit(ID, FLAGS).expect("there").len(), 1);
        assert_eq!(bundles.discard(ID), Err(Refusal::BundleBadId));
    }

    #[test]
    fn closed_bundle_refuses_messages_and_can_be_committed() {
        let mut bundles = Bundles::default();
        assert_eq!(bundles.close(ID, FLAGS, NOW), Err(Refusal::BundleBadId));
        assert_eq!(bundles.open(ID, FLAGS, Xid(6), NOW), Ok(()));
        let other = bundles.close(ID, BundleFlags::ATOMIC, NOW);
        assert_eq!(other, Err(Refusal::BundleBadFlags));
        assert_eq!(bundles.close(ID, FLAGS, NOW), Ok(()));
        assert_eq!(bundles.close(ID, FLAGS, NOW), Err(Refusal::BundleClosed));
        let more = bundles.add(Xid(7), message(1, 8), NOW);
        assert_eq!(more, Err(Refusal::BundleClosed));
        assert!(bundles.commit(ID, FLAGS).is_ok());
    }

    #[test]
    fn bundles_are_limited_in_number_and_bytes() {
        let mut bundles = Bundles::default();
        for id in 0..64 {
            assert_eq!(bundles.open(BundleId(id), FLAGS, Xid(6), NOW), Ok(()));
        }
        let more = bundles.add(Xid(7), message(64, 8), NOW);
        assert_eq!(more, Err(Refusal::BundleOutOfBundles));
        let room = BYTES_MAX / (usize::from(u16::MAX) + OVERHEAD);
        for _ in 0..room {
            assert_eq!(bundles.add(Xid(7), message(1, u16::MAX), NOW), Ok(()));
        }
        let more = bundles.add(Xid(7), message(2, u16::MAX), NOW);
        assert_eq!(more, Err(Refusal::BundleMessageTooMany));
        assert_eq!(bundles.discard(ID), Ok(()));
        assert_eq!(bundles.bytes, 0);
    }

    #[test]
    fn bundles_of_all_connections_share_memory() {
        let of_one = ReceivedMessage::memory_of(1000);
        let memory = MemoryBudget::new(3 * of_one);
        let mut connections = [Bundles::default(), Bundles::default()];
        for bundles in &mut connections {
            bundles.limit_memory(memory.clone());
        }
        let [first, second] = &mut connections;
        assert_eq!(first.add(Xid(7), message(1, 1000), NOW), Ok(()));
        assert_eq!(first.add(Xid(7), message(1, 1000), NOW), Ok(()));
        assert_eq!(second.add(Xid(7), message(1, 1000), NOW), Ok(()));
        let more = second.add(Xid(7), message(1, 1000), NOW);
        assert_eq!(more, Err(Refusal::BundleMessageTooMany));
        // Messages that are being executed keep their memory.
        let messages = first.commit(ID, FLAGS).expect("there");
        assert_eq!(memory.used(), 3 * of_one);
        drop(messages);
        assert_eq!(second.add(Xid(7), message(1, 1000), NOW), Ok(()));
        drop(connections);
        assert_eq!((memory.used(), memory.refused()), (0, 1));
    }

    #[test]
    fn idle_bundle_expires_and_frees_its_bytes() {
        let mut bundles = Bundles::default();
        let idle = Duration::from_secs(10);
        assert_eq!(bundles.next_expiry(idle), None);
        assert_eq!(bundles.open(ID, FLAGS, Xid(6), NOW), Ok(()));
        let later = NOW + Duration::from_secs(8);
        assert_eq!(bundles.add(Xid(7), message(1, 8), later), Ok(()));
        assert_eq!(bundles.next_expiry(idle), Some(later + idle));
        assert_eq!(bundles.expire(idle, NOW + idle), []);
        let [(Xid(6), control)] = bundles.expire(idle, later + idle)[..] else {
            panic!("one bundle expires");
        };
        assert_eq!(
            (control.bundle, control.step, control.flags),
            (ID, BundleStep::OpenRequest, FLAGS)
        );
        assert_eq!((bundles.bytes, bundles.next_expiry(idle)), (0, None));
    }
}
