//! The queue of a dummy port at one worker. It polls those receive queues of the port that are
//! assigned to it, one of them per call.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use packet::{Frame, Pool};

use super::state::{DummyParts, DummyState};
use super::timer::ReaderTimer;
use crate::counters::{Counter, QueueCounters};
use crate::{Batch, Queue};

/// Length of an Ethernet header, and of a VLAN tag.
const ETHERNET_LEN: usize = 14;
const TAG_LEN: usize = 4;

/// The EtherType of a VLAN tag.
const VLAN: [u8; 2] = [0x81, 0];

#[repr(align(128))]
pub(super) struct DummyQueue {
    state: Arc<DummyState>,
    /// The reader's number and its wake-up; none for a queue that only sends.
    reader: Option<(usize, Arc<OwnedFd>)>,
    /// The number among the queues of the port that send.
    sender: usize,
    /// The receive queue to poll next.
    next: usize,
    timer: Option<Arc<ReaderTimer>>,
    counters: Arc<QueueCounters>,
}

impl DummyQueue {
    /// Returns a queue that receives as this reader.
    pub(super) fn reading(
        state: &Arc<DummyState>,
        reader: usize,
        timer: Option<Arc<ReaderTimer>>,
    ) -> Self {
        let readiness = state.readiness(reader);
        Self {
            reader: readiness.map(|readiness| (reader, readiness)),
            timer,
            ..Self::sending(state, reader)
        }
    }

    /// Returns a queue that only sends.
    pub(super) fn sending(state: &Arc<DummyState>, sender: usize) -> Self {
        Self {
            state: Arc::clone(state),
            reader: None,
            sender,
            next: 0,
            timer: None,
            counters: Arc::default(),
        }
    }

    /// Moves frames of one receive queue to the batch. Returns the queue if it had frames.
    fn take_frames(
        &mut self,
        parts: &mut DummyParts,
        reader: usize,
        pool: &mut Pool,
        batch: &mut Batch,
    ) -> Option<usize> {
        let count = parts.rx_queues.len();
        let mut order = (0..count).map(|step| (self.next + step) % count.max(1));
        let index = order.find(|index| {
            let queue = &parts.rx_queues[*index];
            queue.reader == Some(reader) && !queue.frames.is_empty()
        })?;
        self.next = index + 1;
        let queue = &mut parts.rx_queues[index];
        while batch.remaining_capacity() > 0 && !queue.frames.is_empty() {
            let Some(mut frame) = pool.take() else {
                self.counters.add(Counter::RxNoBuffer, 1);
                break;
            };
            let Some(received) = queue.frames.pop_front() else {
                pool.put(frame);
                break;
            };
            if frame.copy_from(received.bytes()).is_err() {
                self.counters.add(Counter::RxTooLong, 1);
                pool.put(frame);
                continue;
            }
            queue.totals.add(&frame);
            batch.put(frame);
        }
        Some(index)
    }

    fn is_too_long(&self, frame: &Frame) -> bool {
        let tag = match frame.bytes().get(12..14) {
            Some(kind) if kind == VLAN => TAG_LEN,
            _ => 0,
        };
        let mtu = self.state.mtu() as usize;
        frame.wire_frames() == 1 && frame.len() > mtu + ETHERNET_LEN + tag
    }
}

impl Queue for DummyQueue {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        if let Some(timer) = &self.timer {
            timer.stop();
        }
        let Some(reader) = self.reader.as_ref().map(|(reader, _)| *reader) else {
            return Ok(());
        };
        let before = batch.len();
        let state = Arc::clone(&self.state);
        let mut parts = state.parts();
        if state.has_connection() && parts.reads_connection(reader) {
            parts.run_connection();
        }
        let queue = self.take_frames(&mut parts, reader, pool, batch);
        parts.clear_if_empty(reader);
        let received = &batch[before..];
        self.counters.count_received(received);
        parts.files.write_received(received);
        if let (Some(queue), Some(timer)) = (queue, &self.timer) {
            timer.start(&parts.rx_queues[queue].busy);
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        if !self.state.is_up() {
            self.counters.add(Counter::TxDown, batch.len() as u64);
            batch.release(batch.len(), pool);
            return Ok(());
        }
        let mut parts = self.state.parts();
        let (steering, queues) = (parts.options.steering, parts.options.tx_queues);
        for frame in &batch[..] {
            let frame = std::slice::from_ref(frame);
            if self.is_too_long(&frame[0]) {
                self.counters.add(Counter::TxTooLong, 1);
                continue;
            }
            self.counters.count_sent(frame);
            parts.files.write_sent(frame);
            let queue = steering.queue(&frame[0], self.sender, queues);
            parts.tx_totals[queue].add(&frame[0]);
            parts.send_to_peers(&frame[0]);
        }
        drop(parts);
        batch.release(batch.len(), pool);
        Ok(())
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(|(_, readiness)| readiness.as_fd())
    }

    fn is_expensive_to_poll(&self) -> bool {
        self.reader.is_some() && self.state.has_connection()
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}
