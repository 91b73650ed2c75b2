//! What comes out of the switch at a port, frame by frame, tags and unfinished
//! checksums included.

use std::collections::VecDeque;
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
            .map_err(|error| Failure::to("open an eye")(std::io::Error::other(error)))?;
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
        let wanted: Stack = stack.parse().expect("the text is a stack");
        // Both in their shortest form, so that one frame has one text.
        let wanted = Stack::of(&wanted.build()).to_string();
        assert_eq!(Stack::of(&frame).to_string(), wanted);
    }

    /// Takes all frames that are there.
    fn receive(&mut self) -> Result<(), Failure> {
        self.queue
            .receive(&mut self.pool, &mut self.batch)
            .map_err(Failure::to("receive frames"))?;
        self.seen.extend(self.batch.drain());
        Ok(())
    }
}
