//! The assignment of receive queues to PMD threads, by the algorithms of Open vSwitch
//! (ovs-vswitchd.conf.db(5), `other_config:pmd-rxq-assign`). A pure function of the queues, their
//! loads and the threads.
//!
//! Pinned queues are placed first, and isolate their threads. Each other queue goes to a thread of
//! its port's NUMA node; if that node has none, the other nodes take turns.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use config::RxqAlgorithm;

/// A PMD thread that takes part in an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadPlace {
    /// The core.
    pub(super) core: usize,
    /// The NUMA node.
    pub(super) numa: u32,
}

/// A receive queue to assign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueueDemand {
    /// The port's name, and its number in the datapath.
    pub(super) port: String,
    pub(super) number: u32,
    /// The number of the queue.
    pub(super) queue: usize,
    /// The NUMA node of the port.
    pub(super) numa: u32,
    /// The core that the configuration requests.
    pub(super) pinned: Option<usize>,
    /// The measured load, in nanoseconds.
    pub(super) load: u64,
}

/// The queues of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadPlan {
    /// The thread.
    pub(super) place: ThreadPlace,
    /// True if only pinned queues may be assigned.
    pub(super) is_isolated: bool,
    /// The indexes of the queues.
    pub(super) queues: Vec<usize>,
    /// The sum of the loads of the queues.
    pub(super) load: u64,
}

impl ThreadPlan {
    pub(super) const fn new(place: ThreadPlace) -> Self {
        Self {
            place,
            is_isolated: false,
            queues: Vec::new(),
            load: 0,
        }
    }

    pub(super) fn add(&mut self, index: usize, load: u64) {
        self.queues.push(index);
        self.load += load;
    }
}

/// A message about an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScheduleNote {
    /// True for a problem.
    pub(super) is_warning: bool,
    /// The text, in Open vSwitch's words.
    pub(super) text: String,
}

/// An assignment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RxqSchedule {
    /// The threads, sorted by core.
    pub(super) threads: Vec<ThreadPlan>,
    /// The messages, in order.
    pub(super) notes: Vec<ScheduleNote>,
}

/// Returns the assignment of `queues` to threads at `places`. With `isolates`, a thread with a
/// pinned queue gets no other queue.
pub(super) fn schedule(
    queues: &[QueueDemand],
    places: &[ThreadPlace],
    algorithm: RxqAlgorithm,
    isolates: bool,
) -> RxqSchedule {
    let mut scheduler = Scheduler::new(queues, places, algorithm);
    let free = scheduler.pin(isolates);
    scheduler.distribute(free);
    RxqSchedule {
        threads: scheduler.threads,
        notes: scheduler.notes,
    }
}

/// The threads of a NUMA node.
#[derive(Debug, Default)]
struct NodeThreads {
    /// The indexes of the threads, by core.
    threads: Vec<usize>,
    /// The next thread in turn, and the direction.
    next: usize,
    is_descending: bool,
}

struct Scheduler<'a> {
    queues: &'a [QueueDemand],
    algorithm: RxqAlgorithm,
    threads: Vec<ThreadPlan>,
    nodes: BTreeMap<u32, NodeThreads>,
    /// The node of the last queue that was assigned to another node than its own.
    last_other_node: Option<u32>,
    notes: Vec<ScheduleNote>,
}

impl<'a> Scheduler<'a> {
    fn new(queues: &'a [QueueDemand], places: &[ThreadPlace], algorithm: RxqAlgorithm) -> Self {
        let mut places = places.to_vec();
        places.sort_by_key(|place| place.core);
        let mut nodes: BTreeMap<u32, NodeThreads> = BTreeMap::new();
        for (index, place) in places.iter().enumerate() {
            nodes.entry(place.numa).or_default().threads.push(index);
        }
        Self {
            queues,
            algorithm,
            threads: places.into_iter().map(ThreadPlan::new).collect(),
            nodes,
            last_other_node: None,
            notes: Vec::new(),
        }
    }

    fn note(&mut self, is_warning: bool, text: String) {
        self.notes.push(ScheduleNote { is_warning, text });
    }

