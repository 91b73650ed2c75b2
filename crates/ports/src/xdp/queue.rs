//! One worker's share of an interface: the sockets of some of the device's queues.
//!
//! Frames are handed on as they lie in the sockets' memory, and those that lie in it are sent
//! so; others are copied. What the kernel's error numbers mean for a frame is decided here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use packet::{Checksum, Frame, NoBufferSpace, Pool, SegmentError};
use rustix::event::epoll;
use rustix::io::Errno;
use sys::xsk::{RxFrame, Statistics, UmemFrame, XskSocket};

use super::{GOING, Habits, Hold};
use crate::af_packet::sender::PacketSender;
use crate::counters::{Counter, QueueCounters};
use crate::{Batch, Queue, error};

/// An Ethernet header: two addresses and a type.
const HEADER_LEN: usize = 14;

/// One worker's share of an interface.
#[repr(align(128))]
pub(super) struct XdpQueue {
    hold: Arc<Hold>,
    lines: Vec<Line>,
    /// Where to look first the next time.
    first: usize,
    /// The way to send where there is no socket.
    sender: Option<PacketSender>,
    /// Wakes whoever sleeps when there are several sockets.
    any: Option<OwnedFd>,
    habits: Habits,
    frame_max: usize,
    /// The interface was down when last something was to be sent.
    down: bool,
    /// What a frame was cut into.
    segments: Vec<Frame>,
    counters: Arc<QueueCounters>,
}

/// The socket of one of the device's queues.
struct Line {
    socket: XskSocket,
    /// What of the kernel's counts is in ours already.
    counted: Statistics,
}

/// What became of a frame that was to be placed.
enum Placed {
    /// It is on its way as it lies.
    Moved,
    /// It is on its way, copied.
    Copied,
    /// It is dropped, for this reason.
    Dropped(Counter),
    /// There is no room for it now.
    Later,
}

impl XdpQueue {
    pub(super) fn new(
        hold: Arc<Hold>,
        sockets: Vec<XskSocket>,
        sender: Option<PacketSender>,
        habits: Habits,
    ) -> io::Result<Self> {
        Ok(Self {
            any: wake_by_any(&sockets)?,
            frame_max: hold.frame_max()?,
            lines: sockets.into_iter().map(Line::new).collect(),
            hold,
            first: 0,
            sender,
            habits,
            down: false,
            segments: Vec::new(),
            counters: Arc::default(),
        })
    }

    /// What an error of a socket means: the device is gone, or the kernel is not to be
    /// believed any more, which comes to the same; or it passes.
    fn judge(&mut self, error: io::Error) -> io::Result<()> {
        match Errno::from_io_error(&error) {
            Some(Errno::NETDOWN) => {
                self.down = true;
                Ok(())
            }
            Some(Errno::BUSY) => {
                // The kernel had taken a frame up, so it is among those sent, too.
                self.counters.add(Counter::TxNoRoom, 1);
                Ok(())
            }
            Some(Errno::NXIO | Errno::NODEV) => Err(error::gone(&self.hold.name)),
            _ => Err(io::Error::new(
                error.kind(),
                format!("interface {}: {error}", self.hold.name),
            )),
        }
    }

