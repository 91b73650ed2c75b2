//! An OpenFlow controller that the test drives message by message.
//!
//! It connects by Unix sockets, which are independent of network namespaces. Real controllers in
//! other tests connect by TCP.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::Xid;
use flow::{FlowModCommand, text};
use openflow::{Channel, ChannelEvent, ChannelOptions, ChannelSide, Message, Version, VersionSet};
use testbed::Failure;

use crate::support::context::{TestContext, WAIT_LIMIT};

/// A connected controller.
pub(crate) struct TestController<'g> {
    context: &'g TestContext,
    stream: UnixStream,
    channel: Channel,
    last_xid: u32,
    /// Messages received while waiting for another one.
    received: VecDeque<(Xid, Message)>,
}

/// Socket on which a controller waits for the switch.
pub(crate) struct ControllerListener<'g> {
    context: &'g TestContext,
    path: PathBuf,
    listener: UnixListener,
}

impl<'g> ControllerListener<'g> {
    /// Listens on a new path.
    pub(crate) fn bind(context: &'g TestContext) -> Result<Self, Failure> {
        Self::bind_at(context, &context.unique_path("controller.sock"))
    }

    /// Listens on `path`, and replaces the socket of an earlier listener.
    pub(crate) fn bind_at(context: &'g TestContext, path: &Path) -> Result<Self, Failure> {
        let failure = || Failure::to("listen for the switch");
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path).map_err(failure())?;
        listener.set_nonblocking(true).map_err(failure())?;
        Ok(Self {
            context,
            path: path.to_owned(),
            listener,
        })
    }

    /// Controller target for the switch's configuration.
    pub(crate) fn target(&self) -> String {
        format!("unix:{}", self.path.display())
    }

    /// Waits for the switch's connection, and sends nothing on it.
    pub(crate) fn accept_stream(&self) -> Result<UnixStream, Failure> {
        let stream =
            self.context
                .wait_for("the switch to connect", || match self.listener.accept() {
                    Ok((stream, _)) => Ok(Some(stream)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                    Err(error) => Err(Failure::to("accept")(error)),
                })?;
        stream
            .set_nonblocking(false)
            .map_err(Failure::to("accept"))?;
        Ok(stream)
    }

    /// Waits for the switch's connection, and exchanges hello messages.
    pub(crate) fn accept(&self, version: Version) -> Result<TestController<'g>, Failure> {
        TestController::handshake(self.context, self.accept_stream()?, version)
    }
}

impl<'g> TestController<'g> {
    /// Connects to the switch's socket, and exchanges hello messages.
    pub(crate) fn connect(
        context: &'g TestContext,
        socket: &Path,
        version: Version,
    ) -> Result<Self, Failure> {
        let stream = UnixStream::connect(socket).map_err(Failure::to("connect to the switch"))?;
        Self::handshake(context, stream, version)
    }

    fn handshake(
        context: &'g TestContext,
        stream: UnixStream,
        version: Version,
    ) -> Result<Self, Failure> {
        let options = ChannelOptions {
            versions: VersionSet::only(version),
            // The switch probes often enough.
            echo_interval: Duration::from_secs(3600),
            ..ChannelOptions::default()
        };
        let mut controller = Self {
            context,
            stream,
            channel: Channel::new(ChannelSide::Controller, options, context.clock.now()),
            last_xid: 100,
            received: VecDeque::new(),
        };
        while controller.channel.version().is_none() {
            controller.exchange(WAIT_LIMIT)?;
        }
        Ok(controller)
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &Message) -> Result<Xid, Failure> {
        self.last_xid += 1;
        let xid = Xid(self.last_xid);
        self.channel
            .send(xid, message)
            .expect("the version can express the test's messages");
        self.write()?;
        Ok(xid)
    }

    /// Sends a message and waits for its reply.
    pub(crate) fn request(&mut self, message: &Message) -> Result<Message, Failure> {
        let xid = self.send(message)?;
        self.wait_for("a reply", |(of, _)| *of == xid)
    }

    /// Sends a message, and asserts that the reply is an error with this type and code.
    #[track_caller]
    pub(crate) fn expect_error(&mut self, message: &Message, kind: u16, code: u16) {
        let reply = self.request(message).expect("the switch sends a reply");
        let Message::Error(error) = &reply else {
            panic!("the reply is not an error: {reply:?}");
        };
        assert_eq!(error.code, openflow::ErrorCode::Plain { kind, code });
    }

