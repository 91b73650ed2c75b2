//! A switch under control with a host at either port, in the hands of one thread: what it is
//! told and what it answers, what goes in and what comes out, and one clock for all of it.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use base::{Instant, Xid};
use controller::{Ask, Kind, Lent, Link};
use openflow::{Message, Version, VersionSet};
use testbed::{Clock, Failure, RawSocket};

use crate::setup::TestSetup;
use crate::tools::Tools;
use crate::trial::TrialError;
use crate::{Interrupt, generator};

/// The socket at which a device's bridge answers whoever asks, in its directory.
const SOCKET: &str = "br0.mgmt";

/// How long a device may take to answer a barrier.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of the longest frame that is looked at.
const FRAME_MAX: usize = 2048;

/// A message that the device sent.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// What it is.
    pub(super) kind: Kind,
    /// Its number.
    pub(super) xid: Xid,
    /// When its last byte came.
    pub(super) at: Instant,
    /// When the message of ours that it answers was handed over, if that is known.
    pub(super) handed: Option<Instant>,
    /// Its bytes.
    pub(super) length: usize,
    /// What it says; none of it where nobody needs to know.
    pub(super) message: Option<Message>,
}

impl Told {
    /// The error in words, if it is one.
    pub(super) fn refusal(&self, version: Version) -> Option<String> {
        match &self.message {
            Some(Message::Error(error)) => Some(match error.code.name(version) {
                Some(name) => format!("{name} ({})", error.code),
                None => error.code.to_string(),
            }),
            _ => None,
        }
    }
}

/// A frame that came out.
#[derive(Clone, Debug)]
pub(super) struct Caught {
    /// When.
    pub(super) at: Instant,
    /// The frame, without its checksum.
    pub(super) bytes: Vec<u8>,
}

/// A switch under control, between two hosts: the client at port 1, the server at port 2.
pub(super) trait Rig {
    /// The version that is spoken.
    fn version(&self) -> Version;
    /// The time.
    fn now(&self) -> Instant;
    /// Says something, which [`Rig::flush`] hands to the system.
    fn say(&mut self, message: &Message) -> Result<Xid, TrialError>;
    /// Hands what is said to the system, as far as there is room.
    fn flush(&mut self) -> Result<(), TrialError>;
    /// Whether more may be said without much waiting.
    fn has_room(&self) -> bool;
    /// When a message's last byte was handed to the system, if it was.
    fn handed_at(&self, xid: Xid) -> Option<Instant>;
    /// The next message that came, if one has. Never waits.
    fn hear(&mut self) -> Result<Option<Told>, TrialError>;
    /// Sends a frame from the client. Whether there was room for it.
    fn send(&mut self, frame: &[u8]) -> Result<bool, TrialError>;
    /// The next frame that came to the server, if one has. Never waits.
    fn catch(&mut self) -> Result<Option<Caught>, TrialError>;
}

/// What came of messages and the barrier behind them.
#[derive(Clone, Debug)]
pub(super) struct Settled {
    /// When the first message was handed over.
    pub(super) began: Instant,
    /// When the barrier was.
    pub(super) said: Instant,
    /// When its reply came.
    pub(super) answered: Instant,
    /// What was refused, by the place among the messages.
    pub(super) refused: BTreeMap<usize, String>,
}

impl Settled {
    /// The first refusal in words, if there was one.
    pub(super) fn first_refusal(&self) -> Option<String> {
        let (place, words) = self.refused.first_key_value()?;
        let count = self.refused.len();
        Some(match count {
            1 => format!("refused message {}: {words}", place + 1),
            _ => format!(
                "refused {count} messages, the first (message {}): {words}",
                place + 1
            ),
        })
    }
}

/// Messages on their way, and the barrier behind them.
pub(super) struct Order {
    messages: Vec<Message>,
    said: Vec<Xid>,
    barrier: Option<Xid>,
    answered: Option<(Instant, Option<Instant>)>,
    began: Option<Instant>,
    refused: BTreeMap<usize, String>,
    deadline: Instant,
}

impl Order {
    pub(super) fn new(messages: Vec<Message>, now: Instant) -> Self {
        Self {
            messages,
            said: Vec::new(),
            barrier: None,
            answered: None,
            began: None,
            refused: BTreeMap::new(),
            deadline: now + PATIENCE,
        }
    }

