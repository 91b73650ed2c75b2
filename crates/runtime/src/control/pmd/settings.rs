//! The log lines of the configuration of PMD threads, in Open vSwitch's words.

use config::{AutoBalance, PmdConfig};

use super::LOG;

/// Logs the changes from the last configuration to `config`. Returns true if the queues must be
/// assigned anew.
pub(super) fn log_changes(last: Option<&PmdConfig>, config: &PmdConfig) -> bool {
    if last == Some(config) {
        return false;
    }
    let default = PmdConfig::default();
    let before = last.unwrap_or(&default);
    log_assignment(before, config);
    log_balance(last.map(|last| last.auto_balance), config.auto_balance);
    if last.is_none_or(|last| last.max_sleep_us != config.max_sleep_us) {
        let sleep = config.max_sleep_us;
        let state = if sleep > 0 { "enabled" } else { "disabled" };
        tracing::info!(target: LOG, "PMD max sleep request is {sleep} usecs.");
        tracing::info!(target: LOG, "PMD load based sleeps are {state}.");
    }
    before.cpu_mask != config.cpu_mask
        || before.algorithm != config.algorithm
        || before.isolates != config.isolates
}

fn log_assignment(before: &PmdConfig, config: &PmdConfig) {
    for letter in config.cpu_mask.iter().flat_map(|mask| &mask.invalid) {
        tracing::warn!(target: "ovs_numa", "Invalid cpu mask: {letter}");
    }
    if config.is_algorithm_unknown {
        tracing::warn!(
            target: LOG,
            "Unsupported rx queue to PMD assignment mode in pmd-rxq-assign. \
             Defaulting to 'cycles'."
        );
    }
    if before.algorithm != config.algorithm {
        let algorithm = config.algorithm;
        tracing::info!(target: LOG, "Rxq to PMD assignment mode changed to: '{algorithm}'.");
    }
    if config.is_isolation_forced {
        tracing::warn!(
            target: LOG,
            "pmd-rxq-isolate can only be set false when using pmd-rxq-assign=group"
        );
    }
    match (before.isolates, config.isolates) {
        (false, true) => tracing::info!(target: LOG, "pmd-rxq-affinity isolates PMD core"),
        (true, false) => {
            tracing::info!(target: LOG, "pmd-rxq-affinity does not isolate PMD core");
        }
        _ => {}
    }
}

fn log_balance(before: Option<AutoBalance>, config: AutoBalance) {
    let AutoBalance {
        is_enabled,
        interval_minutes,
        load_threshold,
        improvement_threshold,
    } = config;
    let mut is_changed = before.is_none_or(|before| before.is_enabled != is_enabled);
    if before.is_none_or(|before| before.interval_minutes != interval_minutes) {
        tracing::info!(
            target: LOG,
            "PMD auto load balance interval set to {interval_minutes} mins"
        );
        is_changed = true;
    }
    if before.is_none_or(|before| before.improvement_threshold != improvement_threshold) {
        tracing::info!(
            target: LOG,
            "PMD auto load balance improvement threshold set to {improvement_threshold}%"
        );
        is_changed = true;
    }
    if before.is_none_or(|before| before.load_threshold != load_threshold) {
        tracing::info!(
            target: LOG,
            "PMD auto load balance load threshold set to {load_threshold}%"
        );
        is_changed = true;
    }
    match (is_changed, is_enabled) {
        (false, _) => {}
        (true, true) => tracing::info!(
            target: LOG,
            "PMD auto load balance is enabled, interval {interval_minutes} mins, \
             pmd load threshold {load_threshold}%, \
             improvement threshold {improvement_threshold}%."
        ),
        (true, false) => tracing::info!(target: LOG, "PMD auto load balance is disabled."),
    }
}
