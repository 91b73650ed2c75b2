//! The queue of one worker: the sockets of some of the device's receive queues.
//!
//! Received frames stay in the UMEM; frames in the same UMEM are sent in place, others are copied.
//! Errors of the kernel are mapped to counters here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use packet::{Checksum, Frame, NoBufferSpace, Pool, SegmentError};
use rustix::event::epoll;
use rustix::io::Errno;
use sys::xsk::{RxFrame, Statistics, UmemFrame, XskSocket};

use super::{InterfaceHandle, QueueBehaviour, TX_CHUNKS};
use crate::af_packet::sender::PacketSender;
use crate::counters::{Counter, QueueCounters};
use crate::{Batch, Queue, error};

/// Length of an Ethernet header: two addresses and a type.
const HEADER_LEN: usize = 14;

/// The queue of one worker.
#[repr(align(128))]
pub(super) struct XdpQueue {
    handle: Arc<InterfaceHandle>,
    sockets: Vec<QueueSocket>,
    /// Socket to poll first in the next call.
    first: usize,
    /// Packet socket for sending if the worker has no AF_XDP socket.
    sender: Option<PacketSender>,
    /// Becomes readable with any of several sockets.
    any: Option<OwnedFd>,
    behaviour: QueueBehaviour,
    frame_max: usize,
    /// The interface was down at the last attempt to send.
    down: bool,
    /// Segments of one frame.
    segments: Vec<Frame>,
    counters: Arc<QueueCounters>,
}

/// Socket of one receive queue of the device.
struct QueueSocket {
    socket: XskSocket,
    /// Values of the kernel's counters that are already added to this queue's.
    counted: Statistics,
}

/// Outcome of enqueueing a frame.
enum EnqueueOutcome {
    /// Enqueued in place.
    ZeroCopy,
    /// EnqueueOutcome as a copy.
    Copied,
    /// Dropped, for this reason.
    Dropped(Counter),
    /// No space now.
    Full,
}

impl XdpQueue {
    pub(super) fn new(
        handle: Arc<InterfaceHandle>,
        sockets: Vec<XskSocket>,
        sender: Option<PacketSender>,
        behaviour: QueueBehaviour,
    ) -> io::Result<Self> {
        Ok(Self {
            any: epoll_any(&sockets)?,
            frame_max: handle.frame_max()?,
            sockets: sockets.into_iter().map(QueueSocket::new).collect(),
            handle,
            first: 0,
            sender,
            behaviour,
            down: false,
            segments: Vec::new(),
            counters: Arc::default(),
        })
    }

    /// Classifies a socket error: transient, or final because the device was removed or a ring is
    /// inconsistent.
    fn classify_error(&mut self, error: io::Error) -> io::Result<()> {
        match Errno::from_io_error(&error) {
            Some(Errno::NETDOWN) => {
                self.down = true;
                Ok(())
            }
            Some(Errno::BUSY) => {
                // The kernel had consumed the descriptor, so the frame also counts as sent.
                self.counters.add(Counter::TxFull, 1);
                Ok(())
            }
            Some(Errno::NXIO | Errno::NODEV) => Err(error::removed(&self.handle.name)),
            _ => Err(io::Error::new(
                error.kind(),
                format!("interface {}: {error}", self.handle.name),
            )),
        }
    }

