//! Whole frames into and out of interfaces: what comes out of the switch at a
//! port, tags and unfinished checksums included.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;

use packet::build::Stack;
use packet::{Frame, Pool};
use ports::af_packet::AfPacket;
use ports::{Batch, Port, Queue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use testbed::{Failure, Namespace};

use crate::ground::{Ground, PATIENCE};

/// An open eye on an interface. It sees what came since it was opened.
pub(crate) struct Eye<'g> {
    ground: &'g Ground,
    queue: Box<dyn Queue>,
    pool: Pool,
    batch: Batch,
    seen: VecDeque<Frame>,
}

impl<'g> Eye<'g> {
    /// Opens an eye on what comes in by `interface`.
    pub(crate) fn open(
        ground: &'g Ground,
        namespace: &Namespace,
        interface: &str,
    ) -> Result<Self, Failure> {
        let name = interface.parse().expect("the name is legal");
        let mut port = namespace
            .run(|| AfPacket::open(&name, NonZeroUsize::MIN))?
            .map_err(|error| Failure::to("open an eye")(io::Error::other(error)))?;
        Ok(Self {
            ground,
            queue: port.take_queues().remove(0),
            pool: Pool::new(2 * Batch::FRAMES_MAX),
            batch: Batch::new(),
            seen: VecDeque::new(),
        })
    }

    /// The next frame.
    pub(crate) fn next(&mut self) -> Result<Frame, Failure> {
        let deadline = self.ground.clock.now() + PATIENCE;
        loop {
            if let Some(frame) = self.seen.pop_front() {
                return Ok(frame);
            }
            self.receive()?;
            let rest = deadline.since(self.ground.clock.now());
            if rest.is_zero() {
                return Err(Failure::Timeout {
                    what: "a frame".to_owned(),
                    limit: PATIENCE,
                });
            }
            if self.seen.is_empty() {
                let readiness = self
                    .queue
                    .readiness()
                    .expect("a packet socket can be waited for");
                let rest = Timespec::try_from(rest).expect("some seconds");
                poll(&mut [PollFd::new(&readiness, PollFlags::IN)], Some(&rest))
                    .map_err(Failure::to("wait for a frame"))?;
            }
        }
    }

    /// Fails unless the next frame is this one.
    #[track_caller]
    pub(crate) fn sees(&mut self, stack: &str) {
        let frame = self
            .next()
            .unwrap_or_else(|failure| panic!("{failure}: {stack}"));
        assert_eq!(Stack::dissect(&frame).to_string(), shortest(stack));
    }

    /// As [`Eye::sees`], whatever the identification of the IPv4 datagram.
    #[track_caller]
    pub(crate) fn sees_without_id(&mut self, stack: &str) {
        let frame = self
            .next()
            .unwrap_or_else(|failure| panic!("{failure}: {stack}"));
        let seen = Stack::dissect(&frame).to_string();
        let named = seen.split_once("id=").map(|(_, rest)| rest);
        let id = named.and_then(|rest| rest.split([',', ')']).next());
        let id = id.map_or_else(String::new, |id| format!("id={id},"));
        assert_eq!(seen.replace(&id, ""), shortest(stack));
    }

    /// Takes all frames that are there.
    fn receive(&mut self) -> Result<(), Failure> {
        self.queue
            .receive(&mut self.pool, &mut self.batch)
            .map_err(Failure::to("receive frames"))?;
        for frame in self.batch.drain() {
            self.seen.push_back(frame.clone());
            self.pool.put(frame);
        }
        Ok(())
    }
}

/// Sends frames out of `interface`, past the host's own protocols.
pub(crate) fn send<F: AsRef<[u8]>>(
    ground: &Ground,
    namespace: &Namespace,
    interface: &str,
    frames: &[F],
) -> Result<(), Failure> {
    let sender = namespace.raw_sender(interface)?;
    let mut rest = frames;
    ground.wait_until("room for frames", || match sender.send(rest) {
        Ok(sent) => {
            rest = &rest[sent..];
            Ok(rest.is_empty())
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(Failure::to("send frames")(error)),
    })
}

/// The shortest text of a stack, so that one frame has one text.
fn shortest(text: &str) -> String {
    let stack: Stack = text.parse().expect("the text is a stack");
    Stack::dissect(&stack.build()).to_string()
}

/// The bytes of frames.
pub(crate) fn frames(stacks: &[&str]) -> Vec<Vec<u8>> {
    let parse = |text: &&str| text.parse::<Stack>().expect("the text is a stack");
    let frames = stacks.iter().map(|text| parse(text).build());
    frames.map(|frame| frame.bytes().to_vec()).collect()
}