    /// Places frames from the front and returns how many are done with. Those of them that
    /// moved have left nothing behind.
    fn place_all(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<usize> {
        let mut done = 0;
        let mut last_try = false;
        let mut sent = Sent::default();
        while done < batch.len() {
            let frame = &mut batch[done];
            let (frames, bytes) = (frame.wire_frames(), frame.wire_bytes());
            match self.place(frame, pool) {
                Placed::Moved => {
                    sent.moved += 1;
                    sent.bytes += bytes;
                }
                Placed::Copied => {
                    sent.copied += frames;
                    sent.bytes += bytes;
                }
                Placed::Dropped(reason) => self.counters.add(reason, 1),
                Placed::Later if last_try => break,
                Placed::Later => {
                    last_try = true;
                    if let Err(error) = self.push() {
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

    /// Pays what the frame owes and writes it down to be sent.
    #[inline]
    fn place(&mut self, frame: &mut Frame, pool: &mut Pool) -> Placed {
        if frame.offload.segmentation.is_some() {
            return self.place_segments(frame, pool);
        }
        let socket = &mut self.lines[0].socket;
        if frame.len() > self.frame_max.min(socket.len_max()) {
            return Placed::Dropped(Counter::TxTooLong);
        }
        if frame.len() < HEADER_LEN {
            return Placed::Dropped(Counter::TxErrors);
        }
        if socket.tx_room() == 0 {
            return Placed::Later;
        }
        if let Checksum::Partial { .. } = frame.offload.checksum {
            frame.complete_checksum();
            self.counters.add(Counter::TxFinished, 1);
        }
        let moved = frame.transfer(|storage, start, len| {
            socket.enqueue_in_place(UmemFrame {
                storage,
                start,
                len,
            })
        });
        match moved || socket.enqueue_copy(frame.bytes()) {
            true if moved => Placed::Moved,
            true => Placed::Copied,
            false => Placed::Later,
        }
    }

    /// Cuts the frame and writes all of its segments down, or none.
    fn place_segments(&mut self, frame: &Frame, pool: &mut Pool) -> Placed {
        let socket = &mut self.lines[0].socket;
        let count = usize::try_from(frame.wire_frames()).unwrap_or(usize::MAX);
        if count > GOING.get() as usize {
            return Placed::Dropped(Counter::TxErrors);
        }
        if !socket.reserve(count) {
            return Placed::Later;
        }
        match packet::segment(frame, pool, &mut self.segments) {
            Ok(()) => {}
            Err(SegmentError::Mismatch) => return Placed::Dropped(Counter::TxErrors),
            Err(SegmentError::NoBuffer) => return Placed::Dropped(Counter::TxNoRoom),
        }
        let len_max = self.frame_max.min(socket.len_max());
        // What the headers say decides; the count above was by the metadata.
        let placed = if self.segments.iter().any(|segment| segment.len() > len_max) {
            Placed::Dropped(Counter::TxTooLong)
        } else if !socket.reserve(self.segments.len()) {
            Placed::Dropped(Counter::TxNoRoom)
        } else {
            for segment in &self.segments {
                let placed = socket.enqueue_copy(segment.bytes());
                debug_assert!(placed, "there was room for all");
            }
            self.counters.add(Counter::TxSegmented, 1);
            Placed::Copied
        };
        self.segments
            .drain(..)
            .for_each(|segment| pool.put(segment));
        placed
    }

    /// Has the kernel send what was placed, as much of it as it will now, and takes back
    /// what is sent.
    fn push(&mut self) -> io::Result<()> {
        let mut before = u32::MAX;
        loop {
            if let Err(error) = self.lines[0].socket.send() {
                self.judge(error)?;
            }
            let left = self.lines[0].socket.tx_pending()?;
            if left == 0 || left >= before || self.down {
                break;
            }
            before = left;
        }
        self.lines[0].socket.reap_completions()
    }

    /// Takes the kernel's counts over.
    fn count(&mut self) -> io::Result<()> {
        for line in &mut self.lines {
            let now = line.socket.statistics()?;
            let new = |now: u64, counted: u64| now.saturating_sub(counted);
            let dropped = new(now.dropped, line.counted.dropped);
            let refused = new(now.invalid, line.counted.invalid);
            self.counters.add(Counter::RxOverrun, dropped);
            self.counters.add(Counter::TxErrors, refused);
            line.counted = now;
        }
        Ok(())
    }
}

impl Queue for XdpQueue {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let before = batch.len();
        let count = self.lines.len();
        let mut outcome = Ok(());
        for turn in 0..count {
            let line = &mut self.lines[(self.first + turn) % count];
            let received = line.receive(pool, batch, self.habits, &self.counters);
            if let Err(error) = received {
                outcome = self.judge(error);
            }
        }
        if count > 1 {
            self.first = (self.first + 1) % count;
        }
        self.counters.received(&batch[before..]);
        outcome
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        if let Some(sender) = &mut self.sender {
            return sender.send(batch, pool, &self.counters);
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.lines[0].socket.reap_completions()?;
        if self.down {
            self.counters.add(Counter::TxDown, batch.len() as u64);
            batch.release(batch.len(), pool);
            return Ok(());
        }
        let done = self.place_all(batch, pool)?;
        batch.release(done, pool);
        self.push()
    }

    fn tend(&mut self) -> io::Result<()> {
        let frame_max = self.hold.frame_max();
        self.frame_max = frame_max.map_err(|_| error::gone(&self.hold.name))?;
        for line in &self.lines {
            // One waits when the interface went down or away; left there, it would wake
            // the worker again and again.
            line.socket.take_error()?;
        }
        self.count()?;
        if !self.lines.is_empty() {
            // `push` finds out whether the interface is still down, and sends what was
            // left over.
            self.down = false;
            self.push()?;
        }
        Ok(())
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        match (&self.any, &self.sender, self.lines.first()) {
            (Some(any), _, _) => Some(any.as_fd()),
            (_, Some(sender), _) => Some(sender.as_fd()),
            (_, _, line) => line.map(|line| line.socket.as_fd()),
        }
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

impl Line {
    fn new(socket: XskSocket) -> Self {
        Self {
            socket,
            counted: Statistics::default(),
        }
    }

    /// Hands on the frames that wait, as they lie, and gives the kernel other chunks.
    fn receive(
        &mut self,
        pool: &mut Pool,
        batch: &mut Batch,
        habits: Habits,
        counters: &QueueCounters,
    ) -> io::Result<()> {
        // As many frames as fit, those to be dropped among them: a flood of such ends too.
        let waiting = self.socket.rx_available(batch.room())?;
        if waiting == 0 {
            return match habits.busy_poll {
                true => self.socket.poll_device(),
                false => Ok(()),
            };
        }
        let before = batch.len();
        for _ in 0..waiting {
            // Where the kernel can have no other chunk in its place, the frame is copied.
            let copy = match self.socket.can_detach() {
                true => None,
                false => match pool.take() {
                    Some(frame) => Some(frame),
                    None => {
                        counters.add(Counter::RxStarved, 1);
                        break;
                    }
                },
            };
            match self.socket.next_frame() {
                Ok(Some(received)) => hand_on(received, copy, pool, batch, counters),
                nothing => {
                    copy.into_iter().for_each(|frame| pool.put(frame));
                    return nothing.map(drop);
                }
            }
        }
        if habits.unfinished {
            let came = &mut batch[before..];
            came.iter_mut().for_each(Frame::detect_partial_checksum);
        }
        self.socket.refill()
    }
}

/// Puts a frame that came into the batch: in `copy`, or else as it lies.
#[inline]
fn hand_on(
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
            Ok(lent) => Frame::from_storage(lent.storage, lent.start, lent.len)
                .map_err(|NoBufferSpace| Counter::RxErrors),
            Err(_) => Err(Counter::RxErrors),
        },
    };
    match outcome {
        Ok(frame) => batch.put(frame),
        Err(reason) => counters.add(reason, 1),
    }
}

/// The frame with these bytes; or why not, and its buffer is the pool's again.
fn copied(bytes: &[u8], mut frame: Frame, pool: &mut Pool) -> Result<Frame, Counter> {
    let reason = match frame.copy_from(bytes) {
        Ok(()) if bytes.len() >= HEADER_LEN => return Ok(frame),
        Ok(()) => Counter::RxRunt,
        Err(NoBufferSpace) => Counter::RxTooLong,
    };
    pool.put(frame);
    Err(reason)
}

/// Frames that a batch sent.
#[derive(Default)]
struct Sent {
    moved: u64,
    copied: u64,
    bytes: u64,
}

impl Sent {
    fn count(&self, counters: &QueueCounters) {
        counters.add(Counter::TxPackets, self.moved + self.copied);
        counters.add(Counter::TxBytes, self.bytes);
        counters.add(Counter::TxMoved, self.moved);
        counters.add(Counter::TxCopied, self.copied);
    }
}

/// What is readable when one of several sockets is.
fn wake_by_any(sockets: &[XskSocket]) -> io::Result<Option<OwnedFd>> {
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
