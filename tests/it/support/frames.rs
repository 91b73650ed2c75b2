//! Raw frames into and out of interfaces, with VLAN tags and partial checksums.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;

use packet::build::Stack;
use packet::{Frame, Pool};
use ports::af_packet::AfPacket;
use ports::{Batch, Port, Queue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use testbed::{Failure, Namespace};

use crate::support::context::{TestContext, WAIT_LIMIT};

/// Packet socket with the frames that an interface received since it was opened.
pub(crate) struct FrameCapture<'g> {
    context: &'g TestContext,
    queue: Box<dyn Queue>,
    pool: Pool,
    batch: Batch,
    frames: VecDeque<Frame>,
}

impl<'g> FrameCapture<'g> {
    /// Opens a packet socket on `interface`.
    pub(crate) fn open(
        context: &'g TestContext,
        namespace: &Namespace,
        interface: &str,
    ) -> Result<Self, Failure> {
        let name = interface.parse().expect("the interface name is valid");
        let mut port = namespace
            .run(|| AfPacket::open(&name, NonZeroUsize::MIN))?
            .map_err(|error| Failure::to("open a packet socket")(io::Error::other(error)))?;
        Ok(Self {
            context,
            queue: port.take_queues().remove(0),
            pool: Pool::new(2 * Batch::FRAMES_MAX),
            batch: Batch::new(),
            frames: VecDeque::new(),
        })
    }

    /// Waits for the next frame.
    pub(crate) fn next_frame(&mut self) -> Result<Frame, Failure> {
        let deadline = self.context.clock.now() + WAIT_LIMIT;
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Ok(frame);
            }
            self.receive()?;
            let remaining = deadline.since(self.context.clock.now());
            if remaining.is_zero() {
                return Err(Failure::Timeout {
                    what: "a frame".to_owned(),
                    limit: WAIT_LIMIT,
                });
            }
            if self.frames.is_empty() {
                let readiness = self
                    .queue
                    .readiness()
                    .expect("a packet socket has a file descriptor to poll");
                let remaining = Timespec::try_from(remaining).expect("the limit is some seconds");
                poll(
                    &mut [PollFd::new(&readiness, PollFlags::IN)],
                    Some(&remaining),
                )
                .map_err(Failure::to("wait for a frame"))?;
            }
        }
    }

    /// Asserts that the next frame is this one.
    #[track_caller]
    pub(crate) fn expect_frame(&mut self, stack: &str) {
        let frame = self
            .next_frame()
            .unwrap_or_else(|failure| panic!("{failure}: {stack}"));
        assert_eq!(Stack::dissect(&frame).to_string(), canonical_text(stack));
    }

    /// Asserts that the next frame is this one, except for the IPv4 identification.
    #[track_caller]
    pub(crate) fn expect_frame_ignoring_ip_id(&mut self, stack: &str) {
        let frame = self
            .next_frame()
            .unwrap_or_else(|failure| panic!("{failure}: {stack}"));
        let text = Stack::dissect(&frame).to_string();
        let id = text.split_once("id=").map(|(_, rest)| rest);
        let id = id.and_then(|rest| rest.split([',', ')']).next());
        let id = id.map_or_else(String::new, |id| format!("id={id},"));
        assert_eq!(text.replace(&id, ""), canonical_text(stack));
    }

    /// Receives all frames that are available.
    fn receive(&mut self) -> Result<(), Failure> {
        self.queue
            .receive(&mut self.pool, &mut self.batch)
            .map_err(Failure::to("receive frames"))?;
        for frame in self.batch.drain() {
            self.frames.push_back(frame.clone());
            self.pool.put(frame);
        }
        Ok(())
    }
}

/// Sends frames by a raw socket on `interface`.
pub(crate) fn send_frames<F: AsRef<[u8]>>(
    context: &TestContext,
    namespace: &Namespace,
    interface: &str,
    frames: &[F],
) -> Result<(), Failure> {
    let sender = namespace.raw_sender(interface)?;
    let mut rest = frames;
    context.wait_until("space in the send queue", || match sender.send(rest) {
        Ok(sent) => {
            rest = &rest[sent..];
            Ok(rest.is_empty())
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(Failure::to("send frames")(error)),
    })
}

/// Canonical text of a stack: equal frames have equal texts.
fn canonical_text(text: &str) -> String {
    let stack: Stack = text.parse().expect("the text is a stack");
    Stack::dissect(&stack.build()).to_string()
}

/// Encodes frames from their texts.
pub(crate) fn encode_frames(stacks: &[&str]) -> Vec<Vec<u8>> {
    let parse = |text: &&str| text.parse::<Stack>().expect("the text is a stack");
    let frames = stacks.iter().map(|text| parse(text).build());
    frames.map(|frame| frame.bytes().to_vec()).collect()
}

/// The bytes of a frame in hexadecimal.
pub(crate) fn hex_frame(stack: &str) -> String {
    let stack: Stack = stack.parse().expect("the text is a stack");
    let frame = stack.build();
    frame
        .bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
