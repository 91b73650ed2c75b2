//! PMD threads: the workers that poll the receive queues of `dummy-pmd` ports, and the assignment
//! of these queues (ovs-vswitchd.conf.db(5), `other_config:pmd-*`).
//!
//! A worker that can be a PMD thread exists from the start. It becomes one while a `dummy-pmd` port
//! exists and the configuration includes its core; without queues it sleeps.

mod auto_balance;
mod load;
mod schedule;
mod settings;
mod threads;

use std::collections::{BTreeMap, BTreeSet};

use base::Instant;
use ports::dummy::{DummyOptions, DummyType};

use super::Control;
use super::bridge_runtime::{BridgeRuntime, PortRuntime};
use auto_balance::{BalanceState, ThreadSummary, improves};
use config::{Config, PmdConfig, PortKind, RxqAffinity};
use dataplane::slots::PortKey;
use load::{INTERVALS, QueueLoad, ThreadLoad, ThreadTotals, busy_time};
use schedule::{QueueDemand, RxqSchedule, ThreadPlace, ThreadPlan, schedule};

/// The module of these messages, as in Open vSwitch.
const LOG: &str = "dpif_netdev";

/// A receive queue of a port.
type RxqKey = (PortKey, usize);

/// The PMD threads and the receive queues.
#[derive(Default)]
pub(super) struct PmdThreads {
    /// The configuration, as logged.
    config: Option<PmdConfig>,
    /// The threads, by core.
    threads: BTreeMap<usize, PmdThread>,
    queues: BTreeMap<RxqKey, RxqState>,
    /// The ports at the last assignment.
    ports: Vec<PortInput>,
    balance: BalanceState,
}

/// A PMD thread.
struct PmdThread {
    /// The index of the worker.
    worker: usize,
    numa: u32,
    is_isolated: bool,
    queues: Vec<RxqKey>,
    load: ThreadLoad,
}

/// A receive queue.
struct RxqState {
    port: String,
    is_pinned: bool,
    /// The NUMA node of the port.
    numa: u32,
    /// The core of the thread that polls the queue.
    core: Option<usize>,
    load: QueueLoad,
}

/// The properties of a port on which the assignment depends.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PortInput {
    key: PortKey,
    name: String,
    /// The queues; none if PMD threads do not poll the port.
    queues: Option<PortQueues>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PortQueues {
    receive: usize,
    transmit: usize,
    numa: u32,
    affinity: RxqAffinity,
}

/// A PMD thread, as commands show it.
pub(super) struct ShownThread<'a> {
    pub(super) core: usize,
    pub(super) numa: u32,
    /// The index of the worker.
    pub(super) worker: usize,
    pub(super) is_isolated: bool,
    /// The queues, sorted by port name and number, with the time spent on each.
    pub(super) queues: Vec<(&'a str, usize, u64)>,
    /// The duration of the intervals, if known, and the time spent on frames in them.
    pub(super) total: Option<u64>,
    pub(super) busy: u64,
}

impl PmdThreads {
    /// Returns the end of the first interval that ends.
    pub(super) fn next_interval(&self) -> Option<Instant> {
        let threads = self.threads.values();
        // An interval ends when its end has passed.
        let due = threads.map(|thread| thread.load.due()).min();
        due.map(|due| due + std::time::Duration::from_nanos(1))
    }