    /// Says what is due and there is room for. Call it again and again.
    pub(super) fn turn(&mut self, rig: &mut dyn Rig) -> Result<(), TrialError> {
        // A few at a time, so that frames go on meanwhile.
        for _ in 0..SAID_AT_ONCE {
            if self.barrier.is_some() || !rig.has_room() {
                break;
            }
            match self.messages.get(self.said.len()) {
                Some(message) => self.said.push(rig.say(message)?),
                None => self.barrier = Some(rig.say(&Message::BarrierRequest)?),
            }
            self.deadline = rig.now() + PATIENCE;
        }
        rig.flush()?;
        if self.began.is_none() {
            let first = self.said.first().copied().or(self.barrier);
            self.began = first.and_then(|xid| rig.handed_at(xid));
        }
        if self.answered.is_none() && rig.now() > self.deadline {
            let seconds = PATIENCE.as_secs();
            let reason = format!("the device did not answer a barrier within {seconds} s");
            return Err(TrialError::Impossible(reason));
        }
        Ok(())
    }

    /// Takes note of a message. Whether it was about this order.
    pub(super) fn hear(&mut self, told: &Told, version: Version) -> bool {
        if told.kind == Kind::Barrier && self.barrier == Some(told.xid) {
            self.answered = Some((told.at, told.handed));
            return true;
        }
        let Some(first) = self.said.first() else {
            return false;
        };
        let place = usize::try_from(told.xid.0.wrapping_sub(first.0)).unwrap_or(usize::MAX);
        if place >= self.said.len() {
            return false;
        }
        if let Some(words) = told.refusal(version) {
            self.refused.insert(place, words);
        }
        true
    }

    /// When the barrier was answered, if it was.
    pub(super) fn answered(&self) -> Option<Instant> {
        self.answered.map(|(at, _)| at)
    }

    /// Whether anything was refused so far.
    pub(super) fn is_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// The number of the message at this place, once it is said.
    pub(super) fn xid(&self, place: usize) -> Option<Xid> {
        self.said.get(place).copied()
    }

    /// What came of it, once the barrier was answered.
    pub(super) fn settled(&self) -> Option<Settled> {
        let (answered, handed) = self.answered?;
        Some(Settled {
            began: self.began.unwrap_or(answered),
            said: handed.unwrap_or(answered),
            answered,
            refused: self.refused.clone(),
        })
    }
}

/// Hears no more than so many messages, so that a device that never stops does not keep an
/// experiment from going on.
pub(super) struct Few(usize);

impl Default for Few {
    fn default() -> Self {
        Self(HEARD_AT_ONCE)
    }
}

impl Few {
    /// The next message, if one has come and not too many have.
    pub(super) fn hear(&mut self, rig: &mut dyn Rig) -> Result<Option<Told>, TrialError> {
        if self.0 == 0 {
            return Ok(None);
        }
        self.0 -= 1;
        rig.hear()
    }
}

/// Hears a few messages that mean nothing. Whether there were any.
pub(super) fn pass_over(rig: &mut dyn Rig) -> Result<bool, TrialError> {
    let mut few = Few::default();
    let mut any = false;
    while few.hear(rig)?.is_some() {
        any = true;
    }
    Ok(any)
}

/// Messages that are heard in one turn.
const HEARD_AT_ONCE: usize = 64;

/// Messages that are said in one turn.
const SAID_AT_ONCE: usize = 64;

/// Has all of `messages` done before anything else.
pub(super) fn settle(rig: &mut dyn Rig, messages: Vec<Message>) -> Result<Settled, TrialError> {
    let mut order = Order::new(messages, rig.now());
    loop {
        order.turn(rig)?;
        let mut few = Few::default();
        while let Some(told) = few.hear(rig)? {
            order.hear(&told, rig.version());
        }
        if let Some(settled) = order.settled() {
            return Ok(settled);
        }
    }
}

/// A connection to a device, for as long as an experiment takes.
enum Connection {
    /// Of the experiment's own, to a device that listens.
    Own(Link),
    /// The one by which the device has called.
    Lent(Lent),
}

