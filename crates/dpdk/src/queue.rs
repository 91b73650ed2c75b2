//! One worker's queue of a device: a receive queue of its own, if the device has enough, and a
//! transmit queue, which it may share.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use packet::{Checksum, Frame, NoBufferSpace, Pool, SegmentError};
use ports::{Batch, Counter, Queue, QueueCounters};

use crate::eal;
use crate::frames::{MbufBatch, TxBatch};
use crate::port::SharedPort;
use crate::shim::Losses;

/// The length of an Ethernet header: two addresses and a type. Shorter frames are runts.
const HEADER_LEN: usize = 14;
const RUNT_BELOW: u32 = 14;

/// The length of a VLAN tag, which the MTU does not include.
const TAG_LEN: usize = 4;

/// The maximum number of segments of one frame: the number of descriptors.
const SEGMENTS_MAX: u64 = 1024;

/// Drivers of kernel interfaces, which deliver frames with partial checksums. The frames have
/// crossed no wire, so completing their checksums hides no corruption.
const PARTIAL_CHECKSUM_DRIVERS: [&str; 2] = ["net_af_packet", "net_af_xdp"];

/// The number of attempts to lock a shared transmit queue before its frames count as not accepted:
/// longer than the transmission of a batch takes.
const LOCK_ATTEMPTS_MAX: u32 = 10_000;

/// The number of calls of [`Queue::maintain`] between two reads of the device's counters: NICs are
/// slow to answer.
const MAINTAIN_CALLS_PER_COUNT: u32 = 32;

/// One worker's queue of a device.
#[repr(align(128))]
pub(crate) struct DpdkQueue {
    /// Received frames that are not yet delivered. Declared before `port`, so that they are freed
    /// while the device exists.
    received_frames: MbufBatch,
    /// Frames to be sent.
    tx_batch: TxBatch,
    port: Arc<SharedPort>,
    /// The number of its receive queue.
    receive: Option<u16>,
    /// The number of its transmit queue, which other workers may share.
    transmit: u16,
    /// True if received frames may have partial checksums.
    has_partial_checksums: bool,
    frame_max: usize,
    /// The device's counters at their last reading; only one of the queues reads them.
    reported: Option<Losses>,
    maintain_calls: u32,
    /// Scratch space for the segments of a frame.
    segments: Vec<Frame>,
    counters: Arc<QueueCounters>,
}

/// The outcome of segmentation.
enum SegmentOutcome {
    /// The segments were sent, or the frame was dropped and counted.
    Done,
    /// The device is full; the frame stays in the batch.
    Later,
}

impl DpdkQueue {
    /// Returns the queue of worker number `worker`.
    pub(crate) fn new(port: Arc<SharedPort>, worker: u16) -> Self {
        let queues = port.device.queues;
        let receive = (worker < queues.receive).then_some(worker);
        Self {
            receive,
            reported: (worker == 0).then(Losses::default),
            ..Self::transmit_only(port, worker.into())
        }
    }

    /// Returns a transmit-only queue, the `turn`th.
    pub(crate) fn transmit_only(port: Arc<SharedPort>, turn: usize) -> Self {
        let queue = turn % usize::from(port.device.queues.transmit);
        let driver = port.device.description.driver.as_str();
        Self {
            received_frames: MbufBatch::new(),
            tx_batch: TxBatch::new(),
            receive: None,
            transmit: u16::try_from(queue).expect("less than there are queues"),
            has_partial_checksums: PARTIAL_CHECKSUM_DRIVERS.contains(&driver),
            frame_max: usize::from(port.device.description.mtu) + HEADER_LEN + TAG_LEN,
            reported: None,
            maintain_calls: 0,
            port,
            segments: Vec::new(),
            counters: Arc::default(),
        }
    }

    /// Delivers received frames, as far as the batch has room and the pool has buffers.
    fn deliver(&mut self, pool: &mut Pool, batch: &mut Batch) {
        let before = batch.len();
        while self.received_frames.len() > 0 && batch.remaining_capacity() > 0 {
            self.lend(batch);
            if !self.copy_first(pool, batch) {
                break;
            }
        }
        if self.has_partial_checksums {
            let delivered = &mut batch[before..];
            delivered
                .iter_mut()
                .for_each(Frame::detect_partial_checksum);
        }
    }

    /// Delivers without a copy the first frames that can be lent, usually all.
    #[inline]
    fn lend(&mut self, batch: &mut Batch) {
        let counters = &self.counters;
        let (room, before, mut bytes) = (batch.remaining_capacity(), batch.len(), 0);
        let put = |storage, start, len| {
            // Constructed in the batch: a move of the frame through another location would cost
            // more than everything else here.
            match Frame::from_storage(storage, start, len) {
                Ok(frame) => {
                    batch.put(frame);
                    bytes += len as u64;
                }
                // The driver reported an impossible length.
                Err(NoBufferSpace) => counters.add(Counter::RxErrors, 1),
            }
        };
        self.received_frames.lend_first(room, RUNT_BELOW, put);
        // None of the frames needs segmentation, so each counts as one packet.
        counters.add(Counter::RxPackets, (batch.len() - before) as u64);
        counters.add(Counter::RxBytes, bytes);
    }