    /// Enqueues frames from the front and returns the number processed. Frames enqueued in place
    /// leave empty frames behind.
    fn enqueue_all(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<usize> {
        let mut done = 0;
        let mut last_try = false;
        let mut sent = TxTotals::default();
        while done < batch.len() {
            let frame = &mut batch[done];
            let (frames, bytes) = (frame.wire_frames(), frame.wire_bytes());
            match self.enqueue(frame, pool) {
                EnqueueOutcome::ZeroCopy => {
                    sent.zero_copy += 1;
                    sent.bytes += bytes;
                }
                EnqueueOutcome::Copied => {
                    sent.copied += frames;
                    sent.bytes += bytes;
                }
                EnqueueOutcome::Dropped(reason) => self.counters.add(reason, 1),
                EnqueueOutcome::Full if last_try => break,
                EnqueueOutcome::Full => {
                    last_try = true;
                    if let Err(error) = self.flush() {
                        sent.count(&self.counters);
                        batch.release(done, pool);
                        return Err(error);
                    }
                    continue;
                }
            }
            done += 1;
        }
        sent.count(&self.counters);
        Ok(done)
    }

    /// Completes pending offloads of the frame and enqueues it.
    #[inline]
    fn enqueue(&mut self, frame: &mut Frame, pool: &mut Pool) -> EnqueueOutcome {
        if frame.offload.segmentation.is_some() {
            return self.enqueue_segments(frame, pool);
        }
        let socket = &mut self.sockets[0].socket;
        if frame.len() > self.frame_max.min(socket.len_max()) {
            return EnqueueOutcome::Dropped(Counter::TxTooLong);
        }
        if frame.len() < HEADER_LEN {
            return EnqueueOutcome::Dropped(Counter::TxErrors);
        }
        if socket.tx_room() == 0 {
            return EnqueueOutcome::Full;
        }
        if let Checksum::Partial { .. } = frame.offload.checksum {
            frame.complete_checksum();
            self.counters.add(Counter::TxChecksummed, 1);
        }
        let zero_copy = frame.transfer(|storage, start, len| {
            socket.enqueue_in_place(UmemFrame {
                storage,
                start,
                len,
            })
        });
        match zero_copy || socket.enqueue_copy(frame.bytes()) {
            true if zero_copy => EnqueueOutcome::ZeroCopy,
            true => EnqueueOutcome::Copied,
            false => EnqueueOutcome::Full,
        }
    }

    /// Segments the frame and enqueues all segments or none.
    fn enqueue_segments(&mut self, frame: &Frame, pool: &mut Pool) -> EnqueueOutcome {
        let socket = &mut self.sockets[0].socket;
        let count = usize::try_from(frame.wire_frames()).unwrap_or(usize::MAX);
        if count > TX_CHUNKS.get() as usize {
            return EnqueueOutcome::Dropped(Counter::TxErrors);
        }
        if !socket.reserve(count) {
            return EnqueueOutcome::Full;
        }
        match packet::segment(frame, pool, &mut self.segments) {
            Ok(()) => {}
            Err(SegmentError::Mismatch | SegmentError::TooMany) => {
                return EnqueueOutcome::Dropped(Counter::TxErrors);
            }
            Err(SegmentError::NoBuffer) => return EnqueueOutcome::Dropped(Counter::TxFull),
        }
        let len_max = self.frame_max.min(socket.len_max());
        // The headers determine the segment lengths; `count` above was computed from the metadata.
        let placed = if self.segments.iter().any(|segment| segment.len() > len_max) {
            EnqueueOutcome::Dropped(Counter::TxTooLong)
        } else if !socket.reserve(self.segments.len()) {
            EnqueueOutcome::Dropped(Counter::TxFull)
        } else {
            for segment in &self.segments {
                let placed = socket.enqueue_copy(segment.bytes());
                debug_assert!(placed, "space for all was reserved");
            }
            self.counters.add(Counter::TxSegmented, 1);
            EnqueueOutcome::Copied
        };
        self.segments
            .drain(..)
            .for_each(|segment| pool.put(segment));
        placed
    }

    /// Publishes enqueued frames until the kernel accepts no more, and reclaims the chunks of sent
    /// ones.
    fn flush(&mut self) -> io::Result<()> {
        let mut before = u32::MAX;
        loop {
            if let Err(error) = self.sockets[0].socket.send() {
                self.classify_error(error)?;
            }
            let left = self.sockets[0].socket.tx_pending()?;
            if left == 0 || left >= before || self.down {
                break;
            }
            before = left;
        }
        self.sockets[0].socket.reap_completions()
    }

    /// Adds the increments of the kernel's counters.
    fn count(&mut self) -> io::Result<()> {
        for queue_socket in &mut self.sockets {
            let now = queue_socket.socket.statistics()?;
            let new = |now: u64, counted: u64| now.saturating_sub(counted);
            let dropped = new(now.dropped, queue_socket.counted.dropped);
            let failure = new(now.invalid, queue_socket.counted.invalid);
            self.counters.add(Counter::RxOverrun, dropped);
            self.counters.add(Counter::TxErrors, failure);
            queue_socket.counted = now;
        }
        Ok(())
    }
}

impl Queue for XdpQueue {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let before = batch.len();
        let count = self.sockets.len();
        let mut outcome = Ok(());
        for offset in 0..count {
            let queue_socket = &mut self.sockets[(self.first + offset) % count];
            let received = queue_socket.receive(pool, batch, self.behaviour, &self.counters);
            if let Err(error) = received {
                outcome = self.classify_error(error);
            }
        }
        if count > 1 {
            self.first = (self.first + 1) % count;
        }
        self.counters.count_received(&batch[before..]);
        outcome
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        if let Some(sender) = &mut self.sender {
            return sender.send(batch, pool, &self.counters);
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.sockets[0].socket.reap_completions()?;
        if self.down {
            self.counters.add(Counter::TxDown, batch.len() as u64);
            batch.release(batch.len(), pool);
            return Ok(());
        }
        let done = self.enqueue_all(batch, pool)?;
        batch.release(done, pool);
        self.flush()
    }

