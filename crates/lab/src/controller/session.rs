//! The thread behind a controller: it sleeps on the device's socket and on the
//! bell that announces orders, and drives the channel between them.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use base::Xid;
use openflow::{Channel, Event, Message, Options, Side, Version, Versions};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use testbed::Clock;

use super::ControllerError;

/// Longer than any run: the lab does not ask whether a device is there while it
/// tests it, and a device that ends closes its socket.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Something that the device is to do.
pub(super) struct Order {
    /// What it is, for whoever reads an error.
    pub(super) request: &'static str,
    /// The messages; a barrier is sent behind them.
    pub(super) messages: Vec<Message>,
    /// Where the device's answers go, when the barrier's has come.
    pub(super) reply: Sender<Result<Vec<Message>, ControllerError>>,
}

/// An order whose barrier has not been answered.
struct Pending {
    order: Order,
    /// The numbers of its messages, up to the barrier's.
    first: u32,
    barrier: u32,
    answers: Vec<Message>,
    refused: Option<ControllerError>,
}

/// One connection with a device.
pub(super) struct Session {
    stream: UnixStream,
    rung: UnixStream,
    inbox: Receiver<Order>,
    packet_ins: Arc<AtomicU64>,
    clock: Clock,
    channel: Channel,
    waiting: Vec<Order>,
    pending: Vec<Pending>,
    next_xid: u32,
}

impl Session {
    pub(super) fn new(
        stream: UnixStream,
        rung: UnixStream,
        inbox: Receiver<Order>,
        packet_ins: Arc<AtomicU64>,
        clock: Clock,
    ) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        rung.set_nonblocking(true)?;
        let options = Options {
            versions: Versions::only(Version::V10),
            echo_interval: NEVER,
            ..Options::default()
        };
        Ok(Self {
            stream,
            rung,
            inbox,
            packet_ins,
            clock,
            channel: Channel::new(Side::Controller, options, clock.now()),
            waiting: Vec::new(),
            pending: Vec::new(),
            // The channel keeps zero to itself.
            next_xid: 1,
        })
    }

    /// Goes on until the connection is over or nobody gives orders any more.
    pub(super) fn run(mut self) {
        let reason = loop {
            match self.turn() {
                Ok(true) => {}
                Ok(false) => return,
                Err(reason) => break reason,
            }
        };
        for pending in self.pending {
            // Whoever does not wait any more need not know.
            let _ = pending
                .order
                .reply
                .send(Err(ControllerError::Down(reason.clone())));
        }
        for order in self.waiting.into_iter().chain(self.inbox) {
            let _ = order.reply.send(Err(ControllerError::Down(reason.clone())));
        }
    }

    /// Waits for something and deals with it. False when nobody gives orders any
    /// more; an error says why the connection is over.
    fn turn(&mut self) -> Result<bool, String> {
        let text = |error: io::Error| error.to_string();
        self.write().map_err(text)?;
        self.wait().map_err(text)?;
        if !self.take_orders().map_err(text)? {
            return Ok(false);
        }
        self.read().map_err(text)?;
        let now = self.clock.now();
        if self.channel.next_timeout().is_some_and(|due| now >= due) {
            self.channel.handle_timeout(now);
        }
        while let Some(event) = self.channel.poll_event() {
            self.handle(event)?;
        }
        if self.channel.version().is_some() {
            for order in std::mem::take(&mut self.waiting) {
                self.send(order);
            }
        }
        Ok(true)
    }

    fn wait(&self) -> io::Result<()> {
        let mut wanted = PollFlags::IN;
        if !self.channel.pending().is_empty() {
            wanted |= PollFlags::OUT;
        }
        let mut fds = [
            PollFd::from_borrowed_fd(self.stream.as_fd(), wanted),
            PollFd::from_borrowed_fd(self.rung.as_fd(), PollFlags::IN),
        ];
        let now = self.clock.now();
        let rest = self.channel.next_timeout().map(|due| due.since(now));
        let rest = rest.and_then(|rest| Timespec::try_from(rest).ok());
        match poll(&mut fds, rest.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes orders in. False if there will be none any more.
    fn take_orders(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 64];
        match self.rung.read(&mut bytes) {
            Ok(0) => return Ok(false),
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        self.waiting.extend(self.inbox.try_iter());
        Ok(true)
    }

    fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; 16_384];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(io::Error::other("the device closed it")),
                Ok(length) => self
                    .channel
                    .handle_input(&bytes[..length], self.clock.now()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.channel.pending().is_empty() {
            match self.stream.write(self.channel.pending()) {
                Ok(length) => self.channel.transmitted(length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Up(_) => {}
            Event::Down(reason) => return Err(reason.to_string()),
            Event::Refused(malformed) => {
                return Err(format!("it sent what is no OpenFlow: {}", malformed.fault));
            }
            Event::Received(received) => match received.message {
                Message::PacketIn(_) => {
                    self.packet_ins.fetch_add(1, Ordering::Relaxed);
                }
                message => self.answered(received.xid, message),
            },
        }
        Ok(())
    }

    /// Puts an answer with its order, and ends the order if it is the barrier's.
    fn answered(&mut self, xid: Xid, message: Message) {
        let belongs = |pending: &Pending| (pending.first..=pending.barrier).contains(&xid.0);
        let Some(index) = self.pending.iter().position(belongs) else {
            return;
        };
        let pending = &mut self.pending[index];
        match message {
            Message::Error(error) => {
                pending
                    .refused
                    .get_or_insert_with(|| ControllerError::Refused {
                        request: pending.order.request,
                        fault: error.fault.to_string(),
                    });
                if xid.0 != pending.barrier {
                    return;
                }
            }
            Message::BarrierReply if xid.0 == pending.barrier => {}
            other => {
                pending.answers.push(other);
                return;
            }
        }
        let done = self.pending.remove(index);
        let outcome = done.refused.map_or(Ok(done.answers), Err);
        // Whoever does not wait any more need not know.
        let _ = done.order.reply.send(outcome);
    }

    /// Sends an order's messages, and the barrier.
    fn send(&mut self, mut order: Order) {
        let first = self.next_xid;
        let messages = std::mem::take(&mut order.messages);
        let mut refused = None;
        for message in messages.iter().chain([&Message::BarrierRequest]) {
            if let Err(error) = self.channel.send(Xid(self.next_xid), message) {
                refused.get_or_insert_with(|| ControllerError::Refused {
                    request: order.request,
                    fault: error.to_string(),
                });
            }
            self.next_xid += 1;
        }
        self.pending.push(Pending {
            order,
            first,
            barrier: self.next_xid - 1,
            answers: Vec::new(),
            refused,
        });
    }
}