    /// Copies the first frames that cannot be lent, or drops and counts them. Returns false if the
    /// pool is empty.
    fn copy_first(&mut self, pool: &mut Pool, batch: &mut Batch) -> bool {
        let before = batch.len();
        let mut done = 0;
        let mut starved = false;
        while done < self.received_frames.len()
            && batch.remaining_capacity() > 0
            && !self.received_frames.can_be_lent(done, RUNT_BELOW)
        {
            let copied = match self.received_frames.frame_len(done) {
                ..HEADER_LEN => Err(Counter::RxRunt),
                _ => self.copy(done, pool),
            };
            match copied {
                Ok(Some(frame)) => batch.put(frame),
                Ok(None) => {
                    self.counters.add(Counter::RxNoBuffer, 1);
                    starved = true;
                    break;
                }
                Err(reason) => self.counters.add(reason, 1),
            }
            done += 1;
        }
        self.received_frames.release_first(done);
        self.counters.count_received(&batch[before..]);
        !starved
    }

    /// Returns a copy of a frame, none if the pool is empty, or the reason for which the frame must
    /// be dropped.
    fn copy(&self, index: usize, pool: &mut Pool) -> Result<Option<Frame>, Counter> {
        let len = self.received_frames.frame_len(index);
        let Some(mut frame) = pool.take() else {
            return Ok(None);
        };
        if frame.set_len(len).is_err() {
            pool.put(frame);
            return Err(Counter::RxTooLong);
        }
        match self.received_frames.bytes(index) {
            Some(bytes) => frame.bytes_mut().copy_from_slice(bytes),
            None => self.received_frames.copy(index, frame.bytes_mut()),
        }
        Ok(Some(frame))
    }

    /// Sends frames from the front of `batch` that may need copies or offloads.
    fn send_mixed(&mut self, batch: &mut Batch, pool: &mut Pool) {
        let mut done = 0;
        while done < batch.len() {
            let is_whole = |frame: &Frame| frame.offload.segmentation.is_none();
            let rest = &mut batch[done..];
            let whole = rest.iter().position(|frame| !is_whole(frame));
            let whole = whole.unwrap_or(rest.len());
            if whole == 0 {
                match self.send_segmented(&batch[done], pool) {
                    SegmentOutcome::Done => done += 1,
                    SegmentOutcome::Later => break,
                }
                continue;
            }
            let sent = self.send_whole(&mut rest[..whole]);
            done += sent;
            if sent < whole {
                break;
            }
        }
        batch.release(done, pool);
    }

    /// Sends frames that need no segmentation from the front of `frames`. Returns the number of
    /// frames that were sent or dropped.
    fn send_whole(&mut self, frames: &mut [Frame]) -> usize {
        let device = &self.port.device;
        let has_buffers = self
            .tx_batch
            .begin(frames, |count, fresh| device.allocate(count, fresh));
        if !has_buffers {
            return 0;
        }
        for (index, frame) in frames.iter_mut().enumerate() {
            if frame.len() > self.frame_max {
                continue;
            }
            if let Checksum::Partial { .. } = frame.offload.checksum {
                frame.complete_checksum();
                self.counters.add(Counter::TxChecksummed, 1);
            }
            self.tx_batch.add(frame, index);
        }
        let placed = self.tx_batch.len;
        let sent = self.push();
        let done = match sent == placed {
            true => frames.len(),
            // The first frame that was prepared but not sent, and all after it, stay in the batch.
            false => self.tx_batch.batch_index(sent),
        };
        self.count_sent(frames, sent, done);
        self.tx_batch.end(frames, sent);
        done
    }

    /// Counts the first `done` of `frames`: `sent` of them were sent, the others were too long.
    fn count_sent(&self, frames: &[Frame], sent: usize, done: usize) {
        if sent == done {
            return self.counters.count_sent(&frames[..done]);
        }
        for index in 0..sent {
            let index = self.tx_batch.batch_index(index);
            self.counters.count_sent(&frames[index..=index]);
        }
        let too_long = u64::try_from(done - sent).expect("a batch is small");
        self.counters.add(Counter::TxTooLong, too_long);
    }

    /// Sends the prepared frames, as many as the device accepts.
    fn push(&self) -> usize {
        let (device, tx_batch) = (&self.port.device, &self.tx_batch);
        let sent = self.with_tx_lock(|queue| device.send(queue, tx_batch));
        sent.unwrap_or(0)
    }

