//! The automatic balance of receive queues (ovs-vswitchd.conf.db(5), `other_config:pmd-auto-lb`):
//! when a thread is overloaded, the queues are assigned anew if that improves the balance.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Instant;
use config::{AutoBalance, RxqAlgorithm};

use super::LOG;
use super::load::INTERVALS;
use super::schedule::ThreadPlan;

/// The state of the automatic balance.
#[derive(Debug, Default)]
pub(super) struct BalanceState {
    /// The time of the last check.
    last_check: Option<Instant>,
    /// True if the threads or queues have changed since the last check.
    pub(super) is_stale: bool,
    /// True if another assignment can be better.
    may_improve: bool,
}

/// A thread with its current queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadSummary {
    /// True if only pinned queues are assigned.
    pub(super) is_isolated: bool,
    /// The number of queues.
    pub(super) queues: usize,
}

impl BalanceState {
    /// Forgets the time of the last check, because the balance was disabled.
    pub(super) const fn disable(&mut self) {
        self.last_check = None;
    }

    /// Returns true if a check is due, and records it.
    pub(super) fn is_due(&mut self, config: &AutoBalance, now: Instant) -> bool {
        if !config.is_enabled {
            return false;
        }
        let interval = Duration::from_secs(config.interval_minutes * 60);
        match self.last_check {
            Some(last) if last + interval >= now => false,
            Some(_) => {
                self.last_check = Some(now);
                true
            }
            None => {
                self.last_check = Some(now);
                false
            }
        }
    }

    /// Returns true if another assignment can be better: at least two threads are not isolated, and
    /// one of them has several queues. Without changes, the last result holds.
    pub(super) fn may_improve(
        &mut self,
        algorithm: RxqAlgorithm,
        threads: impl Iterator<Item = ThreadSummary>,
    ) -> bool {
        if !std::mem::take(&mut self.is_stale) {
            if !self.may_improve {
                tracing::debug!(
                    target: LOG,
                    "PMD auto load balance nothing to do, no configuration changes since last check."
                );
            }
            return self.may_improve;
        }
        if algorithm == RxqAlgorithm::RoundRobin {
            tracing::debug!(
                target: LOG,
                "PMD auto load balance nothing to do, \
                 pmd-rxq-assign=roundrobin assignment type configured."
            );
            self.may_improve = false;
            return false;
        }
        let free: Vec<_> = threads.filter(|thread| !thread.is_isolated).collect();
        self.may_improve = free.len() > 1 && free.iter().any(|thread| thread.queues > 1);
        if !self.may_improve {
            tracing::debug!(
                target: LOG,
                "PMD auto load balance nothing to do, not enough non-isolated PMDs or RxQs."
            );
        }
        self.may_improve
    }
}

/// Returns true if the variance of the threads' load improves by `threshold` percent on any NUMA
/// node. `interval` returns the duration of the last interval of the thread on a core, in
/// nanoseconds.
pub(super) fn improves(
    current: &[ThreadPlan],
    estimate: &[ThreadPlan],
    interval: impl Fn(usize) -> Option<u64>,
    threshold: u8,
) -> bool {
    let (current, estimate) = (
        variances(current, &interval),
        variances(estimate, &interval),
    );
    let (mut is_met, mut improvement) = (false, 0);
    for (numa, now) in &current {
        let Some(then) = estimate.get(numa) else {
            continue;
        };
        if then < now {
            improvement = (now - then) * 100 / now;
        }
        tracing::debug!(
            target: LOG,
            "Numa node {numa}. Current variance {now} Estimated variance {then}. \
             Variance improvement {improvement}%."
        );
        is_met |= improvement >= threshold.into();
    }
    let result = if is_met { "met" } else { "not met" };
    tracing::debug!(
        target: LOG,
        "PMD load variance improvement threshold {threshold}% is {result}."
    );
    is_met
}

/// Returns the variance of the load in percent, by NUMA node; isolated threads are left out.
fn variances(
    threads: &[ThreadPlan],
    interval: impl Fn(usize) -> Option<u64>,
) -> BTreeMap<u32, u64> {
    let mut loads: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for thread in threads {
        let of_node = loads.entry(thread.place.numa).or_default();
        if !thread.is_isolated {
            let total = interval(thread.place.core).unwrap_or_default() * INTERVALS as u64;
            let percent = (thread.load * 100).checked_div(total);
            of_node.push(percent.unwrap_or_default());
        }
    }
    loads
        .into_iter()
        .map(|(numa, loads)| (numa, variance(&loads)))
        .collect()
}

fn variance(values: &[u64]) -> u64 {
    let count = values.len() as u64;
    let mean = values.iter().sum::<u64>().checked_div(count);
    let mean = mean.unwrap_or_default();
    let squares = values.iter().map(|value| value.abs_diff(mean).pow(2));
    squares.sum::<u64>().checked_div(count).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::pmd::schedule::ThreadPlace;

    #[test]
    fn check_is_due_after_each_interval() {
        let config = AutoBalance {
            is_enabled: true,
            ..AutoBalance::default()
        };
        let mut state = BalanceState::default();
        let due =
            |state: &mut BalanceState, seconds| state.is_due(&config, Instant::from_secs(seconds));
        assert_eq!(
            [0, 60, 61, 121, 122].map(|at| due(&mut state, at)),
            [false, false, true, false, true]
        );
        state.disable();
        assert!(!due(&mut state, 500));
        assert!(!state.is_due(&AutoBalance::default(), Instant::from_secs(900)));
    }

    #[test]
    fn balance_needs_two_threads_and_several_queues() {
        let mut state = BalanceState::default();
        let mut check = |queues: &[usize], algorithm| {
            state.is_stale = true;
            let threads = queues.iter().map(|queues| ThreadSummary {
                is_isolated: false,
                queues: *queues,
            });
            state.may_improve(algorithm, threads)
        };
        assert!(!check(&[2], RxqAlgorithm::Cycles));
        assert!(!check(&[1, 1], RxqAlgorithm::Cycles));
        assert!(check(&[2, 1], RxqAlgorithm::Cycles));
        assert!(check(&[1, 2], RxqAlgorithm::Group));
        assert!(!check(&[2, 2], RxqAlgorithm::RoundRobin));
        assert!(!state.may_improve(RxqAlgorithm::Group, std::iter::empty()));
    }

    #[test]
    fn improvement_compares_variances() {
        let thread = |core, load| ThreadPlan {
            load,
            ..ThreadPlan::new(ThreadPlace { core, numa: 0 })
        };
        let current = [thread(0, 1200), thread(1, 0)];
        let better = [thread(0, 600), thread(1, 600)];
        let interval = |_| Some(100);
        assert!(improves(&current, &better, interval, 25));
        assert!(!improves(&current, &current, interval, 25));
        assert_eq!(variance(&[100, 0]), 2500);
        assert_eq!(variance(&[]), 0);
    }
}
