//! A queue that writes its frames to a capture file.

use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use base::Instant;
use capture_file::pcapng::{self, FrameDirection, PcapngWriter};
use packet::{Frame, Pool};

use crate::{Batch, Queue, QueueCounters};

/// A queue that writes every frame which it receives, and every frame which its device accepts for
/// sending, to a capture file.
///
/// A write error ends the capture, not the forwarding.
pub struct CapturingQueue<Q, W, C> {
    queue: Q,
    writer: PcapngWriter<W>,
    /// Returns the current time.
    clock: C,
    /// Encoded blocks, and the end of each.
    blocks: Vec<u8>,
    block_ends: Vec<usize>,
    failure: Option<io::Error>,
}

impl<Q: Queue, W: Write, C: FnMut() -> Instant> CapturingQueue<Q, W, C> {
    /// Writes the frames of `queue` to `out` as an interface called `name`, with timestamps from
    /// `clock`.
    ///
    /// # Errors
    /// The header of the file cannot be written.
    pub fn new(queue: Q, name: &str, out: W, clock: C) -> io::Result<Self> {
        Ok(Self {
            queue,
            writer: PcapngWriter::new(out, name)?,
            clock,
            blocks: Vec::new(),
            block_ends: Vec::new(),
            failure: None,
        })
    }

    /// Returns the error that ended the capture, or `None` while it continues.
    #[must_use]
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// Encodes a block for each frame.
    fn encode(&mut self, frames: &[Frame], direction: FrameDirection) {
        self.blocks.clear();
        self.block_ends.clear();
        if frames.is_empty() || self.failure.is_some() {
            return;
        }
        let now = (self.clock)();
        for frame in frames {
            pcapng::append_frame(&mut self.blocks, now, direction, frame.bytes());
            self.block_ends.push(self.blocks.len());
        }
    }

    /// Writes the first `count` blocks.
    fn write(&mut self, count: usize) {
        let last = count
            .checked_sub(1)
            .and_then(|last| self.block_ends.get(last));
        if let Some(end) = last {
            let written = self.writer.write(&self.blocks[..*end]);
            self.failure = written.err();
        }
    }
}

impl<Q, W, C> Queue for CapturingQueue<Q, W, C>
where
    Q: Queue,
    W: Write + Send,
    C: FnMut() -> Instant + Send,
{
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let before = batch.len();
        let outcome = self.queue.receive(pool, batch);
        self.encode(&batch[before..], FrameDirection::In);
        self.write(batch.len() - before);
        outcome
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        let before = batch.len();
        self.encode(batch, FrameDirection::Out);
        let outcome = self.queue.send(batch, pool);
        self.write(before - batch.len());
        outcome
    }

    fn maintain(&mut self) -> io::Result<()> {
        if self.failure.is_none() {
            self.failure = self.writer.flush().err();
        }
        self.queue.maintain()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.queue.readiness()
    }

    fn is_expensive_to_poll(&self) -> bool {
        self.queue.is_expensive_to_poll()
    }

    fn counters(&self) -> Arc<QueueCounters> {
        self.queue.counters()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::memory;

    /// Time, direction, interface, length and destination of each frame, as printed by tshark.
    fn tshark(file: &[u8]) -> String {
        let mut tshark = Command::new("tshark")
            .args(["-r", "-", "-T", "fields", "-E", "separator= "])
            .args(["-e", "frame.time_epoch", "-e", "frame.p2p_dir"])
            .args(["-e", "frame.interface_name"])
            .args(["-e", "frame.len", "-e", "eth.dst"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        tshark.stdin.take().unwrap().write_all(file).unwrap();
        String::from_utf8(tshark.wait_with_output().unwrap().stdout).unwrap()
    }

    #[test]
    fn tshark_reads_time_direction_and_length() {
        let [a, mut b] = memory::pair(["a", "b"], 2).map(|mut port| port.take_queue().unwrap());
        let (mut pool, mut batch) = (Pool::new(8), Batch::new());
        let mut file = Vec::new();
        let mut now = Instant::from_secs(1_700_000_000);
        let clock = || {
            now += std::time::Duration::from_nanos(1);
            now
        };
        let mut capturing = CapturingQueue::new(a, "swp7", &mut file, clock).unwrap();
        // Three frames to send, and space for two.
        for dst in 1..=3 {
            let mut bytes = [0; 61];
            bytes[0] = 2 * dst;
            batch.push(Frame::from_bytes(&bytes)).unwrap();
        }
        capturing.send(&mut batch, &mut pool).unwrap();
        assert_eq!(batch.len(), 1);
        b.send(&mut batch, &mut pool).unwrap();
        capturing.receive(&mut pool, &mut batch).unwrap();
        assert!(capturing.failure().is_none());
        drop(capturing);
        assert_eq!(
            tshark(&file),
            "1700000000.000000001 0 swp7 61 02:00:00:00:00:00\n\
             1700000000.000000001 0 swp7 61 04:00:00:00:00:00\n\
             1700000000.000000002 1 swp7 61 06:00:00:00:00:00\n"
        );
    }

    #[test]
    fn write_error_ends_capture_but_not_forwarding() {
        let [a, mut b] = memory::pair(["a", "b"], 8).map(|mut port| port.take_queue().unwrap());
        let (mut pool, mut batch) = (Pool::new(8), Batch::new());
        let mut disk = [0; 200];
        let clock = || Instant::START;
        let mut capturing = CapturingQueue::new(a, "a", &mut disk[..], clock).unwrap();
        for _ in 0..3 {
            batch.push(Frame::from_bytes(&[0; 60])).unwrap();
            capturing.send(&mut batch, &mut pool).unwrap();
        }
        assert!(capturing.failure().is_some());
        b.receive(&mut pool, &mut batch).unwrap();
        assert_eq!(batch.len(), 3);
    }
}