    /// Runs `action` with the transmit queue locked. Returns none if the lock is held for too long.
    fn with_tx_lock<T>(&self, action: impl FnOnce(u16) -> T) -> Option<T> {
        let lock = &self.port.tx_locks[usize::from(self.transmit)].0;
        try_lock(lock).then(|| {
            let done = action(self.transmit);
            lock.store(false, Ordering::Release);
            done
        })
    }

    /// Segments a frame and sends its segments. Once some are sent, the others are sent too, or
    /// dropped and counted.
    fn send_segmented(&mut self, frame: &Frame, pool: &mut Pool) -> SegmentOutcome {
        if frame.wire_frames() > SEGMENTS_MAX {
            self.counters.add(Counter::TxErrors, 1);
            return SegmentOutcome::Done;
        }
        let mut segments = std::mem::take(&mut self.segments);
        let outcome = match packet::segment(frame, pool, &mut segments) {
            Ok(()) => self.send_segments(&mut segments),
            Err(SegmentError::Mismatch | SegmentError::TooMany) => {
                self.counters.add(Counter::TxErrors, 1);
                SegmentOutcome::Done
            }
            Err(SegmentError::NoBuffer) => {
                self.counters.add(Counter::TxFull, 1);
                SegmentOutcome::Done
            }
        };
        segments.drain(..).for_each(|segment| pool.put(segment));
        self.segments = segments;
        outcome
    }

    fn send_segments(&mut self, segments: &mut [Frame]) -> SegmentOutcome {
        let count = segments.len();
        let mut done = 0;
        while done < count {
            let end = count.min(done + Batch::FRAMES_MAX);
            match self.send_whole(&mut segments[done..end]) {
                0 if done == 0 => return SegmentOutcome::Later,
                0 => {
                    let left = (count - done) as u64;
                    self.counters.add(Counter::TxFull, left);
                    break;
                }
                more => done += more,
            }
        }
        self.counters.add(Counter::TxSegmented, 1);
        SegmentOutcome::Done
    }

    /// Adds the device's counters to those of the queue.
    fn count(&mut self) {
        let Some(reported) = self.reported else {
            return;
        };
        // Some drivers have no counters.
        let Ok(now) = self.port.device.losses() else {
            return;
        };
        let counters = &self.counters;
        let take = |counter, now: u64, reported: u64| {
            let new = now.saturating_sub(reported);
            counters.add(counter, new);
        };
        let overrun = |losses: Losses| losses.missed + losses.no_buffer;
        take(Counter::RxOverrun, overrun(now), overrun(reported));
        take(
            Counter::RxErrors,
            now.receive_errors,
            reported.receive_errors,
        );
        take(
            Counter::TxErrors,
            now.transmit_errors,
            reported.transmit_errors,
        );
        self.reported = Some(now);
    }
}

impl Queue for DpdkQueue {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let Some(queue) = self.receive else {
            return Ok(());
        };
        eal::join();
        if self.received_frames.len() < batch.remaining_capacity() {
            self.port.device.receive(queue, &mut self.received_frames);
        }
        if !self.port.is_up() {
            // The frames are discarded without a count, as on an interface that is down.
            self.received_frames.release();
        }
        if self.received_frames.len() > 0 {
            self.deliver(pool, batch);
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        eal::join();
        if !self.port.is_up() {
            self.counters.add(Counter::TxDown, batch.len() as u64);
            batch.release(batch.len(), pool);
            return Ok(());
        }
        if let Some(bytes) = self.tx_batch.all(batch, self.frame_max) {
            let sent = self.push();
            match sent == batch.len() {
                true => {
                    self.counters.add(Counter::TxPackets, sent as u64);
                    self.counters.add(Counter::TxBytes, bytes);
                }
                false => self.counters.count_sent(&batch[..sent]),
            }
            batch.forget(sent);
            return Ok(());
        }
        self.send_mixed(batch, pool);
        Ok(())
    }

    fn maintain(&mut self) -> io::Result<()> {
        // Buffers of sent frames belong to their receiver's pool and must not stay in an idle
        // queue.
        self.with_tx_lock(|queue| self.port.device.reap(queue));
        self.maintain_calls += 1;
        if self.maintain_calls >= MAINTAIN_CALLS_PER_COUNT {
            self.maintain_calls = 0;
            self.count();
        }
        self.port.check()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        // A transmit-only queue need not be polled.
        self.receive.map(|_| self.port.ready.as_fd())
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

/// Locks a queue that several workers may share; the lock is only held briefly.
fn try_lock(lock: &AtomicBool) -> bool {
    for _ in 0..LOCK_ATTEMPTS_MAX {
        if !lock.swap(true, Ordering::Acquire) {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}
