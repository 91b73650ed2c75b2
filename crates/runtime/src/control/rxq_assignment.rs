//! Receive-queue assignment: the worker that receives each port's frames. Assigned when a port is
//! opened, shown by a command, and changed while frames arrive.
//!
//! A port has one receive queue for each worker that its frames are shared among, and one
//! transmit-only queue for each of the others. To move a port, two workers exchange these queues:
//! pending frames move with the queue, so none is lost or reordered.

use std::fmt::Write;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use base::PortNo;
use ports::dummy::DummyType;
use ports::{Counter, Port, Queue, QueueCounters};

use super::Control;
use super::bridge_runtime::PortRuntime;
use config::{Affinity, PortKind};
use dataplane::messages::{QueueExchange, QueuePurpose, ReturnedQueue, WorkerCommand};
use dataplane::program::BridgeId;
use dataplane::slots::PortKey;

/// The queue of a port at one worker.
pub(super) struct WorkerQueue {
    /// True if the worker receives the port's frames.
    pub(super) receives: bool,
    /// The counters of the worker's current queue.
    pub(super) counters: Arc<QueueCounters>,
}

impl Control {
    /// Returns the workers that receive the frames of the port `name`, without duplicates, in the
    /// order of the queues that [`assign_queues`] returns. If a core has no worker, that is logged
    /// and all workers receive. Workers of pretended cores receive from `dummy-pmd` ports only.
    pub(super) fn rx_workers(&self, affinity: &[Affinity], name: &str) -> Vec<usize> {
        let affinity = affinity.iter().find(|of| of.port == name);
        let workers = self.tools.workers.iter();
        let main = workers.filter(|worker| worker.numa.is_none()).count();
        let count = match main {
            0 => self.tools.workers.len(),
            main => main,
        };
        let all = || (0..count).collect();
        let Some(affinity) = affinity else {
            return all();
        };
        match self.workers_on(&affinity.cores) {
            Ok(mut workers) => {
                workers.sort_unstable();
                workers
            }
            Err(problem) => {
                tracing::warn!("{affinity}: {problem}; all workers receive its frames");
                all()
            }
        }
    }

    /// Returns the workers on these cores.
    fn workers_on(&self, cores: &[usize]) -> Result<Vec<usize>, String> {
        let find = |core: &usize| {
            let mut workers = self.tools.workers.iter();
            let found = workers.position(|worker| worker.core == *core);
            found.ok_or_else(|| format!("no worker runs on core {core}"))
        };
        cores.iter().map(find).collect()
    }

    /// Assigns all ports of a bridge according to the current configuration.
    pub(super) fn assign_all(&mut self, bridge: BridgeId) {
        let Some(site) = self.sites.get(&bridge) else {
            return;
        };
        let ports = site.ports.iter();
        // The queues of `dummy-pmd` ports are assigned to PMD threads.
        let ports = ports.filter(|(_, port)| {
            let is_pmd = port.spec.kind == PortKind::Dummy(DummyType::Pmd);
            !port.queues_of_workers.is_empty() && !is_pmd
        });
        let ports: Vec<_> = ports
            .map(|(number, port)| (*number, port.spec.name.clone()))
            .collect();
        for (number, name) in ports {
            let affinity = self.sites.get(&bridge).map(|site| &*site.affinity);
            let rx_workers = self.rx_workers(affinity.unwrap_or_default(), &name);
            if let Err(problem) = self.assign(bridge, number, &rx_workers) {
                tracing::warn!("{name}: {problem}");
            }
        }
    }

    /// Assigns a port to the workers on these cores.
    pub(super) fn assign_to(
        &mut self,
        bridge: BridgeId,
        name: &str,
        cores: &[usize],
    ) -> Result<(), String> {
        let workers = self.workers_on(cores)?;
        let site = self.sites.get(&bridge);
        let mut ports = site.iter().flat_map(|site| &site.ports);
        let found = ports.find(|(_, port)| port.spec.name == name);
        let (number, _) = found.ok_or_else(|| format!("no such port: {name}"))?;
        self.assign(bridge, *number, &workers)
    }

    fn assign(
        &mut self,
        bridge: BridgeId,
        number: PortNo,
        workers: &[usize],
    ) -> Result<(), String> {
        let site = self.sites.get_mut(&bridge);
        let Some(port) = site.and_then(|site| site.ports.get_mut(&number)) else {
            return Ok(());
        };
        let current_rx_workers = port.current_rx_workers();
        if current_rx_workers.len() != workers.len() {
            return Err(format!(
                "the port was opened with {} receive queues: give as many cores, \
                 or remove the port and add it again",
                current_rx_workers.len()
            ));
        }
        if port.moves > 0 {
            // A queue in transit cannot be reassigned yet.
            port.next_assignment = Some(workers.to_vec());
            return Ok(());
        }
        let leaving_workers = current_rx_workers
            .iter()
            .filter(|worker| !workers.contains(worker));
        let joining_workers = workers
            .iter()
            .filter(|worker| !current_rx_workers.contains(worker));
        let moves: Vec<_> = leaving_workers
            .copied()
            .zip(joining_workers.copied())
            .collect();
        for (from, to) in moves {
            let moved = self.move_port(bridge, number, from, to);
            moved.map_err(|error| format!("creating a transmit queue: {error}"))?;
        }
        Ok(())
    }