    /// Places the pinned queues, and returns the indexes of the others.
    fn pin(&mut self, isolates: bool) -> Vec<usize> {
        let mut free = Vec::new();
        for (index, demand) in self.queues.iter().enumerate() {
            let Some(core) = demand.pinned else {
                free.push(index);
                continue;
            };
            let QueueDemand { port, queue, .. } = demand;
            let mut threads = self.threads.iter_mut();
            let Some(thread) = threads.find(|thread| thread.place.core == core) else {
                free.push(index);
                self.note(
                    true,
                    format!(
                        "Core {core:2} cannot be pinned with port '{port}' rx queue {queue}. \
                         Use pmd-cpu-mask to enable a pmd on core {core}. \
                         An alternative core will be assigned."
                    ),
                );
                continue;
            };
            thread.is_isolated |= isolates;
            thread.add(index, demand.load);
            let (numa, load) = (thread.place.numa, self.load_text(demand));
            self.note(
                false,
                format!(
                    "Core {core:2} on numa node {numa} is pinned with port '{port}' \
                     rx queue {queue}{load}"
                ),
            );
        }
        free
    }

    /// Distributes the queues that are not pinned.
    fn distribute(&mut self, mut free: Vec<usize>) {
        let algorithm = self.algorithm;
        if algorithm != RxqAlgorithm::RoundRobin {
            free.sort_by_key(|index| {
                let demand = &self.queues[*index];
                (Reverse(demand.load), demand.number, demand.queue)
            });
        }
        if !free.is_empty() {
            self.note(
                false,
                format!("Performing pmd to rx queue assignment using {algorithm} algorithm."),
            );
        }
        for index in free {
            self.place(index);
        }
    }

    fn place(&mut self, index: usize) {
        let queues = self.queues;
        let demand = &queues[index];
        let QueueDemand { port, queue, .. } = demand;
        let load = self.load_text(demand);
        let node = self.choose_node(demand.numa);
        let thread = node.and_then(|node| self.choose_thread(node, demand.load > 0));
        let Some(thread) = thread else {
            let text = format!(
                "No non-isolated pmd on any numa available for port '{port}' \
                 rx queue {queue}{load}. This rx queue will not be polled."
            );
            return self.note(true, text);
        };
        let ThreadPlace { core, numa } = self.threads[thread].place;
        self.threads[thread].add(index, demand.load);
        if numa != demand.numa {
            let text = format!(
                "There's no available (non-isolated) pmd thread on numa node {}. \
                 Port '{port}' rx queue {queue} will be assigned to a pmd on numa node {numa}. \
                 This may lead to reduced performance.",
                demand.numa
            );
            self.note(false, text);
        }
        let text = format!(
            "Core {core:2} on numa node {numa} assigned port '{port}' rx queue {queue}{load}."
        );
        self.note(false, text);
    }

    fn load_text(&self, demand: &QueueDemand) -> String {
        match self.algorithm {
            RxqAlgorithm::RoundRobin => String::new(),
            _ => format!(" (measured processing cycles {})", demand.load),
        }
    }

    fn has_thread(&self, node: u32) -> bool {
        let node = self.nodes.get(&node);
        let mut threads = node.into_iter().flat_map(|node| &node.threads);
        threads.any(|thread| !self.threads[*thread].is_isolated)
    }

    /// Returns the node of the port, or the next other node with a thread.
    fn choose_node(&mut self, own: u32) -> Option<u32> {
        if self.has_thread(own) {
            return Some(own);
        }
        for _ in 0..self.nodes.len() {
            let after = self.last_other_node;
            let later = self.nodes.keys().find(|node| Some(**node) > after);
            let node = *later.or_else(|| self.nodes.keys().next())?;
            self.last_other_node = Some(node);
            if self.has_thread(node) {
                return Some(node);
            }
        }
        None
    }

    fn choose_thread(&mut self, node: u32, has_load: bool) -> Option<usize> {
        let turns_back = match self.algorithm {
            RxqAlgorithm::Group => return self.least_loaded(node, has_load),
            RxqAlgorithm::Cycles => true,
            RxqAlgorithm::RoundRobin => false,
        };
        let node = self.nodes.get_mut(&node)?;
        // A turn back names the last thread twice.
        (0..node.threads.len() * 2)
            .map(|_| node.next_in_turn(turns_back))
            .find(|thread| !self.threads[*thread].is_isolated)
    }

    fn least_loaded(&self, node: u32, has_load: bool) -> Option<usize> {
        let threads = self.nodes.get(&node)?.threads.iter().copied();
        let free = threads.filter(|thread| !self.threads[*thread].is_isolated);
        free.min_by_key(|thread| {
            let plan = &self.threads[*thread];
            match has_load {
                true => plan.load,
                false => plan.queues.len() as u64,
            }
        })
    }
}