    fn maintain(&mut self) -> io::Result<()> {
        let frame_max = self.handle.frame_max();
        self.frame_max = frame_max.map_err(|_| error::removed(&self.handle.name))?;
        for queue_socket in &self.sockets {
            // An error is pending after the interface went down or was removed; uncleared, it would
            // wake the worker again and again.
            queue_socket.socket.take_error()?;
        }
        self.count()?;
        if !self.sockets.is_empty() {
            // `flush` detects whether the interface is still down, and sends pending frames.
            self.down = false;
            self.flush()?;
        }
        Ok(())
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        match (&self.any, &self.sender, self.sockets.first()) {
            (Some(any), _, _) => Some(any.as_fd()),
            (_, Some(sender), _) => Some(sender.as_fd()),
            (_, _, queue_socket) => queue_socket.map(|queue_socket| queue_socket.socket.as_fd()),
        }
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

impl QueueSocket {
    fn new(socket: XskSocket) -> Self {
        Self {
            socket,
            counted: Statistics::default(),
        }
    }

    /// Appends the available frames to `batch` and refills the kernel's chunks.
    fn receive(
        &mut self,
        pool: &mut Pool,
        batch: &mut Batch,
        behaviour: QueueBehaviour,
        counters: &QueueCounters,
    ) -> io::Result<()> {
        // Dropped frames count as received ones, so that a flood of invalid frames ends, too.
        let waiting = self.socket.rx_available(batch.remaining_capacity())?;
        if waiting == 0 {
            return match behaviour.busy_poll {
                true => self.socket.poll_device(),
                false => Ok(()),
            };
        }
        let before = batch.len();
        for _ in 0..waiting {
            // Without a free chunk to replace its own, the frame is copied.
            let copy = match self.socket.can_detach() {
                true => None,
                false => match pool.take() {
                    Some(frame) => Some(frame),
                    None => {
                        counters.add(Counter::RxNoBuffer, 1);
                        break;
                    }
                },
            };
            match self.socket.next_frame() {
                Ok(Some(received)) => deliver(received, copy, pool, batch, counters),
                nothing => {
                    copy.into_iter().for_each(|frame| pool.put(frame));
                    return nothing.map(drop);
                }
            }
        }
        if behaviour.partial_checksums {
            let received = &mut batch[before..];
            received.iter_mut().for_each(Frame::detect_partial_checksum);
        }
        self.socket.refill()
    }
}

/// Appends a received frame to the batch: copied into `copy`, or in place.
#[inline]
fn deliver(
    received: RxFrame<'_>,
    copy: Option<Frame>,
    pool: &mut Pool,
    batch: &mut Batch,
    counters: &QueueCounters,
) {
    let runt = received.len() < HEADER_LEN;
    let outcome = match copy {
        Some(frame) => {
            counters.add(Counter::RxCopied, u64::from(!runt));
            copied(received.bytes(), frame, pool)
        }
        None if runt => Err(Counter::RxRunt),
        None => match received.detach() {
            Ok(frame) => Frame::from_storage(frame.storage, frame.start, frame.len)
                .map_err(|NoBufferSpace| Counter::RxErrors),
            Err(_) => Err(Counter::RxErrors),
        },
    };
    match outcome {
        Ok(frame) => batch.put(frame),
        Err(reason) => counters.add(reason, 1),
    }
}

/// Returns a frame with a copy of these bytes, or the drop reason; its buffer then returns to the
/// pool.
fn copied(bytes: &[u8], mut frame: Frame, pool: &mut Pool) -> Result<Frame, Counter> {
    let reason = match frame.copy_from(bytes) {
        Ok(()) if bytes.len() >= HEADER_LEN => return Ok(frame),
        Ok(()) => Counter::RxRunt,
        Err(NoBufferSpace) => Counter::RxTooLong,
    };
    pool.put(frame);
    Err(reason)
}

/// Totals of the frames that a batch has sent.
#[derive(Default)]
struct TxTotals {
    zero_copy: u64,
    copied: u64,
    bytes: u64,
}

impl TxTotals {
    fn count(&self, counters: &QueueCounters) {
        counters.add(Counter::TxPackets, self.zero_copy + self.copied);
        counters.add(Counter::TxBytes, self.bytes);
        counters.add(Counter::TxZeroCopy, self.zero_copy);
        counters.add(Counter::TxCopied, self.copied);
    }
}

/// Returns a descriptor that is readable if one of several sockets is.
fn epoll_any(sockets: &[XskSocket]) -> io::Result<Option<OwnedFd>> {
    if sockets.len() < 2 {
        return Ok(None);
    }
    let any = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for socket in sockets {
        let data = epoll::EventData::new_u64(0);
        epoll::add(&any, socket, data, epoll::EventFlags::IN)?;
    }
    Ok(Some(any))
}