    /// Returns the threads, sorted by core, with the loads of the newest `intervals`.
    pub(super) fn shown(&self, intervals: usize) -> Vec<ShownThread<'_>> {
        let threads = self.threads.iter().map(|(core, thread)| {
            let queue = |key: &RxqKey| {
                let state = self.queues.get(key)?;
                Some((&*state.port, key.1, state.load.history.sum(intervals)))
            };
            let mut queues: Vec<_> = thread.queues.iter().filter_map(queue).collect();
            queues.sort_unstable();
            ShownThread {
                core: *core,
                numa: thread.numa,
                worker: thread.worker,
                is_isolated: thread.is_isolated,
                queues,
                total: thread.load.interval.map(|total| total * intervals as u64),
                busy: thread.load.history.sum(intervals),
            }
        });
        threads.collect()
    }

    /// Returns the current assignment.
    fn current(&self, demands: &[(RxqKey, QueueDemand)]) -> Vec<ThreadPlan> {
        let threads = self.threads.iter().map(|(core, thread)| {
            let mut plan = ThreadPlan::new(ThreadPlace {
                core: *core,
                numa: thread.numa,
            });
            plan.is_isolated = thread.is_isolated;
            for (index, (key, demand)) in demands.iter().enumerate() {
                if thread.queues.contains(key) {
                    plan.add(index, demand.load);
                }
            }
            plan
        });
        threads.collect()
    }

    fn places(&self) -> Vec<ThreadPlace> {
        let threads = self.threads.iter();
        threads
            .map(|(core, thread)| ThreadPlace {
                core: *core,
                numa: thread.numa,
            })
            .collect()
    }

    /// Returns true if a queue that is not pinned is assigned to another node than its port's.
    fn crosses_nodes(&self, estimate: &RxqSchedule, demands: &[(RxqKey, QueueDemand)]) -> bool {
        let free = estimate.threads.iter().filter(|plan| !plan.is_isolated);
        let keys = free
            .flat_map(|plan| &plan.queues)
            .map(|index| &demands[*index].0);
        let mut queues = keys.filter_map(|key| self.queues.get(key));
        queues.any(|queue| {
            let thread = queue.core.and_then(|core| self.threads.get(&core));
            !queue.is_pinned && thread.is_some_and(|thread| thread.numa != queue.numa)
        })
    }
}

impl Control {
    /// Applies the configuration of PMD threads, and assigns the queues anew if it, or a port, has
    /// changed. Without dummies there are no PMD threads beside the workers.
    pub(super) fn update_pmds(&mut self, config: &Config) {
        if !config.dummies.is_enabled() || self.sites.is_empty() {
            return;
        }
        let is_changed = settings::log_changes(self.pmd.config.as_ref(), &config.pmd);
        if !config.pmd.auto_balance.is_enabled {
            self.pmd.balance.disable();
        }
        self.pmd.config = Some(config.pmd.clone());
        let ports = self.port_inputs();
        if is_changed || ports != self.pmd.ports {
            self.pmd.ports = ports;
            self.assign_pmds();
        }
    }

    /// Returns true if PMD threads have workers of their own, on pretended cores.
    pub(super) fn has_own_pmds(&self) -> bool {
        self.tools
            .workers
            .iter()
            .any(|worker| worker.numa.is_none())
    }

    /// Returns the cores of the PMD threads; without pretended cores, those of all workers.
    pub(super) fn pmd_cores(&self) -> Vec<usize> {
        match self.has_own_pmds() {
            true => self.pmd.threads.keys().copied().collect(),
            false => self
                .tools
                .workers
                .iter()
                .map(|worker| worker.core)
                .collect(),
        }
    }

    /// Assigns all receive queues anew.
    pub(super) fn assign_pmds(&mut self) {
        self.adjust_threads();
        let demands = self.demands();
        let config = self.pmd.config.clone().unwrap_or_default();
        let plan = schedule(
            &queue_demands(&demands),
            &self.pmd.places(),
            config.algorithm,
            config.isolates,
        );
        for note in &plan.notes {
            match note.is_warning {
                true => tracing::warn!(target: LOG, "{}", note.text),
                false => tracing::info!(target: LOG, "{}", note.text),
            }
        }
        self.apply_schedule(&plan, &demands);
        self.pmd.balance.is_stale = true;
    }

    /// Returns the properties of all open ports.
    fn port_inputs(&self) -> Vec<PortInput> {
        let sites = self.sites.iter();
        let ports = sites.flat_map(|(id, site)| {
            let open = site.ports.iter().filter(|(_, port)| port.device.is_some());
            open.map(move |(number, port)| (*id, site, *number, port))
        });
        let input = |(bridge, site, port, runtime): (_, &BridgeRuntime, _, &PortRuntime)| {
            let key = PortKey { bridge, port };
            let name = runtime.spec.name.clone();
            let dummy = self.dummies.handles().get(&key);
            let dummy = dummy.filter(|_| runtime.spec.kind == PortKind::Dummy(DummyType::Pmd));
            let settings = site.interface_settings.get(&name);
            let affinity = settings.map(|settings| settings.rxq_affinity.clone());
            let affinity = affinity.unwrap_or_default();
            PortInput {
                key,
                name,
                queues: dummy.map(|dummy| PortQueues::new(&dummy.options(), affinity)),
            }
        };
        ports.map(input).collect()
    }

