//! A controller that does not wait: what it has to say is written at once, and what the
//! device answers is looked for now and then.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use base::{Cookie, TableId, Xid};
use flow::{FlowMod, FlowModCommand, FlowStatsRequest, Instructions, Match};
use openflow::{Channel, Event, Form, Message, MultipartRequest, Options, Side, Version, Versions};
use testbed::{Clock, Failure};

use crate::trial::TrialError;

/// How long a device may be silent while nothing but its answer is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// Bytes that are looked at in one turn, so that a long answer delays no frame for long.
const READ_LEN: usize = 16 * 1024;

/// Bytes that may wait to be written: a device that does not read them is not asked more.
const BACKLOG_MAX: usize = 256 * 1024;

/// Of a message's header: its length (OF 1.0.1, 5.1).
const HEADER: usize = 8;

/// Numbers of messages (OF 1.0.1, 5.1).
mod kind {
    pub(super) const ERROR: u8 = 1;
    pub(super) const ECHO_REQUEST: u8 = 2;
    pub(super) const STATS_REPLY: u8 = 17;
    pub(super) const BARRIER_REPLY: u8 = 19;
}

/// Marks what the experiment adds beside the rule of its frames, so that it can be deleted.
pub(super) const COOKIE: Cookie = Cookie(0x00c4_a17e);

/// What a device has answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answers {
    /// Whether there were any bytes.
    pub(super) any: bool,
    /// Replies to barriers.
    pub(super) barriers: u32,
    /// Statistics that were the last part of theirs.
    pub(super) dumps: u32,
}

/// A connection, of OpenFlow 1.0.
pub(super) struct Link {
    stream: UnixStream,
    /// What has come and is not whole yet.
    input: Vec<u8>,
    /// What found no room in the socket.
    output: Vec<u8>,
    room: Vec<u8>,
}

impl Link {
    /// Calls the device and agrees with it on OpenFlow 1.0.
    pub(super) fn call(socket: &Path, clock: &Clock) -> Result<Self, TrialError> {
        let failure = || Failure::to(format!("call {}", socket.display()));
        let stream = UnixStream::connect(socket).map_err(failure())?;
        let mut link = Self {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            room: vec![0; READ_LEN],
        };
        link.greet(clock).map_err(failure())?;
        link.stream.set_nonblocking(true).map_err(failure())?;
        Ok(link)
    }

    fn greet(&mut self, clock: &Clock) -> io::Result<()> {
        self.stream.set_read_timeout(Some(PATIENCE))?;
        let options = Options {
            versions: Versions::only(Version::V10),
            ..Options::default()
        };
        let mut channel = Channel::new(Side::Controller, options, clock.now());
        self.stream.write_all(channel.pending())?;
        loop {
            match self.stream.read(&mut self.room)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => channel.handle_input(&self.room[..count], clock.now()),
            }
            match channel.poll_event() {
                Some(Event::Up(_)) => return Ok(()),
                None => {}
                other => return Err(io::Error::other(format!("{other:?}"))),
            }
        }
    }

    /// Whether the device has taken nearly all that was said.
    pub(super) fn is_heard(&self) -> bool {
        self.output.len() < BACKLOG_MAX
    }

    /// Says something.
    pub(super) fn say(&mut self, message: &Message) -> Result<(), TrialError> {
        message
            .encode(Xid(1), Version::V10, &mut self.output)
            .expect("the lab says nothing that OpenFlow 1.0 cannot");
        self.write()
    }

    fn write(&mut self) -> Result<(), TrialError> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(over(&error)),
            }
        }
        Ok(())
    }

    /// Looks at some of what has come.
    pub(super) fn listen(&mut self) -> Result<Answers, TrialError> {
        self.write()?;
        let any = match self.stream.read(&mut self.room) {
            Ok(0) => return Err(over(&ErrorKind::UnexpectedEof.into())),
            Ok(count) => {
                self.input.extend_from_slice(&self.room[..count]);
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => return Err(over(&error)),
        };
        let mut answers = Answers {
            any,
            ..Answers::default()
        };
        let mut done = 0;
        while let Some(length) = whole(&self.input[done..]) {
            let message = &self.input[done..done + length];
            match message[1] {
                kind::BARRIER_REPLY => answers.barriers += 1,
                // The flag that says that more parts follow (OF 1.0.1, 5.3.5).
                kind::STATS_REPLY if message.get(11).is_none_or(|flags| flags & 1 == 0) => {
                    answers.dumps += 1;
                }
                kind::ECHO_REQUEST => {
                    let reply = Message::EchoReply(message[HEADER..].to_vec());
                    reply
                        .encode(Xid(1), Version::V10, &mut self.output)
                        .expect("an echo can be said");
                }
                kind::ERROR => {
                    let what = Message::decode(message, Version::V10);
                    let reason = format!("the device refused a message: {what:?}");
                    return Err(TrialError::Impossible(reason));
                }
                _ => {}
            }
            done += length;
        }
        self.input.drain(..done);
        Ok(answers)
    }

    /// Says that, and waits until the device has done it.
    pub(super) fn say_and_wait(&mut self, messages: &[Message]) -> Result<(), TrialError> {
        self.stream
            .set_nonblocking(false)
            .map_err(|error| over(&error))?;
        for message in messages {
            self.say(message)?;
        }
        self.say(&Message::BarrierRequest)?;
        loop {
            let answers = self.listen()?;
            if answers.barriers > 0 {
                break;
            }
            if !answers.any {
                return Err(over(&ErrorKind::TimedOut.into()));
            }
        }
        self.stream
            .set_nonblocking(true)
            .map_err(|error| over(&error))
    }

    /// Has the device forget all rules, and what it was about to tell.
    pub(super) fn clear(&mut self) -> Result<(), TrialError> {
        let delete = FlowMod {
            table: TableId::ALL,
            ..FlowMod::new(
                FlowModCommand::Delete,
                0,
                Match::any(),
                Instructions::default(),
            )
        };
        self.say_and_wait(&[Message::FlowMod(delete)])
    }
}

/// The question for all flows.
pub(super) fn dump() -> Message {
    let all = FlowStatsRequest::all();
    Message::MultipartRequest(MultipartRequest::Flow(Form::Standard, all))
}

fn over(error: &io::Error) -> TrialError {
    TrialError::Impossible(format!("the connection to the device: {error}"))
}

/// The length of the first message, if all of it is there.
fn whole(input: &[u8]) -> Option<usize> {
    let [_, _, a, b, ..] = input else { return None };
    let length = usize::from(u16::from_be_bytes([*a, *b])).max(HEADER);
    (input.len() >= length).then_some(length)
}
