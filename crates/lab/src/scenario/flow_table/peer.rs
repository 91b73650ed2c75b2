//! A controller that does one thing at a time and waits for it, on a socket that the
//! device listens at. It looks at no more of what it is told than it must, lest it be
//! slower than the device.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use base::TableId;
use flow::{FlowMod, FlowModCommand, FlowStatsRequest, Instructions, Match};
use openflow::{Channel, Event, Form, Message, MultipartRequest, Options, Side, Version, Versions};
use testbed::{Clock, Failure};

use super::flows::encode;
use crate::trial::TrialError;

/// How long a device may be silent while something is expected of it: a million flows
/// behind one barrier take some devices most of a minute.
const PATIENCE: Duration = Duration::from_secs(300);

/// Bytes read at once.
const READ_LEN: usize = 256 * 1024;

/// Bytes of a message's header, and of those that begin statistics (OF 1.0.1, 5.3.5).
const HEADER: usize = 8;
const STATISTICS: usize = 12;

/// Numbers of messages (OF 1.0.1, 5.1).
mod kind {
    pub(super) const ERROR: u8 = 1;
    pub(super) const ECHO_REQUEST: u8 = 2;
    pub(super) const ECHO_REPLY: u8 = 3;
    pub(super) const STATS_REPLY: u8 = 17;
    pub(super) const BARRIER_REPLY: u8 = 19;
}

/// Why it did not work.
#[derive(Debug, thiserror::Error)]
pub(super) enum PeerError {
    /// The socket.
    #[error("the connection to the device: {0}")]
    Socket(#[from] io::Error),
    /// The device does not speak OpenFlow 1.0 as it should.
    #[error("the device does not speak as it should: {0}")]
    Protocol(String),
    /// The device refused something.
    #[error("the device refused a message: {0}")]
    Refused(String),
}

impl From<PeerError> for TrialError {
    fn from(error: PeerError) -> Self {
        Self::Impossible(error.to_string())
    }
}

/// Flows that a device has told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// How many.
    pub(super) flows: u64,
    /// In how many bytes, headers included.
    pub(super) bytes: u64,
}

/// A connection.
pub(super) struct Peer {
    stream: UnixStream,
    /// What has come; what is done of it is counted and taken away later.
    input: Vec<u8>,
    done: usize,
}