    /// Starts and ends PMD threads as the ports and the CPU mask require.
    fn adjust_threads(&mut self) {
        let desired = self.desired_threads();
        let threads = &mut self.pmd.threads;
        let (now, workers) = (self.tools.clock.now(), &self.tools.workers);
        let mut is_changed = false;
        threads.retain(|core, thread| {
            let stays = desired.contains_key(core);
            if !stays {
                let numa = thread.numa;
                tracing::info!(
                    target: LOG,
                    "PMD thread on numa_id: {numa}, core id: {core:2} destroyed."
                );
                is_changed = true;
            }
            stays
        });
        for (core, (worker, numa)) in &desired {
            threads.entry(*core).or_insert_with(|| {
                tracing::info!(
                    target: LOG,
                    "PMD thread on numa_id: {numa}, core id: {core:2} created."
                );
                is_changed = true;
                let busy = workers[*worker].counters.usage().busy;
                let totals = ThreadTotals::new(self.tools.clock.unwarped(), busy);
                PmdThread {
                    worker: *worker,
                    numa: *numa,
                    is_isolated: false,
                    queues: Vec::new(),
                    load: ThreadLoad::new(now, totals),
                }
            });
        }
        if is_changed {
            let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
            for (_, numa) in desired.values() {
                *counts.entry(*numa).or_default() += 1;
            }
            for (numa, count) in counts {
                tracing::info!(target: LOG, "There are {count} pmd threads on numa node {numa}");
            }
        }
    }

    /// Returns the worker and the NUMA node of each core that has a PMD thread: those of the CPU
    /// mask, or the first of each node.
    fn desired_threads(&self) -> BTreeMap<usize, (usize, u32)> {
        if !self.pmd.ports.iter().any(|port| port.queues.is_some()) {
            return BTreeMap::new();
        }
        let workers = self.tools.workers.iter().enumerate();
        let able = workers.filter_map(|(index, worker)| Some((worker.core, (index, worker.numa?))));
        let able: BTreeMap<_, _> = able.collect();
        let config = self.pmd.config.as_ref();
        let mask = config.and_then(|config| config.cpu_mask.as_ref());
        let mut nodes = BTreeSet::new();
        let is_desired = |core: &usize, numa: u32| match mask {
            Some(mask) => mask.cores.contains(core),
            None => nodes.insert(numa),
        };
        let mut is_desired = is_desired;
        able.into_iter()
            .filter(|(core, (_, numa))| is_desired(core, *numa))
            .collect()
    }

    /// Returns the receive queues that need a thread, with their loads.
    fn demands(&mut self) -> Vec<(RxqKey, QueueDemand)> {
        self.datapath_ports();
        let mut demands = Vec::new();
        for port in &self.pmd.ports {
            let Some(queues) = &port.queues else { continue };
            let id = (port.key.bridge, port.key.port);
            let number = self.devices.datapath_ports.number(id).unwrap_or_default();
            for queue in 0..queues.receive {
                let key = (port.key, queue);
                let state = self.pmd.queues.get(&key);
                let load = state.map(|state| state.load.history.sum(INTERVALS));
                let demand = QueueDemand {
                    port: port.name.clone(),
                    number,
                    queue,
                    numa: queues.numa,
                    pinned: queues.affinity.0.get(&queue).copied(),
                    load: load.unwrap_or_default(),
                };
                demands.push((key, demand));
            }
        }
        demands
    }

    /// Puts an assignment into force.
    fn apply_schedule(&mut self, plan: &RxqSchedule, demands: &[(RxqKey, QueueDemand)]) {
        let now = self.now();
        let mut cores: BTreeMap<RxqKey, usize> = BTreeMap::new();
        let mut restarted = BTreeSet::new();
        for thread in &plan.threads {
            let keys: Vec<_> = thread
                .queues
                .iter()
                .map(|index| demands[*index].0)
                .collect();
            let core = thread.place.core;
            cores.extend(keys.iter().map(|key| (*key, core)));
            if let Some(state) = self.pmd.threads.get_mut(&core) {
                state.is_isolated = thread.is_isolated;
                if state.queues != keys {
                    state.load.restart(now);
                    restarted.insert(core);
                    state.queues = keys;
                }
            }
        }
        let mut old = std::mem::take(&mut self.pmd.queues);
        for (key, demand) in demands {
            let core = cores.get(key).copied();
            let load = old.remove(key).map(|state| state.load);
            let mut load = load.unwrap_or_default();
            if core.is_some_and(|core| restarted.contains(&core)) {
                load.restart(busy_time(self.dummies.handles().get(&key.0), key.1));
            }
            let state = RxqState {
                port: demand.port.clone(),
                is_pinned: demand.pinned.is_some(),
                numa: demand.numa,
                core,
                load,
            };
            self.pmd.queues.insert(*key, state);
        }
        self.assign_readers(&cores);
    }