    /// Adds a flow in the syntax of `ovs-ofctl`.
    pub(crate) fn add_flow(&mut self, flow: &str) -> Result<Xid, Failure> {
        self.send_flow_mod(FlowModCommand::Add, flow)
    }

    /// Sends a flow-mod in the syntax of `ovs-ofctl`.
    pub(crate) fn send_flow_mod(
        &mut self,
        command: FlowModCommand,
        flow: &str,
    ) -> Result<Xid, Failure> {
        let flow_mod = text::parse_flow(command, flow).expect("the text is a flow");
        self.send(&Message::FlowMod(flow_mod))
    }

    /// Waits for a barrier reply, and asserts that no error was received.
    #[track_caller]
    pub(crate) fn barrier(&mut self) {
        let reply = self
            .request(&Message::BarrierRequest)
            .expect("the switch sends a reply");
        assert_eq!(reply, Message::BarrierReply);
        let error = self
            .received
            .iter()
            .find(|(_, message)| matches!(message, Message::Error(_)));
        assert_eq!(error, None);
    }

    /// Waits for a message from which `select` returns a value.
    pub(crate) fn wait_for_message<T>(
        &mut self,
        description: &str,
        mut select: impl FnMut(&Message) -> Option<T>,
    ) -> Result<T, Failure> {
        let message = self.wait_for(description, |(_, message)| select(message).is_some())?;
        Ok(select(&message).expect("the message was selected"))
    }

    /// Waits for a barrier reply, and returns the messages received before it that nothing waited
    /// for.
    pub(crate) fn take_messages(&mut self) -> Vec<Message> {
        self.barrier();
        self.received
            .drain(..)
            .map(|(_, message)| message)
            .collect()
    }

    /// Waits for `count` messages, and returns their transaction ids in order.
    pub(crate) fn reply_xids(&mut self, count: usize) -> Result<Vec<Xid>, Failure> {
        let deadline = self.context.clock.now() + WAIT_LIMIT;
        while self.received.len() < count && self.context.clock.now() < deadline {
            self.exchange(WAIT_LIMIT)?;
        }
        Ok(self.received.drain(..).map(|(xid, _)| xid).collect())
    }

    /// Waits until the switch closes the connection.
    pub(crate) fn wait_for_close(mut self) -> Result<(), Failure> {
        let failure = || Failure::to("wait for the end of a connection");
        self.stream
            .set_read_timeout(Some(WAIT_LIMIT))
            .map_err(failure())?;
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(failure()(error)),
            _ => Ok(()),
        }
    }

    fn wait_for(
        &mut self,
        description: &str,
        mut select: impl FnMut(&(Xid, Message)) -> bool,
    ) -> Result<Message, Failure> {
        let deadline = self.context.clock.now() + WAIT_LIMIT;
        let mut examined = 0;
        loop {
            let found = self.received.iter().skip(examined).position(&mut select);
            if let Some(index) = found.map(|index| index + examined) {
                let (_, message) = self
                    .received
                    .remove(index)
                    .expect("position returns a valid index");
                return Ok(message);
            }
            examined = self.received.len();
            let remaining = deadline.since(self.context.clock.now());
            if remaining.is_zero() {
                return Err(Failure::Timeout {
                    what: description.to_owned(),
                    limit: WAIT_LIMIT,
                });
            }
            self.exchange(remaining)?;
        }
    }

    /// Sends pending bytes, and reads once from the switch.
    fn exchange(&mut self, limit: Duration) -> Result<(), Failure> {
        let failure = || Failure::to("read from the switch");
        self.write()?;
        let limit = limit.max(Duration::from_millis(1));
        self.stream
            .set_read_timeout(Some(limit))
            .map_err(failure())?;
        let mut buffer = [0; 1 << 16];
        let count = match self.stream.read(&mut buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            // The caller checks its deadline.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        };
        let count = count.map_err(failure())?;
        let now = self.context.clock.now();
        self.channel.handle_input(&buffer[..count], now);
        while let Some(event) = self.channel.poll_event() {
            match event {
                ChannelEvent::Up(_) => {}
                ChannelEvent::Received(received) => {
                    self.received.push_back((received.xid, received.message));
                }
                ChannelEvent::Refused(malformed) => {
                    panic!("the switch sent a malformed message: {malformed:?}")
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
            .map_err(Failure::to("write to the switch"))?;
        let count = pending.len();
        self.channel.transmitted(count);
        Ok(())
    }
}
