//! OpenFlow controller that sends given messages and returns the replies.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use base::{Instant, Xid};
use openflow::{Channel, ChannelEvent, ChannelOptions, ChannelSide, Message, Version, VersionSet};

/// Time limit for a reply.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Connection to the switch.
pub(crate) struct Peer {
    stream: UnixStream,
    channel: Channel,
    last_xid: u32,
}

impl Peer {
    /// Connects to the switch's socket, and negotiates the version.
    pub(crate) fn connect(socket: &Path, version: Version) -> Result<Self, String> {
        let stream = UnixStream::connect(socket).map_err(text_of)?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(text_of)?;
        let options = ChannelOptions {
            versions: VersionSet::only(version),
            ..ChannelOptions::default()
        };
        let mut peer = Self {
            stream,
            // The channel sends no echo requests here, so it needs no clock.
            channel: Channel::new(ChannelSide::Controller, options, Instant::START),
            last_xid: 0,
        };
        while peer.channel.version().is_none() {
            peer.exchange()?;
            while let Some(event) = peer.channel.poll_event() {
                if let ChannelEvent::Down(reason) = event {
                    return Err(reason.to_string());
                }
            }
        }
        Ok(peer)
    }

    /// Sends bytes without waiting for a reply.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.write_all(bytes).map_err(text_of)
    }

    /// Sends messages and a barrier, and returns all messages received before the barrier reply.
    pub(crate) fn request(&mut self, messages: &[Message]) -> Result<Vec<Message>, String> {
        for message in messages {
            self.send(message)?;
        }
        let barrier = self.send(&Message::BarrierRequest)?;
        let mut replies = Vec::new();
        loop {
            while let Some(event) = self.channel.poll_event() {
                match event {
                    ChannelEvent::Received(received) if received.xid == barrier => {
                        return Ok(replies);
                    }
                    ChannelEvent::Received(received) => replies.push(received.message),
                    ChannelEvent::Refused(malformed) => {
                        return Err(format!("invalid message: {:?}", malformed.refusal));
                    }
                    ChannelEvent::Down(reason) => return Err(reason.to_string()),
                    ChannelEvent::Up(_) => {}
                }
            }
            self.exchange()?;
        }
    }

    /// Returns the messages received until none arrives for `pause`.
    pub(crate) fn linger(&mut self, pause: Duration) -> Result<Vec<Message>, String> {
        self.stream.set_read_timeout(Some(pause)).map_err(text_of)?;
        let mut replies = Vec::new();
        let mut room = [0; 1 << 16];
        loop {
            match self.stream.read(&mut room) {
                Ok(count) if count > 0 => {
                    self.channel.handle_input(&room[..count], Instant::START);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(text_of(error)),
                Ok(_) => return Err(text_of(io::Error::from(io::ErrorKind::UnexpectedEof))),
            }
            while let Some(event) = self.channel.poll_event() {
                if let ChannelEvent::Received(received) = event {
                    replies.push(received.message);
                }
            }
        }
        self.stream
            .set_read_timeout(Some(TIMEOUT))
            .map_err(text_of)?;
        Ok(replies)
    }

    fn send(&mut self, message: &Message) -> Result<Xid, String> {
        self.last_xid += 1;
        let xid = Xid(self.last_xid);
        self.channel.send(xid, message).map_err(text_of)?;
        Ok(xid)
    }

    /// Sends pending bytes, and receives the next ones.
    fn exchange(&mut self) -> Result<(), String> {
        let pending = self.channel.pending();
        self.stream.write_all(pending).map_err(text_of)?;
        self.channel.transmitted(self.channel.backlog());
        let mut room = [0; 1 << 16];
        let count = match self.stream.read(&mut room).map_err(text_of)? {
            0 => return Err(text_of(io::Error::from(io::ErrorKind::UnexpectedEof))),
            count => count,
        };
        self.channel.handle_input(&room[..count], Instant::START);
        Ok(())
    }
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}