    /// Assigns the receive queues of each port to the workers on these cores.
    fn assign_readers(&self, cores: &BTreeMap<RxqKey, usize>) {
        for port in &self.pmd.ports {
            let Some(queues) = &port.queues else { continue };
            let Some(dummy) = self.dummies.handles().get(&port.key) else {
                continue;
            };
            let worker = |queue| {
                let core = cores.get(&(port.key, queue))?;
                self.pmd.threads.get(core).map(|thread| thread.worker)
            };
            let readers: Vec<_> = (0..queues.receive).map(worker).collect();
            dummy.assign(&readers);
        }
    }

    /// Ends the intervals that are over, and balances the queues if that is due.
    pub(super) fn run_pmd_timers(&mut self, now: Instant) {
        if self.pmd.threads.is_empty() {
            return;
        }
        let config = self.pmd.config.clone().unwrap_or_default();
        let balance = config.auto_balance;
        let real = self.tools.clock.unwarped();
        for thread in self.pmd.threads.values_mut() {
            let usage = self.tools.workers[thread.worker].counters.usage();
            let totals = ThreadTotals::new(real, usage.busy);
            let takes_part = balance.is_enabled && !thread.is_isolated;
            let threshold = takes_part.then_some(balance.load_threshold);
            if thread.load.end_interval(now, totals, threshold) {
                for key in &thread.queues {
                    let total = busy_time(self.dummies.handles().get(&key.0), key.1);
                    if let Some(queue) = self.pmd.queues.get_mut(key) {
                        queue.load.end_interval(total);
                    }
                }
            }
        }
        if self.pmd.balance.is_due(&balance, now) && self.should_rebalance(&config) {
            tracing::info!(
                target: LOG,
                "PMD auto load balance dry run. Requesting datapath reconfigure."
            );
            self.assign_pmds();
        }
    }

    /// Returns true if a thread is overloaded and another assignment improves the balance.
    fn should_rebalance(&mut self, config: &PmdConfig) -> bool {
        let mut threads = self.pmd.threads.values();
        if !threads.any(|thread| thread.load.overloaded >= INTERVALS) {
            return false;
        }
        let threads = self.pmd.threads.values().map(|thread| ThreadSummary {
            is_isolated: thread.is_isolated,
            queues: thread.queues.len(),
        });
        if !self.pmd.balance.may_improve(config.algorithm, threads) {
            return false;
        }
        tracing::debug!(target: LOG, "PMD auto load balance performing dry run.");
        let demands = self.demands();
        let places = self.pmd.places();
        let estimate = schedule(
            &queue_demands(&demands),
            &places,
            config.algorithm,
            config.isolates,
        );
        for note in &estimate.notes {
            tracing::debug!(target: LOG, "{}", note.text);
        }
        let nodes: BTreeSet<_> = places.iter().map(|place| place.numa).collect();
        if nodes.len() > 1 && self.pmd.crosses_nodes(&estimate, &demands) {
            tracing::debug!(
                target: LOG,
                "PMD auto load balance detected cross-numa polling with multiple numa nodes. \
                 Unable to accurately estimate."
            );
            return false;
        }
        let interval = |core: usize| self.pmd.threads.get(&core)?.load.interval;
        improves(
            &self.pmd.current(&demands),
            &estimate.threads,
            interval,
            config.auto_balance.improvement_threshold,
        )
    }
}

impl PortQueues {
    fn new(options: &DummyOptions, affinity: RxqAffinity) -> Self {
        Self {
            receive: options.rx_queues.get().into(),
            transmit: options.tx_queues.get().into(),
            numa: options.numa,
            affinity,
        }
    }
}

fn queue_demands(demands: &[(RxqKey, QueueDemand)]) -> Vec<QueueDemand> {
    demands.iter().map(|(_, demand)| demand.clone()).collect()
}
