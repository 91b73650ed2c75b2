//! The active configuration: the bridges that exist, and those that could not be created.

use std::collections::{BTreeMap, BTreeSet};

use config::Config;
use dataplane::program::BridgeId;

/// The configuration that is in effect.
#[derive(Default)]
pub(super) struct ActiveConfig {
    config: Config,
    /// Bridges that could not be created, with the reason.
    failed: BTreeMap<String, String>,
    next_bridge: u32,
    /// True until the rules are restored.
    flow_restore_wait: bool,
}

impl ActiveConfig {
    /// Returns the configuration.
    pub(super) const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the bridges that could not be created, with the reason.
    pub(super) const fn failed(&self) -> &BTreeMap<String, String> {
        &self.failed
    }

    /// Records the reason why a bridge could not be created.
    pub(super) fn record_failure(&mut self, bridge: String, problem: String) {
        self.failed.insert(bridge, problem);
    }

    /// Replaces the configuration.
    pub(super) fn set(&mut self, config: Config) {
        self.config = config;
    }

    /// Replaces the configuration by the part of `config` whose bridges exist.
    pub(super) fn set_existing(&mut self, config: Config, existing: &BTreeSet<&str>) {
        self.config = config;
        let bridges = &mut self.config.bridges;
        self.failed.retain(|name, _| {
            !existing.contains(name.as_str()) && bridges.iter().any(|bridge| bridge.name == *name)
        });
        bridges.retain(|bridge| existing.contains(bridge.name.as_str()));
    }

    /// Returns the number of a new bridge; no number is used twice.
    pub(super) const fn allocate_bridge(&mut self) -> BridgeId {
        let id = BridgeId(self.next_bridge);
        self.next_bridge += 1;
        id
    }

    /// Returns true until the rules are restored.
    pub(super) const fn awaits_flows(&self) -> bool {
        self.flow_restore_wait
    }

    /// Blocks frames and controllers until the rules are restored.
    pub(super) const fn await_flows(&mut self) {
        self.flow_restore_wait = true;
    }

    /// Records that the rules are restored.
    pub(super) const fn end_flow_restore(&mut self) {
        self.flow_restore_wait = false;
    }
}
