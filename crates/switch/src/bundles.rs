//! The bundles of one connection: messages that wait to be done together
//! (OF 1.4.1, 6.9 and 7.3.9). They go with the connection.
//!
//! Not here: what the messages mean, and how they are done or undone; that is the
//! bridge's.

use std::collections::BTreeMap;

use base::Xid;
use flow::Refusal;
use openflow::{BundleAdd, BundleFlags, BundleId, Excerpt, Message};

/// The most bundles of a connection. Controllers have one at a time, or a few.
const BUNDLES_MAX: usize = 64;

/// The most bytes of messages, as they came, in all bundles of a connection: a
/// quarter of a million rules. In memory a message takes a small multiple.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// What every message costs besides its own bytes, so that many small ones are not free.
const OVERHEAD: usize = 64;

/// A message, and what is needed to refuse it.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// Its transaction.
    pub(crate) xid: Xid,
    /// What it says.
    pub(crate) message: Message,
    /// How it begins.
    pub(crate) excerpt: Excerpt,
}

/// One bundle.
#[derive(Clone, Debug)]
struct Bundle {
    flags: BundleFlags,
    is_closed: bool,
    messages: Vec<Held>,
    bytes: usize,
}

impl Bundle {
    const fn new(flags: BundleFlags) -> Self {
        Self {
            flags,
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
    /// Of all messages.
    bytes: usize,
}

impl Bundles {
    /// Begins a bundle.
    ///
    /// # Errors
    /// There is one of this number, there are too many, or its flags are unknown.
    pub(crate) fn open(&mut self, id: BundleId, flags: BundleFlags) -> Result<(), Refusal> {
        if self.bundles.contains_key(&id) {
            return Err(Refusal::BundleBadId);
        }
        self.begin(id, flags).map(drop)
    }

    /// Adds a message. A bundle that was not opened begins with its first message
    /// (OF 1.4.1, 7.3.9.6).
    ///
    /// # Errors
    /// The bundle is closed, has other flags or cannot begin, or there is no room.
    pub(crate) fn add(&mut self, xid: Xid, add: BundleAdd) -> Result<(), Refusal> {
        let cost = usize::from(add.length) + OVERHEAD;
        if self.bytes + cost > BYTES_MAX {
            return Err(Refusal::BundleMessageTooMany);
        }
        if !self.bundles.contains_key(&add.bundle) {
            self.begin(add.bundle, add.flags)?;
        }
        let bundle = self.find(add.bundle, add.flags)?;
        if bundle.is_closed {
            return Err(Refusal::BundleClosed);
        }
        bundle.bytes += cost;
        bundle.messages.push(Held {
            xid,
            message: *add.message,
            excerpt: add.excerpt,
        });
        self.bytes += cost;
        Ok(())
    }

    /// Closes a bundle to further messages.
    ///
    /// # Errors
    /// There is none of this number, it has other flags, or it is closed.
    pub(crate) fn close(&mut self, id: BundleId, flags: BundleFlags) -> Result<(), Refusal> {
        let bundle = self.find(id, flags)?;
        if std::mem::replace(&mut bundle.is_closed, true) {
            return Err(Refusal::BundleClosed);
        }
        Ok(())
    }

    /// Takes a bundle's messages out to be done; the bundle is gone then.
    ///
    /// # Errors
    /// There is none of this number, or it has other flags.
    pub(crate) fn commit(
        &mut self,
        id: BundleId,
        flags: BundleFlags,
    ) -> Result<Vec<Held>, Refusal> {
        self.find(id, flags)?;
        self.take(id)
    }

    /// Forgets a bundle.
    ///
    /// # Errors
    /// There is none of this number.
    pub(crate) fn discard(&mut self, id: BundleId) -> Result<(), Refusal> {
        self.take(id).map(drop)
    }

    fn begin(&mut self, id: BundleId, flags: BundleFlags) -> Result<(), Refusal> {
        if !flags.is_known() {
            return Err(Refusal::BundleBadFlags);
        }
        if self.bundles.len() >= BUNDLES_MAX {
            return Err(Refusal::BundleOutOfBundles);
        }
        self.bundles.insert(id, Bundle::new(flags));
        Ok(())
    }

    fn find(&mut self, id: BundleId, flags: BundleFlags) -> Result<&mut Bundle, Refusal> {
        let bundle = self.bundles.get_mut(&id).ok_or(Refusal::BundleBadId)?;
        // When it is done, its commit may say first.
        let kept = |flags: BundleFlags| flags.0 & !BundleFlags::TIME.0;
        match kept(bundle.flags) == kept(flags) {
            true => Ok(bundle),
            false => Err(Refusal::BundleBadFlags),
        }
    }

    fn take(&mut self, id: BundleId) -> Result<Vec<Held>, Refusal> {
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
    fn a_bundle_begins_once_and_by_its_first_message_too() {
        let mut bundles = Bundles::default();
        assert_eq!(bundles.add(Xid(7), message(1, 8)), Ok(()));
        assert_eq!(bundles.open(ID, FLAGS), Err(Refusal::BundleBadId));
        assert_eq!(bundles.open(BundleId(2), FLAGS), Ok(()));
        let unknown = bundles.open(BundleId(3), BundleFlags(8));
        assert_eq!(unknown, Err(Refusal::BundleBadFlags));
        assert_eq!(bundles.commit(ID, FLAGS).expect("there").len(), 1);
        assert_eq!(bundles.discard(ID), Err(Refusal::BundleBadId));
    }

    #[test]
    fn a_closed_bundle_takes_no_more_but_can_be_committed() {
        let mut bundles = Bundles::default();
        assert_eq!(bundles.close(ID, FLAGS), Err(Refusal::BundleBadId));
        assert_eq!(bundles.open(ID, FLAGS), Ok(()));
        let other = bundles.close(ID, BundleFlags::ATOMIC);
        assert_eq!(other, Err(Refusal::BundleBadFlags));
        assert_eq!(bundles.close(ID, FLAGS), Ok(()));
        assert_eq!(bundles.close(ID, FLAGS), Err(Refusal::BundleClosed));
        let more = bundles.add(Xid(7), message(1, 8));
        assert_eq!(more, Err(Refusal::BundleClosed));
        assert!(bundles.commit(ID, FLAGS).is_ok());
    }

    #[test]
    fn bundles_and_their_bytes_are_bounded_and_given_back() {
        let mut bundles = Bundles::default();
        for id in 0..64 {
            assert_eq!(bundles.open(BundleId(id), FLAGS), Ok(()));
        }
        let more = bundles.add(Xid(7), message(64, 8));
        assert_eq!(more, Err(Refusal::BundleOutOfBundles));
        let room = BYTES_MAX / (usize::from(u16::MAX) + OVERHEAD);
        for _ in 0..room {
            assert_eq!(bundles.add(Xid(7), message(1, u16::MAX)), Ok(()));
        }
        let more = bundles.add(Xid(7), message(2, u16::MAX));
        assert_eq!(more, Err(Refusal::BundleMessageTooMany));
        assert_eq!(bundles.discard(ID), Ok(()));
        assert_eq!(bundles.bytes, 0);
    }
}
