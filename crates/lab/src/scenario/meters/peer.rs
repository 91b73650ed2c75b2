//! A controller of OpenFlow 1.3 for a moment: it says something, and waits until it is
//! done or refused. The lab's own controller speaks 1.0, which has no meters.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use base::Xid;
use openflow::{Channel, Event, Message, Options, Side, Version, Versions};
use testbed::{Clock, Failure};

use crate::trial::TrialError;

/// How long a device may be silent while something is expected of it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes read at once.
const READ_LEN: usize = 16 * 1024;

/// A connection.
pub(super) struct Peer<'a> {
    stream: UnixStream,
    channel: Channel,
    clock: &'a Clock,
    last_xid: u32,
}

impl<'a> Peer<'a> {
    /// Calls the device and agrees with it on OpenFlow 1.3.
    pub(super) fn call(socket: &Path, clock: &'a Clock) -> Result<Self, TrialError> {
        let failure = || Failure::to(format!("call {}", socket.display()));
        let stream = UnixStream::connect(socket).map_err(failure())?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failure())?;
        let options = Options {
            versions: Versions::only(Version::V13),
            ..Options::default()
        };
        Ok(Self {
            stream,
            channel: Channel::new(Side::Controller, options, clock.now()),
            clock,
            last_xid: 0,
        })
    }

    /// Has all that is said done.
    pub(super) fn ask(&mut self, messages: &[Message]) -> Result<(), TrialError> {
        while self.channel.version().is_none() {
            self.exchange()?;
        }
        for message in messages {
            self.say(message)?;
        }
        let barrier = self.say(&Message::BarrierRequest)?;
        loop {
            while let Some(event) = self.channel.poll_event() {
                match event {
                    Event::Received(received) if received.xid == barrier => return Ok(()),
                    Event::Received(received) => {
                        if let Message::Error(error) = received.message {
                            let what = format!("the device refused a message: {}", error.fault);
                            return Err(TrialError::Impossible(what));
                        }
                    }
                    Event::Refused(malformed) => {
                        let what = format!("it sent what is no OpenFlow: {}", malformed.fault);
                        return Err(TrialError::Impossible(what));
                    }
                    Event::Down(reason) => return Err(TrialError::Impossible(reason.to_string())),
                    Event::Up(_) => {}
                }
            }
            self.exchange()?;
        }
    }

    fn say(&mut self, message: &Message) -> Result<Xid, TrialError> {
        self.last_xid += 1;
        let xid = Xid(self.last_xid);
        let sent = self.channel.send(xid, message);
        sent.map_err(|error| TrialError::Impossible(error.to_string()))?;
        Ok(xid)
    }

    /// Sends what is pending, and takes what comes next.
    fn exchange(&mut self) -> Result<(), Failure> {
        let failure = || Failure::to("speak with the device");
        let pending = self.channel.pending();
        self.stream.write_all(pending).map_err(failure())?;
        self.channel.transmitted(self.channel.backlog());
        let mut room = [0; READ_LEN];
        let count = match self.stream.read(&mut room).map_err(failure())? {
            0 => return Err(failure()(io::Error::from(io::ErrorKind::UnexpectedEof))),
            count => count,
        };
        self.channel.handle_input(&room[..count], self.clock.now());
        Ok(())
    }
}
