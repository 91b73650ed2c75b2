//! A short-lived controller: it connects to a switch at its management socket, sends one request or
//! change, and disconnects.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::{Instant, PortNo, Xid};
use flow::text::NameMap;
use openflow::{
    BundleAdd, BundleControl, BundleFlags, BundleId, BundleStep, Channel, ChannelEvent,
    ChannelOptions, ChannelSide, Excerpt, Message, MultipartReply, MultipartRequest,
    ReceivedMessage, Version,
};

use crate::error::ToolError;

/// The time limit for a reply of the switch.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The size of a read in bytes.
const CHUNK: usize = 1 << 16;

/// The bundle id; a connection uses only one bundle.
const BUNDLE: BundleId = BundleId(1);

/// Atomic: every frame sees all of the bundle or none of it; ordered: in the order of its messages.
const BUNDLE_FLAGS: BundleFlags = BundleFlags(BundleFlags::ATOMIC.0 | BundleFlags::ORDERED.0);

/// The atomicity of a list of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomicity {
    /// All commands or none take effect, for every frame at the same time.
    AllOrNothing,
    /// Commands take effect one after the other, up to the first that is refused.
    OneByOne,
}

/// The use of names for ports and tables (`ovs-ofctl(8)`, `--names`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// Numbers only.
    Off,
    /// Names are accepted in input; output contains numbers.
    #[default]
    Accept,
    /// Names are accepted in input and printed in output.
    Show,
}

/// A connection to a switch.
pub struct Client {
    path: PathBuf,
    stream: UnixStream,
    channel: Channel,
    version: Version,
    last: Xid,
    naming: Naming,
    /// The names of its ports and tables, once they were requested.
    names: Option<NameMap>,
}

impl Client {
    /// Connects to the switch at this socket and negotiates the newest common version.
    ///
    /// # Errors
    /// The switch does not answer, or has no version in common.
    pub fn connect(path: &Path, naming: Naming) -> Result<Self, ToolError> {
        let no_answer = |error| ToolError::NoAnswer {
            path: path.to_owned(),
            error,
        };
        let stream = UnixStream::connect(path).map_err(no_answer)?;
        stream
            .set_read_timeout(Some(READ_TIMEOUT))
            .map_err(no_answer)?;
        // The connection is too short for keepalives, so its clock need not advance.
        let channel = Channel::new(
            ChannelSide::Controller,
            ChannelOptions::default(),
            Instant::START,
        );
        let mut client = Self {
            path: path.to_owned(),
            stream,
            channel,
            version: Version::V10,
            last: Xid(0),
            naming,
            names: None,
        };
        loop {
            match client.next()? {
                ChannelEvent::Up(version) => {
                    client.version = version;
                    return Ok(client);
                }
                event => client.check(event)?,
            }
        }
    }

    /// Returns the negotiated version.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Returns the names with which ports and tables are printed.
    pub(crate) fn printed_names(&mut self) -> Result<&NameMap, ToolError> {
        match self.naming {
            Naming::Show => self.names(),
            Naming::Off | Naming::Accept => Ok(NameMap::empty()),
        }
    }

    /// Parses text. Names are requested from the switch only if the text does not parse without
    /// them.
    pub(crate) fn parse_with_names<T>(
        &mut self,
        read: impl Fn(&NameMap) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        match read(NameMap::empty()) {
            Err(ToolError::Text { .. }) if self.naming != Naming::Off => read(self.names()?),
            read => read,
        }
    }

    /// Returns the names of the switch's ports and, from 1.3 on, of its tables.
    fn names(&mut self) -> Result<&NameMap, ToolError> {
        let names = match self.names.take() {
            Some(names) => names,
            None => self.request_names()?,
        };
        Ok(self.names.insert(names))
    }

    fn request_names(&mut self) -> Result<NameMap, ToolError> {
        let mut names = NameMap::default();
        if let MultipartReply::PortDesc(ports) =
            self.request(MultipartRequest::PortDesc(PortNo::ANY))?
        {
            for port in ports {
                names.add_port(port.number, &port.name);
            }
        }
        if self.version >= Version::V13
            && let MultipartReply::TableFeatures(tables) =
                self.request(MultipartRequest::TableFeatures(Vec::new()))?
        {
            for table in tables {
                names.add_table(table.table, &table.name);
            }
        }
        Ok(names)
    }