    /// Moves a port's receive queue from one worker to another.
    fn move_port(
        &mut self,
        bridge: BridgeId,
        number: PortNo,
        from: usize,
        to: usize,
    ) -> io::Result<()> {
        let site = self.sites.get_mut(&bridge);
        let site = site.expect("its port was found");
        let port = site.ports.get_mut(&number);
        let port = port.expect("it was found");
        let queue = match (port.spare.pop(), &port.device) {
            (Some(queue), _) => queue,
            (None, Some(device)) => {
                let queue = device.tx_queue()?;
                site.bridge.handle_queue_added(number, queue.counters());
                queue
            }
            (None, None) => return Ok(()),
        };
        let counters =
            std::mem::replace(&mut port.queues_of_workers[from].counters, queue.counters());
        port.queues_of_workers[from].receives = false;
        port.queues_of_workers[to] = WorkerQueue {
            receives: true,
            counters,
        };
        let key = PortKey {
            bridge,
            port: number,
        };
        port.moves += 1;
        self.devices.moving.insert(key);
        self.exchange(from, key, queue, QueuePurpose::Serve(to));
        Ok(())
    }

    fn exchange(
        &mut self,
        worker: usize,
        key: PortKey,
        queue: Box<dyn Queue>,
        purpose: QueuePurpose,
    ) {
        let site = self.sites.get(&key.bridge);
        let Some(port) = site.and_then(|site| site.ports.get(&key.port)) else {
            return;
        };
        let back = port.returned.0.clone();
        let exchange = QueueExchange {
            key,
            queue,
            back,
            purpose,
        };
        let command = WorkerCommand::Exchange(Box::new(exchange));
        self.tools.workers[worker].handle.send_reliably(command);
    }

    /// Takes the queues that workers have returned, and hands them on by their purpose.
    pub(super) fn handle_returned_queues(&mut self) {
        let moving: Vec<_> = self.devices.moving.iter().copied().collect();
        for key in moving {
            let site = self.sites.get_mut(&key.bridge);
            let port = site.and_then(|site| site.ports.get_mut(&key.port));
            let Some(port) = port.filter(|port| !port.queues_of_workers.is_empty()) else {
                self.devices.moving.remove(&key);
                continue;
            };
            let returned: Vec<ReturnedQueue> = port.returned.1.try_iter().collect();
            for ReturnedQueue { queue, purpose } in returned {
                match purpose {
                    QueuePurpose::Serve(worker) => {
                        self.exchange(worker, key, queue, QueuePurpose::Keep)
                    }
                    QueuePurpose::Keep => self.keep_spare(key, queue),
                }
            }
        }
    }

    /// Keeps a transmit-only queue until the port is moved again.
    fn keep_spare(&mut self, key: PortKey, queue: Box<dyn Queue>) {
        let site = self.sites.get_mut(&key.bridge);
        let Some(port) = site.and_then(|site| site.ports.get_mut(&key.port)) else {
            return;
        };
        port.spare.push(queue);
        port.moves -= 1;
        if port.moves > 0 {
            return;
        }
        self.devices.moving.remove(&key);
        let next_assignment = port.next_assignment.take();
        let moved = next_assignment.map_or(Ok(()), |workers| {
            self.assign(key.bridge, key.port, &workers)
        });
        if let Err(problem) = moved {
            tracing::warn!(port = %key.port, "{problem}");
        }
    }

    /// Formats the ports of each worker for a person.
    pub(super) fn describe_workers(&self) -> String {
        let mut text = String::new();
        let mut line = |words: String| writeln!(text, "{words}").expect("a string has room");
        for (place, worker) in self.tools.workers.iter().enumerate() {
            line(format!("worker {place} on core {}:", worker.core));
            for site in self.sites.values() {
                let bridge = site.bridge.name();
                for (number, port) in &site.ports {
                    if let Some(worker_queue) = port.queues_of_workers.get(place) {
                        let name = &port.spec.name;
                        let io_mode = port.io_mode.iter().map(|mode| format!(" ({mode})"));
                        let io_mode: String = io_mode.collect();
                        line(format!(
                            "  {bridge} {number}({name}): {worker_queue}{io_mode}"
                        ));
                    }
                }
            }
        }
        text
    }
}

impl std::fmt::Display for WorkerQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = self.counters.read();
        let (received, left) = (counts[Counter::RxPackets], counts[Counter::TxPackets]);
        match self.receives {
            true => write!(f, "{received} frames received, {left} sent")?,
            false => write!(f, "receives none, {left} sent")?,
        }
        match counts[Counter::TxZeroCopy] {
            0 => Ok(()),
            moved => write!(f, ", {moved} of them zero-copy"),
        }
    }
}

impl PortRuntime {
    /// Returns the workers that receive the port's frames.
    fn current_rx_workers(&self) -> Vec<usize> {
        let queues_of_workers = self.queues_of_workers.iter().enumerate();
        let current_rx_workers =
            queues_of_workers.filter(|(_, worker_queue)| worker_queue.receives);
        current_rx_workers.map(|(worker, _)| worker).collect()
    }
}

/// Returns a device's queue for each of `workers` with its assignment; `rx_workers` receive.
pub(super) fn assign_queues(
    device: &mut dyn Port,
    rx_workers: &[usize],
    workers: NonZeroUsize,
) -> io::Result<Vec<(Box<dyn Queue>, WorkerQueue)>> {
    let mut receiving = device.take_queues().into_iter();
    let queue = |worker| {
        let receives = rx_workers.contains(&worker);
        let queue = match receives {
            true => receiving.next().expect("it has a queue for each of them"),
            false => device.tx_queue()?,
        };
        let counters = queue.counters();
        Ok((queue, WorkerQueue { receives, counters }))
    };
    (0..workers.get()).map(queue).collect()
}
