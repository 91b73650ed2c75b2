//! A controller in the test's own hands: it says what it is told to and hears
//! what the switch says, message by message.
//!
//! It speaks by Unix sockets, which know no network namespaces. Real controllers
//! speak by TCP in their themes.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::Xid;
use flow::{FlowModCommand, text};
use openflow::{Channel, ChannelEvent, ChannelOptions, ChannelSide, Message, Version, VersionSet};
use testbed::Failure;

use crate::ground::{Ground, PATIENCE};

/// A controller, connected.
pub(crate) struct Peer<'g> {
    ground: &'g Ground,
    stream: UnixStream,
    channel: Channel,
    last_xid: u32,
    /// What was heard while something else was waited for.
    heard: VecDeque<(Xid, Message)>,
}

/// A place where a controller waits for the switch.
pub(crate) struct Desk<'g> {
    ground: &'g Ground,
    path: PathBuf,
    listener: UnixListener,
}

impl<'g> Desk<'g> {
    /// Opens a desk.
    pub(crate) fn open(ground: &'g Ground) -> Result<Self, Failure> {
        Self::open_at(ground, &ground.file("controller.sock"))
    }

    /// Opens a desk where one was.
    pub(crate) fn open_at(ground: &'g Ground, path: &Path) -> Result<Self, Failure> {
        let failure = || Failure::to("open a desk");
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path).map_err(failure())?;
        listener.set_nonblocking(true).map_err(failure())?;
        Ok(Self {
            ground,
            path: path.to_owned(),
            listener,
        })
    }

    /// The target as the switch is given it.
    pub(crate) fn target(&self) -> String {
        format!("unix:{}", self.path.display())
    }

    /// Waits for the switch's connection, and says nothing to it.
    pub(crate) fn accept(&self) -> Result<UnixStream, Failure> {
        let stream =
            self.ground
                .wait_for("the switch to come", || match self.listener.accept() {
                    Ok((stream, _)) => Ok(Some(stream)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                    Err(error) => Err(Failure::to("accept")(error)),
                })?;
        stream
            .set_nonblocking(false)
            .map_err(Failure::to("accept"))?;
        Ok(stream)
    }

    /// Waits for the switch and greets it.
    pub(crate) fn meet(&self, version: Version) -> Result<Peer<'g>, Failure> {
        Peer::greet(self.ground, self.accept()?, version)
    }
}

impl<'g> Peer<'g> {
    /// Goes to the switch's socket and greets it.
    pub(crate) fn visit(
        ground: &'g Ground,
        socket: &Path,
        version: Version,
    ) -> Result<Self, Failure> {
        let stream = UnixStream::connect(socket).map_err(Failure::to("visit the switch"))?;
        Self::greet(ground, stream, version)
    }

    fn greet(ground: &'g Ground, stream: UnixStream, version: Version) -> Result<Self, Failure> {
        let options = ChannelOptions {
            versions: VersionSet::only(version),
            // The switch asks often enough.
            echo_interval: Duration::from_secs(3600),
            ..ChannelOptions::default()
        };
        let mut peer = Self {
            ground,
            stream,
            channel: Channel::new(ChannelSide::Controller, options, ground.clock.now()),
            last_xid: 100,
            heard: VecDeque::new(),
        };
        while peer.channel.version().is_none() {
            peer.exchange(PATIENCE)?;
        }
        Ok(peer)
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &Message) -> Result<Xid, Failure> {
        self.last_xid += 1;
        let xid = Xid(self.last_xid);
        self.channel
            .send(xid, message)
            .expect("tests say only what the version has words for");
        self.write()?;
        Ok(xid)
    }

    /// Sends a message and waits for its answer.
    pub(crate) fn ask(&mut self, message: &Message) -> Result<Message, Failure> {
        let xid = self.send(message)?;
        self.wait_for("an answer", |(of, _)| *of == xid)
    }

    /// Sends a message that must be refused, by an error of this type and code.
    #[track_caller]
    pub(crate) fn refused(&mut self, message: &Message, kind: u16, code: u16) {
        let answer = self.ask(message).expect("an answer comes");
        let Message::Error(error) = &answer else {
            panic!("no error: {answer:?}");
        };
        assert_eq!(error.code, openflow::ErrorCode::Plain { kind, code });
    }