    /// Sends a request and waits for all parts of the reply.
    ///
    /// # Errors
    /// The switch refuses, or does not answer.
    pub fn request(&mut self, request: MultipartRequest) -> Result<MultipartReply, ToolError> {
        let request_xid = self.send(&Message::MultipartRequest(request))?;
        let mut whole: Option<MultipartReply> = None;
        loop {
            let event = self.next()?;
            let ChannelEvent::Received(received) = event else {
                self.check(event)?;
                continue;
            };
            let ReceivedMessage { xid, message, .. } = *received;
            match message {
                Message::MultipartReply { reply, more } if xid == request_xid => {
                    whole = match whole {
                        None => Some(reply),
                        Some(mut whole) => {
                            let added = whole.append(reply);
                            added.map_err(|_| {
                                ToolError::Down("the parts of a reply have different types".into())
                            })?;
                            Some(whole)
                        }
                    };
                    if let (Some(whole), false) = (whole.take_if(|_| !more), more) {
                        return Ok(whole);
                    }
                }
                message => check_refusal(&message, self.version)?,
            }
        }
    }

    /// Sends commands, and waits until they have taken effect.
    ///
    /// # Errors
    /// The switch refuses a command, or its version cannot encode it. The commands before it have
    /// taken effect, or none if `atomicity` is all or nothing.
    pub fn send_commands(
        &mut self,
        commands: &[Message],
        atomicity: Atomicity,
    ) -> Result<(), ToolError> {
        match atomicity {
            Atomicity::OneByOne => self.send_each(commands),
            Atomicity::AllOrNothing => self.send_bundle(commands),
        }
    }

    fn send_each(&mut self, commands: &[Message]) -> Result<(), ToolError> {
        for command in commands {
            self.send(command)?;
        }
        self.wait_for_barrier()
    }

    /// Sends commands as a bundle, which takes effect as a whole or not at all (OF 1.4.1, 6.9).
    fn send_bundle(&mut self, commands: &[Message]) -> Result<(), ToolError> {
        self.send(&bundle_step(BundleStep::OpenRequest))?;
        for command in commands {
            self.send(&Message::BundleAdd(BundleAdd {
                bundle: BUNDLE,
                flags: BUNDLE_FLAGS,
                message: Box::new(command.clone()),
                excerpt: Excerpt::of(&[]),
                length: 0,
            }))?;
        }
        // Refusals arrive before the barrier reply; the bundle is then not committed.
        self.wait_for_barrier()?;
        self.send(&bundle_step(BundleStep::CommitRequest))?;
        self.wait_for_barrier()
    }

    /// Waits until the switch has processed all messages.
    fn wait_for_barrier(&mut self) -> Result<(), ToolError> {
        let barrier = self.send(&Message::BarrierRequest)?;
        loop {
            let event = self.next()?;
            let ChannelEvent::Received(received) = event else {
                self.check(event)?;
                continue;
            };
            let ReceivedMessage { xid, message, .. } = *received;
            match message {
                Message::BarrierReply if xid == barrier => return Ok(()),
                message => check_refusal(&message, self.version)?,
            }
        }
    }

    fn send(&mut self, message: &Message) -> Result<Xid, ToolError> {
        self.last.0 += 1;
        let sent = self.channel.send(self.last, message);
        sent.map_err(|error| ToolError::Refused(error.to_string()))?;
        Ok(self.last)
    }

    /// Waits for the next event.
    fn next(&mut self) -> Result<ChannelEvent, ToolError> {
        let no_answer = |error| ToolError::NoAnswer {
            path: self.path.clone(),
            error,
        };
        loop {
            let pending = self.channel.pending().len();
            self.stream
                .write_all(self.channel.pending())
                .map_err(no_answer)?;
            self.channel.transmitted(pending);
            if let Some(event) = self.channel.poll_event() {
                return Ok(event);
            }
            let mut bytes = vec![0; CHUNK];
            match self.stream.read(&mut bytes).map_err(no_answer)? {
                0 => return Err(ToolError::Down("end of stream".into())),
                length => self.channel.handle_input(&bytes[..length], Instant::START),
            }
        }
    }

    /// Returns an error for an event that ends the connection, and for a refusal.
    fn check(&self, event: ChannelEvent) -> Result<(), ToolError> {
        match event {
            ChannelEvent::Up(_) => Ok(()),
            ChannelEvent::Received(received) => check_refusal(&received.message, self.version),
            ChannelEvent::Down(reason) => Err(ToolError::Down(reason.to_string())),
            ChannelEvent::Refused(malformed) => Err(ToolError::Down(malformed.to_string())),
        }
    }
}

/// Returns a control message of the only bundle.
const fn bundle_step(step: BundleStep) -> Message {
    Message::BundleControl(BundleControl {
        bundle: BUNDLE,
        step,
        flags: BUNDLE_FLAGS,
        time: None,
    })
}

/// Returns an error if a message is a refusal. Asynchronous messages are ignored.
fn check_refusal(message: &Message, version: Version) -> Result<(), ToolError> {
    let Message::Error(error) = message else {
        return Ok(());
    };
    let refusal = error.code.refusal(version);
    let reason = refusal.map_or_else(|| error.code.to_string(), |refusal| refusal.to_string());
    Err(ToolError::Refused(reason))
}