impl Peer {
    /// Calls the device and agrees with it on OpenFlow 1.0.
    pub(super) fn call(socket: &Path, clock: &Clock) -> Result<Self, TrialError> {
        let failure = || Failure::to(format!("call {}", socket.display()));
        let stream = UnixStream::connect(socket).map_err(failure())?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failure())?;
        stream
            .set_write_timeout(Some(PATIENCE))
            .map_err(failure())?;
        let mut peer = Self {
            stream,
            input: Vec::new(),
            done: 0,
        };
        peer.greet(clock)?;
        Ok(peer)
    }

    fn greet(&mut self, clock: &Clock) -> Result<(), PeerError> {
        let options = Options {
            versions: Versions::only(Version::V10),
            ..Options::default()
        };
        let mut channel = Channel::new(Side::Controller, options, clock.now());
        self.stream.write_all(channel.pending())?;
        let hello = self.message()?;
        channel.handle_input(&self.input[hello], clock.now());
        match channel.poll_event() {
            Some(Event::Up(_)) => Ok(()),
            other => Err(PeerError::Protocol(format!("{other:?}"))),
        }
    }

    /// Sends `messages` and a barrier, and waits for its reply.
    pub(super) fn send_and_wait(&mut self, messages: &[u8]) -> Result<(), PeerError> {
        self.stream.write_all(messages)?;
        self.say(&Message::BarrierRequest)?;
        self.expect(kind::BARRIER_REPLY).map(drop)
    }

    /// Deletes all flows.
    pub(super) fn delete_all(&mut self) -> Result<(), PeerError> {
        let command = FlowModCommand::Delete;
        let delete = FlowMod {
            table: TableId::ALL,
            ..FlowMod::new(command, 0, Match::any(), Instructions::default())
        };
        let mut bytes = Vec::new();
        encode(&Message::FlowMod(delete), &mut bytes);
        self.send_and_wait(&bytes)
    }

    /// Asks for an echo.
    pub(super) fn echo(&mut self) -> Result<(), PeerError> {
        self.say(&Message::EchoRequest(Vec::new()))?;
        self.expect(kind::ECHO_REPLY).map(drop)
    }

    /// Has all flows told.
    pub(super) fn flows(&mut self) -> Result<Told, PeerError> {
        let all = MultipartRequest::Flow(Form::Standard, FlowStatsRequest::all());
        self.say(&Message::MultipartRequest(all))?;
        let mut told = Told::default();
        loop {
            let place = self.expect(kind::STATS_REPLY)?;
            let part = &self.input[place];
            told.bytes += part.len() as u64;
            told.flows += flows_in(part).ok_or_else(|| broken("flow statistics"))?;
            if part[STATISTICS - 1] & 1 == 0 {
                return Ok(told);
            }
        }
    }

    fn say(&mut self, message: &Message) -> Result<(), PeerError> {
        let mut bytes = Vec::new();
        encode(message, &mut bytes);
        Ok(self.stream.write_all(&bytes)?)
    }

    /// Where the next message of this kind is. The device's own echo requests are
    /// answered on the way, and other things passed over.
    fn expect(&mut self, wanted: u8) -> Result<std::ops::Range<usize>, PeerError> {
        loop {
            let place = self.message()?;
            let message = &self.input[place.clone()];
            match message[1] {
                kind if kind == wanted => return Ok(place),
                kind::ERROR => {
                    let what = Message::decode(message, Version::V10);
                    return Err(PeerError::Refused(format!("{what:?}")));
                }
                kind::ECHO_REQUEST => self.say(&Message::EchoReply(Vec::new()))?,
                _ => {}
            }
        }
    }

    /// Where the next message is, once all of it is there.
    fn message(&mut self) -> Result<std::ops::Range<usize>, PeerError> {
        loop {
            let rest = &self.input[self.done..];
            if let Some([_, _, a, b]) = rest.first_chunk() {
                let length = usize::from(u16::from_be_bytes([*a, *b]));
                if length < HEADER {
                    return Err(broken("a message's length"));
                }
                if rest.len() >= length {
                    let start = self.done;
                    self.done += length;
                    return Ok(start..self.done);
                }
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<(), PeerError> {
        self.input.drain(..self.done);
        self.done = 0;
        let there = self.input.len();
        self.input.resize(there + READ_LEN, 0);
        let count = self.stream.read(&mut self.input[there..]);
        self.input.truncate(there + *count.as_ref().unwrap_or(&0));
        match count? {
            0 => Err(PeerError::Socket(io::ErrorKind::UnexpectedEof.into())),
            _ => Ok(()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The device may have gone first.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn broken(what: &str) -> PeerError {
    PeerError::Protocol(format!("{what} cannot be right"))
}

/// How many flows a part of flow statistics tells of: each begins with its length.
fn flows_in(part: &[u8]) -> Option<u64> {
    let mut rest = part.get(STATISTICS..)?;
    let mut count = 0;
    while let Some([a, b]) = rest.first_chunk() {
        let length = usize::from(u16::from_be_bytes([*a, *b])).max(1);
        rest = rest.get(length..)?;
        count += 1;
    }
    rest.is_empty().then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_counted_by_their_lengths() {
        let mut part = vec![0; STATISTICS];
        assert_eq!(flows_in(&part), Some(0));
        part.extend([0, 4, 9, 9, 0, 2]);
        assert_eq!(flows_in(&part), Some(2));
        part.extend([0, 3]);
        assert_eq!(flows_in(&part), None);
        assert_eq!(flows_in(&[0; 4]), None);
    }
}
