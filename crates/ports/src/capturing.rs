//! A queue that writes down what passes through it.

use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use base::Instant;
use packet::{Frame, Pool};

use crate::pcapng::{self, Direction, Writer};
use crate::{Batch, Queue, QueueCounters};

/// A queue that writes every frame it receives, and every frame that it hands to its
/// device, to a capture file.
///
/// A file that cannot be written ends the capture, never the traffic.
pub struct Captured<Q, W, C> {
    queue: Q,
    writer: Writer<W>,
    /// The time, whenever it is called.
    clock: C,
    /// Blocks made, and where each ends.
    blocks: Vec<u8>,
    ends: Vec<usize>,
    failure: Option<io::Error>,
}

impl<Q: Queue, W: Write, C: FnMut() -> Instant> Captured<Q, W, C> {
    /// Writes what passes through `queue` to `out`, as of an interface called `name`, at
    /// the times that `clock` tells.
    ///
    /// # Errors
    /// The head of the file cannot be written.
    pub fn new(queue: Q, name: &str, out: W, clock: C) -> io::Result<Self> {
        Ok(Self {
            queue,
            writer: Writer::new(out, name)?,
            clock,
            blocks: Vec::new(),
            ends: Vec::new(),
            failure: None,
        })
    }

    /// What ended the capture, if something did.
    #[must_use]
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// Makes a block for each of the frames.
    fn note(&mut self, frames: &[Frame], direction: Direction) {
        self.blocks.clear();
        self.ends.clear();
        if frames.is_empty() || self.failure.is_some() {
            return;
        }
        let now = (self.clock)();
        for frame in frames {
            pcapng::packet(&mut self.blocks, now, direction, frame.bytes());
            self.ends.push(self.blocks.len());
        }
    }

    /// Writes the first `count` blocks.
    fn write(&mut self, count: usize) {
        let last = count.checked_sub(1).and_then(|last| self.ends.get(last));
        if let Some(end) = last {
            let written = self.writer.write(&self.blocks[..*end]);
            self.failure = written.err();
        }
    }
}

impl<Q, W, C> Queue for Captured<Q, W, C>
where
    Q: Queue,
    W: Write + Send,
    C: FnMut() -> Instant + Send,
{
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let before = batch.len();
        let outcome = self.queue.receive(pool, batch);
        self.note(&batch[before..], Direction::In);
        self.write(batch.len() - before);
        outcome
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        let before = batch.len();
        self.note(batch, Direction::Out);
        let outcome = self.queue.send(batch, pool);
        self.write(before - batch.len());
        outcome
    }

    fn tend(&mut self) -> io::Result<()> {
        if self.failure.is_none() {
            self.failure = self.writer.flush().err();
        }
        self.queue.tend()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.queue.readiness()
    }

    fn is_dear(&self) -> bool {
        self.queue.is_dear()
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

    /// What tshark reads in a capture: time, direction, interface, length, destination.
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
    fn wireshark_reads_what_passed_and_which_way() {
        let [a, mut b] = memory::pair(["a", "b"], 2).map(|mut port| port.take_queue().unwrap());
        let (mut pool, mut batch) = (Pool::new(8), Batch::new());
        let mut file = Vec::new();
        let mut now = Instant::from_secs(1_700_000_000);
        let clock = || {
            now += std::time::Duration::from_nanos(1);
            now
        };
        let mut captured = Captured::new(a, "swp7", &mut file, clock).unwrap();
        // Three frames are to leave, and there is room for two.
        for dst in 1..=3 {
            let mut bytes = [0; 61];
            bytes[0] = 2 * dst;
            batch.push(Frame::from_bytes(&bytes)).unwrap();
        }
        captured.send(&mut batch, &mut pool).unwrap();
        assert_eq!(batch.len(), 1);
        b.send(&mut batch, &mut pool).unwrap();
        captured.receive(&mut pool, &mut batch).unwrap();
        assert!(captured.failure().is_none());
        drop(captured);
        assert_eq!(
            tshark(&file),
            "1700000000.000000001 0 swp7 61 02:00:00:00:00:00\n\
             1700000000.000000001 0 swp7 61 04:00:00:00:00:00\n\
             1700000000.000000002 1 swp7 61 06:00:00:00:00:00\n"
        );
    }

    #[test]
    fn a_full_disk_ends_the_capture_but_not_the_traffic() {
        let [a, mut b] = memory::pair(["a", "b"], 8).map(|mut port| port.take_queue().unwrap());
        let (mut pool, mut batch) = (Pool::new(8), Batch::new());
        let mut disk = [0; 200];
        let clock = || Instant::START;
        let mut captured = Captured::new(a, "a", &mut disk[..], clock).unwrap();
        for _ in 0..3 {
            batch.push(Frame::from_bytes(&[0; 60])).unwrap();
            captured.send(&mut batch, &mut pool).unwrap();
        }
        assert!(captured.failure().is_some());
        b.receive(&mut pool, &mut batch).unwrap();
        assert_eq!(batch.len(), 3);
    }
}
