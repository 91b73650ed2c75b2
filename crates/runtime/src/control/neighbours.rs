//! The neighbour cache of tunnels (`tnl/neigh/*` of ovs-vswitchd(8)): entries that commands set, and
//! those that workers take from received messages. The kernel's entries are not here.
//!
//! An entry expires a while after it was set. One that was learned is requested again before that,
//! so a tunnel in use loses no frames.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use base::Instant;
use packet::MacAddr;

/// The default lifetime of an entry, as in Open vSwitch.
const AGING_DEFAULT: Duration = Duration::from_secs(15 * 60);

/// The longest lifetime of an entry in seconds, as in Open vSwitch.
const AGING_MAX: u64 = 3600;

/// An entry is requested again when this fraction of its lifetime is left.
const RENEWAL_FRACTION: u32 = 10;

/// The limit of entries: more next hops than an underlay has.
const ENTRIES_MAX: usize = 4096;

/// The name of an interface, and a host behind it.
pub(super) type NeighbourKey = (String, IpAddr);

/// The origin of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeighbourOrigin {
    /// A command.
    Command,
    /// A received message.
    Message,
}

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NeighbourEntry {
    mac: MacAddr,
    origin: NeighbourOrigin,
    expires: Instant,
    /// True once it was requested again.
    is_requested: bool,
}

impl NeighbourEntry {
    /// True if the entry will be requested again before it expires.
    fn is_renewed(&self) -> bool {
        self.origin == NeighbourOrigin::Message && !self.is_requested
    }

    /// Returns the time of the renewal, or of the expiry.
    fn due(&self, aging: Duration) -> Instant {
        let lead = match self.is_renewed() {
            true => aging / RENEWAL_FRACTION,
            false => Duration::ZERO,
        };
        Instant::START + (self.expires - Instant::START).saturating_sub(lead)
    }
}

/// The neighbour cache.
#[derive(Debug)]
pub(super) struct NeighbourCache {
    entries: BTreeMap<NeighbourKey, NeighbourEntry>,
    aging: Duration,
    /// The time of the next expiry or renewal, or an earlier one.
    next_timeout: Option<Instant>,
}

impl Default for NeighbourCache {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            aging: AGING_DEFAULT,
            next_timeout: None,
        }
    }
}

/// The effect of a lapse of time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NeighbourTimeouts {
    /// True if an entry has expired.
    pub(super) is_changed: bool,
    /// The entries to request again.
    pub(super) renewals: Vec<NeighbourKey>,
}

impl NeighbourCache {
    /// Sets an entry. Returns true if its address is new, false also if the cache is full.
    pub(super) fn set(
        &mut self,
        key: NeighbourKey,
        mac: MacAddr,
        origin: NeighbourOrigin,
        now: Instant,
    ) -> bool {
        if self.entries.len() >= ENTRIES_MAX && !self.entries.contains_key(&key) {
            return false;
        }
        let entry = NeighbourEntry {
            mac,
            origin,
            expires: now + self.aging,
            is_requested: false,
        };
        let before = self.entries.insert(key, entry);
        let due = entry.due(self.aging);
        self.next_timeout = Some(self.next_timeout.map_or(due, |next| next.min(due)));
        before.is_none_or(|before| before.mac != mac)
    }

    /// Removes all entries.
    pub(super) fn flush(&mut self) {
        self.entries.clear();
    }

    /// Removes the entries of interfaces that are not among these.
    pub(super) fn retain(&mut self, names: &BTreeSet<&str>) {
        self.entries
            .retain(|(name, _), _| names.contains(name.as_str()));
    }

    /// Returns the lifetime of entries in seconds.
    pub(super) const fn aging_seconds(&self) -> u64 {
        self.aging.as_secs()
    }