impl Connection {
    fn open(setup: &TestSetup, version: Version, clock: &Clock) -> Result<Self, TrialError> {
        let socket = setup.directory.join(SOCKET);
        if socket.exists() {
            let link = Link::call(&socket, VersionSet::only(version), clock)?;
            return Ok(Self::Own(link));
        }
        let Some(controller) = setup.controller() else {
            let reason = "the device has no controller in this mode".to_owned();
            return Err(TrialError::Impossible(reason));
        };
        let lent = controller.lend()?;
        match lent.version() {
            Some(agreed) if agreed == version => Ok(Self::Lent(lent)),
            Some(agreed) => {
                let reason = format!("the device has agreed on {agreed}, not on {version}");
                Err(TrialError::Impossible(reason))
            }
            None => Err(TrialError::Impossible("nothing is agreed on".to_owned())),
        }
    }
}

impl Deref for Connection {
    type Target = Link;

    fn deref(&self) -> &Link {
        match self {
            Self::Own(link) => link,
            Self::Lent(lent) => lent,
        }
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Link {
        match self {
            Self::Own(link) => link,
            Self::Lent(lent) => lent,
        }
    }
}

/// A real one.
pub(super) struct Live<'a> {
    link: Connection,
    client: RawSocket,
    server: RawSocket,
    clock: Clock,
    interrupt: &'a Interrupt,
    room: Vec<u8>,
}

impl<'a> Live<'a> {
    /// Opens a connection to the station's device, and a socket at either host.
    pub(super) fn open(
        setup: &TestSetup,
        version: Version,
        tools: &Tools<'a>,
    ) -> Result<Self, TrialError> {
        let (client, server) = (setup.bench.client(), setup.bench.server());
        Ok(Self {
            link: Connection::open(setup, version, tools.clock)?,
            client: client.namespace.raw_sender(client.interface)?,
            server: server.namespace.raw_receiver(server.interface)?,
            clock: *tools.clock,
            interrupt: tools.interrupt,
            room: vec![0; FRAME_MAX],
        })
    }

    /// Has the device forget all rules.
    pub(super) fn clear(&mut self) -> Result<(), TrialError> {
        Ok(self.link.clear()?)
    }
}

impl Rig for Live<'_> {
    fn version(&self) -> Version {
        Ask::version(&*self.link)
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn say(&mut self, message: &Message) -> Result<Xid, TrialError> {
        Ok(self.link.queue(message)?)
    }

    fn flush(&mut self) -> Result<(), TrialError> {
        Ok(self.link.flush()?)
    }

    fn has_room(&self) -> bool {
        self.link.has_room()
    }

    fn handed_at(&self, xid: Xid) -> Option<Instant> {
        self.link.handed_at(xid)
    }

    fn hear(&mut self) -> Result<Option<Told>, TrialError> {
        if self.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        if let Some(told) = next(&mut self.link)? {
            return Ok(Some(told));
        }
        self.link.turn()?;
        next(&mut self.link)
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, TrialError> {
        match self.client.send(&[frame]) {
            Err(error) if generator::is_full(&error) => Ok(false),
            outcome => {
                let taken = outcome.map_err(Failure::to("send a frame"))?;
                Ok(taken > 0)
            }
        }
    }

    fn catch(&mut self) -> Result<Option<Caught>, TrialError> {
        let length = self.server.receive(&mut self.room);
        let length = length.map_err(Failure::to("receive a frame"))?;
        Ok(length.map(|length| Caught {
            at: self.clock.now(),
            bytes: self.room[..length].to_vec(),
        }))
    }
}

/// The next message of a link. Large ones are not understood, for nobody asks what is in them.
fn next(link: &mut Link) -> Result<Option<Told>, TrialError> {
    let Some(heard) = link.hear()? else {
        return Ok(None);
    };
    let wanted = match heard.kind {
        Kind::Error | Kind::PacketIn | Kind::FlowRemoved | Kind::PortStatus => true,
        Kind::Statistics | Kind::StatisticsPart => heard.bytes.len() <= STATISTICS_MAX,
        _ => false,
    };
    let message = match wanted {
        true => Some(heard.message().map_err(|malformed| {
            let what = heard.kind.name();
            TrialError::Impossible(format!("the device's {what} is no OpenFlow: {malformed}"))
        })?),
        false => None,
    };
    Ok(Some(Told {
        kind: heard.kind,
        xid: heard.xid,
        at: heard.arrival.at,
        handed: heard.handed,
        length: heard.bytes.len(),
        message,
    }))
}

/// Statistics of so many bytes are understood: the sums over flows are.
const STATISTICS_MAX: usize = 256;