    /// Adds a flow, as `ovs-ofctl` writes it.
    pub(crate) fn add(&mut self, flow: &str) -> Result<Xid, Failure> {
        self.change(FlowModCommand::Add, flow)
    }

    /// Changes flows.
    pub(crate) fn change(&mut self, command: FlowModCommand, flow: &str) -> Result<Xid, Failure> {
        let flow_mod = text::parse_flow(command, flow).expect("the text is a flow");
        self.send(&Message::FlowMod(flow_mod))
    }

    /// Waits until all that was sent is done. Fails if any of it was refused.
    #[track_caller]
    pub(crate) fn barrier(&mut self) {
        let answer = self.ask(&Message::BarrierRequest).expect("an answer comes");
        assert_eq!(answer, Message::BarrierReply);
        let error = self
            .heard
            .iter()
            .find(|(_, message)| matches!(message, Message::Error(_)));
        assert_eq!(error, None);
    }

    /// Waits for something that it did not ask for.
    pub(crate) fn hear<T>(
        &mut self,
        what: &str,
        mut choose: impl FnMut(&Message) -> Option<T>,
    ) -> Result<T, Failure> {
        let message = self.wait_for(what, |(_, message)| choose(message).is_some())?;
        Ok(choose(&message).expect("it was chosen"))
    }

    /// Takes what was heard so far and not asked for, after all that was sent was done.
    pub(crate) fn heard(&mut self) -> Vec<Message> {
        self.barrier();
        self.heard.drain(..).map(|(_, message)| message).collect()
    }

    /// Waits for this many messages, and says of which requests they are, in their order.
    pub(crate) fn answers(&mut self, count: usize) -> Result<Vec<Xid>, Failure> {
        let deadline = self.ground.clock.now() + PATIENCE;
        while self.heard.len() < count && self.ground.clock.now() < deadline {
            self.exchange(PATIENCE)?;
        }
        Ok(self.heard.drain(..).map(|(xid, _)| xid).collect())
    }

    /// Waits until the switch has closed the connection.
    pub(crate) fn await_end(mut self) -> Result<(), Failure> {
        let failure = || Failure::to("wait for the end of a connection");
        self.stream
            .set_read_timeout(Some(PATIENCE))
            .map_err(failure())?;
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(failure()(error)),
            _ => Ok(()),
        }
    }

    fn wait_for(
        &mut self,
        what: &str,
        mut chosen: impl FnMut(&(Xid, Message)) -> bool,
    ) -> Result<Message, Failure> {
        let deadline = self.ground.clock.now() + PATIENCE;
        let mut looked_at = 0;
        loop {
            let found = self.heard.iter().skip(looked_at).position(&mut chosen);
            if let Some(place) = found.map(|place| place + looked_at) {
                let (_, message) = self.heard.remove(place).expect("it was found");
                return Ok(message);
            }
            looked_at = self.heard.len();
            let rest = deadline.since(self.ground.clock.now());
            if rest.is_zero() {
                return Err(Failure::Timeout {
                    what: what.to_owned(),
                    limit: PATIENCE,
                });
            }
            self.exchange(rest)?;
        }
    }

    /// Sends what is pending, and takes what comes next.
    fn exchange(&mut self, limit: Duration) -> Result<(), Failure> {
        let failure = || Failure::to("hear the switch");
        self.write()?;
        let limit = limit.max(Duration::from_millis(1));
        self.stream
            .set_read_timeout(Some(limit))
            .map_err(failure())?;
        let mut room = [0; 1 << 16];
        let count = match self.stream.read(&mut room) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            // Whoever waits looks at the clock.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        };
        let count = count.map_err(failure())?;
        let now = self.ground.clock.now();
        self.channel.handle_input(&room[..count], now);
        while let Some(event) = self.channel.poll_event() {
            match event {
                ChannelEvent::Up(_) => {}
                ChannelEvent::Received(received) => {
                    self.heard.push_back((received.xid, received.message));
                }
                ChannelEvent::Refused(malformed) => {
                    panic!("the switch says what cannot be: {malformed:?}")
                }
                ChannelEvent::Down(reason) => panic!("the channel is down: {reason}"),
            }
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), Failure> {
        let pending = self.channel.pending();
        self.stream
            .write_all(pending)
            .map_err(Failure::to("speak to the switch"))?;
        let count = pending.len();
        self.channel.transmitted(count);
        Ok(())
    }
}