    /// Sets the lifetime of entries, present ones included.
    ///
    /// # Errors
    /// The value is out of range.
    pub(super) fn set_aging(&mut self, text: &str, now: Instant) -> Result<(), String> {
        let seconds = text.parse().ok();
        let seconds = seconds.filter(|seconds| (1..=AGING_MAX).contains(seconds));
        self.aging = Duration::from_secs(seconds.ok_or("bad aging value")?);
        let latest = now + self.aging;
        for entry in self.entries.values_mut() {
            entry.expires = entry.expires.min(latest);
        }
        self.update_timeout();
        Ok(())
    }

    /// Removes the expired entries, and returns those to request again.
    pub(super) fn handle_timeouts(&mut self, now: Instant) -> NeighbourTimeouts {
        if self.next_timeout.is_none_or(|next| now < next) {
            return NeighbourTimeouts::default();
        }
        let before = self.entries.len();
        self.entries.retain(|_, entry| now < entry.expires);
        let mut renewals = Vec::new();
        for (key, entry) in &mut self.entries {
            if entry.is_renewed() && entry.due(self.aging) <= now {
                entry.is_requested = true;
                renewals.push(key.clone());
            }
        }
        self.update_timeout();
        NeighbourTimeouts {
            is_changed: self.entries.len() != before,
            renewals,
        }
    }

    fn update_timeout(&mut self) {
        let due = self.entries.values().map(|entry| entry.due(self.aging));
        self.next_timeout = due.min();
    }

    /// Returns the time of the next expiry or renewal, or an earlier one.
    pub(super) const fn next_timeout(&self) -> Option<Instant> {
        self.next_timeout
    }

    /// Returns the entries.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, IpAddr, MacAddr)> {
        let entries = self.entries.iter();
        entries.map(|((name, host), entry)| (name.as_str(), *host, entry.mac))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    fn key(name: &str, host: u8) -> NeighbourKey {
        (name.to_owned(), [10, 0, 0, host].into())
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    #[test]
    fn neighbour_entries_expire_after_the_aging_time() {
        let mut cache = NeighbourCache::default();
        assert_eq!(cache.aging_seconds(), 900);
        assert!(cache.set(key("br0", 1), MAC, NeighbourOrigin::Command, at(0)));
        assert!(!cache.set(key("br0", 1), MAC, NeighbourOrigin::Command, at(1)));
        for text in ["0", "3601", "x", ""] {
            let error = cache.set_aging(text, at(1));
            assert_eq!(error, Err("bad aging value".to_owned()));
        }
        cache.set_aging("5", at(1)).expect("in range");
        assert_eq!(cache.next_timeout(), Some(at(6)));
        assert!(!cache.handle_timeouts(at(5)).is_changed);
        assert!(cache.handle_timeouts(at(6)).is_changed);
        assert_eq!(cache.iter().count(), 0);
    }

    #[test]
    fn learned_neighbour_is_requested_again_once_before_it_expires() {
        let mut cache = NeighbourCache::default();
        cache.set(key("br0", 1), MAC, NeighbourOrigin::Message, at(0));
        assert_eq!(cache.next_timeout(), Some(at(810)));
        let timeouts = cache.handle_timeouts(at(810));
        assert_eq!(timeouts.renewals, [key("br0", 1)]);
        assert_eq!(cache.handle_timeouts(at(811)), NeighbourTimeouts::default());
        assert_eq!(cache.next_timeout(), Some(at(900)));
        cache.set(key("br0", 1), MAC, NeighbourOrigin::Message, at(812));
        assert_eq!(cache.handle_timeouts(at(900)), NeighbourTimeouts::default());
    }

    #[test]
    fn neighbours_of_removed_interfaces_are_removed() {
        let mut cache = NeighbourCache::default();
        for (name, host) in [("p1", 1), ("br0", 2)] {
            cache.set(key(name, host), MAC, NeighbourOrigin::Command, at(0));
        }
        cache.retain(&["br0"].into());
        let names: Vec<_> = cache.iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["br0"]);
        cache.flush();
        assert_eq!(cache.iter().count(), 0);
    }
}