impl NodeThreads {
    /// Returns the next thread: 0, 1, 2, 0 .. or, if the order turns back, 0, 1, 2, 2, 1, 0, 0 ..
    fn next_in_turn(&mut self, turns_back: bool) -> usize {
        let thread = self.threads[self.next];
        match (self.is_descending, self.next) {
            (false, last) if last + 1 == self.threads.len() => match turns_back {
                true => self.is_descending = true,
                false => self.next = 0,
            },
            (false, _) => self.next += 1,
            (true, 0) => self.is_descending = false,
            (true, _) => self.next -= 1,
        }
        thread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(count: usize) -> Vec<QueueDemand> {
        let demand = |queue| QueueDemand {
            port: "p0".to_owned(),
            number: 1,
            queue,
            numa: 0,
            pinned: None,
            load: 0,
        };
        (0..count).map(demand).collect()
    }

    fn places(numas: &[u32]) -> Vec<ThreadPlace> {
        let places = numas.iter().enumerate();
        places
            .map(|(core, numa)| ThreadPlace { core, numa: *numa })
            .collect()
    }

    fn assigned(schedule: &RxqSchedule) -> Vec<&[usize]> {
        let threads = schedule.threads.iter();
        threads.map(|thread| &thread.queues[..]).collect()
    }

    #[test]
    fn idle_queues_are_assigned_in_the_order_of_each_algorithm() {
        let (queues, places) = (queues(8), places(&[0, 0]));
        let plan = |algorithm| schedule(&queues, &places, algorithm, true);
        let turns = plan(RxqAlgorithm::RoundRobin);
        assert_eq!(assigned(&turns), [[0, 2, 4, 6], [1, 3, 5, 7]]);
        let cycles = plan(RxqAlgorithm::Cycles);
        assert_eq!(assigned(&cycles), [[0, 3, 4, 7], [1, 2, 5, 6]]);
        let group = plan(RxqAlgorithm::Group);
        assert_eq!(assigned(&group), [[0, 2, 4, 6], [1, 3, 5, 7]]);
        let first = "Performing pmd to rx queue assignment using group algorithm.";
        assert_eq!(group.notes[0].text, first);
    }

    #[test]
    fn loaded_queues_are_balanced() {
        let mut queues = queues(4);
        for (queue, load) in queues.iter_mut().zip([10, 70, 30, 40]) {
            queue.load = load;
        }
        let plan = |algorithm| schedule(&queues, &places(&[0, 0]), algorithm, true);
        assert_eq!(assigned(&plan(RxqAlgorithm::Group)), [&[1, 0][..], &[3, 2]]);
        assert_eq!(assigned(&plan(RxqAlgorithm::Cycles)), [[1, 0], [3, 2]]);
        let turns = plan(RxqAlgorithm::RoundRobin);
        assert_eq!(assigned(&turns), [[0, 2], [1, 3]]);
        assert!(turns.notes[1].text.ends_with("'p0' rx queue 0."));
    }

    #[test]
    fn pinned_queue_isolates_its_thread() {
        let mut queues = queues(4);
        queues[0].pinned = Some(1);
        let places = places(&[0, 0, 0])[1..].to_vec();
        let plan = |isolates| schedule(&queues, &places, RxqAlgorithm::Group, isolates);
        let isolated = plan(true);
        assert_eq!(assigned(&isolated), [&[0][..], &[1, 2, 3]]);
        assert!(isolated.threads[0].is_isolated);
        assert_eq!(assigned(&plan(false)), [&[0, 2][..], &[1, 3]]);
        queues[0].pinned = Some(7);
        let missing = schedule(&queues, &places, RxqAlgorithm::Group, true);
        assert_eq!(assigned(&missing), [[0, 2], [1, 3]]);
        assert!(missing.notes[0].is_warning);
        assert!(
            missing.notes[0]
                .text
                .starts_with("Core  7 cannot be pinned")
        );
    }

    #[test]
    fn queues_without_thread_of_their_node_use_other_nodes_in_turn() {
        let plan = schedule(
            &queues(4),
            &places(&[1, 2, 1, 2]),
            RxqAlgorithm::RoundRobin,
            true,
        );
        assert_eq!(assigned(&plan), [[0], [1], [2], [3]]);
        let crossing = "There's no available (non-isolated) pmd thread on numa node 0. \
                        Port 'p0' rx queue 3 will be assigned to a pmd on numa node 2. \
                        This may lead to reduced performance.";
        assert!(plan.notes.iter().any(|note| note.text == crossing));
    }

    #[test]
    fn queue_is_not_polled_if_all_threads_are_isolated() {
        let mut queues = queues(2);
        queues[0].pinned = Some(0);
        let plan = schedule(&queues, &places(&[0]), RxqAlgorithm::Cycles, true);
        assert_eq!(assigned(&plan), [[0]]);
        let last = plan.notes.last().expect("a note");
        assert!(last.is_warning && last.text.ends_with("This rx queue will not be polled."));
    }
}
