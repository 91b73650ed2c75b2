//! Fragments that `ct` holds until their packet is complete, and their way back to the interpreter.
//!
//! ```text
//!   ct, fragment 1 --> held: bytes, fields, rest of the actions --+
//!   ct, fragment 2 --> held                                       +--> packet is tracked
//!   ct, fragment 3 -----------------------------------------------'      |
//!                                fragments 1, 2 and 3 continue <--------'
//! ```
//!
//! One store serves all bridges and workers of a datapath. Its lock is taken for fragments only, and
//! for the time of one insertion.

use std::sync::PoisonError;

use base::sync::atomic::{AtomicU32, Ordering};
use base::sync::{Mutex, MutexGuard};
use base::{Cookie, Instant, Priority, TableId};
use conntrack::{
    AddressFamily, ChecksumCheck, CtRequest, FragmentOutcome, FragmentPacket, FragmentScope,
    FragmentTable, IpfSettingError, IpfSettings, IpfStatistics,
};
use flow::{Continuation, PipelineFields};
use packet::Offload;

use crate::verdict::Cause;

/// Expired fragments that are polled with each fragment: a bounded step.
const EXPIRED_MAX: usize = 32;

/// The fragments that the bridges of a datapath hold.
#[derive(Debug)]
pub struct FragmentStore {
    table: Mutex<FragmentTable<HeldFragment>>,
    /// Number of bridges that have used the store.
    owners: AtomicU32,
}

/// A fragment in the state in which it reached `ct`, and the rest of its processing.
#[derive(Debug)]
pub(crate) struct HeldFragment {
    /// Number of the bridge in the store.
    pub(crate) owner: u32,
    pub(crate) bytes: Vec<u8>,
    /// Offset of the IP header.
    pub(crate) network_at: usize,
    pub(crate) offload: Offload,
    pub(crate) registers: PipelineFields,
    pub(crate) priority: Priority,
    /// Zone of `ct` and its other arguments.
    pub(crate) request: CtRequest,
    /// Table of `ct`.
    pub(crate) next: Option<TableId>,
    pub(crate) family: AddressFamily,
    pub(crate) check: ChecksumCheck,
    /// The rule with `ct`.
    pub(crate) table: TableId,
    pub(crate) cookie: Cookie,
    pub(crate) cause: Cause,
    pub(crate) rule_cause: Cause,
    /// Action set of the copy that enters the table of `ct`.
    pub(crate) set: Vec<flow::Action>,
    pub(crate) used: UsedLimits,
    /// Stack, and actions after `ct`.
    pub(crate) rest: Continuation,
}

/// Parts of the limits of a packet that it has used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsedLimits {
    pub(crate) recursion: usize,
    pub(crate) nesting: usize,
    pub(crate) resubmits: usize,
    pub(crate) buckets_left: u32,
    pub(crate) actions_left: usize,
}

impl FragmentPacket for HeldFragment {
    fn ip_bytes(&self) -> &[u8] {
        self.bytes.get(self.network_at..).unwrap_or(&[])
    }
}

impl Default for FragmentStore {
    fn default() -> Self {
        Self::new()
    }
}

impl FragmentStore {
    /// Creates an empty store with the settings of Open vSwitch.
    #[must_use]
    pub fn new() -> Self {
        Self {
            table: Mutex::new(FragmentTable::new(IpfSettings::default())),
            owners: AtomicU32::new(0),
        }
    }

    /// Returns the number of a new user.
    pub(crate) fn add_owner(&self) -> u32 {
        self.owners.fetch_add(1, Ordering::Relaxed)
    }

    /// True if fragments of this version of IP are reassembled.
    pub(crate) fn is_enabled(&self, family: AddressFamily) -> bool {
        self.lock().settings().family(family).is_enabled
    }

    /// Handles a fragment. Returns the result, and some fragments of the same user that have expired
    /// meanwhile. Those of other users are freed.
    pub(crate) fn handle(
        &self,
        fragment: HeldFragment,
        now: Instant,
    ) -> (FragmentOutcome<HeldFragment>, Vec<HeldFragment>) {
        let (owner, zone) = (fragment.owner, fragment.request.zone);
        let (family, check) = (fragment.family, fragment.check);
        let scope = FragmentScope { zone, owner };
        let mut table = self.lock();
        let outcome = table.handle(fragment, scope, family, check, now);
        let expired = std::iter::from_fn(|| table.poll_expired(now));
        let expired = expired.take(EXPIRED_MAX).filter(|held| held.owner == owner);
        (outcome, expired.collect())
    }

    /// Frees fragments that expired some time ago.
    pub fn purge(&self, now: Instant) {
        self.lock().purge(now);
    }

    /// Number of held fragments.
    pub fn held(&self) -> usize {
        self.lock().held()
    }

    /// Returns the settings.
    pub fn settings(&self) -> IpfSettings {
        *self.lock().settings()
    }

    /// Changes the settings. Held fragments stay.
    ///
    /// # Errors
    /// A setting is out of the bounds of Open vSwitch; nothing is changed.
    pub fn set_settings(&self, settings: IpfSettings) -> Result<(), IpfSettingError> {
        settings.check()?;
        self.lock().set_settings(settings);
        Ok(())
    }

    /// Returns the numbers of fragments of one version of IP.
    pub fn statistics(&self, family: AddressFamily) -> IpfStatistics {
        *self.lock().statistics(family)
    }

    fn lock(&self) -> MutexGuard<'_, FragmentTable<HeldFragment>> {
        // A panic ends the process; in tests, the table is whole after each call.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
