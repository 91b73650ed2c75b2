//! OpenFlow connections to a switch: one for each version that cases use; received messages are
//! returned in the notation of scripts.

mod meaning;
mod statistics;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::{Instant, PortNo};
use flow::{FragmentHandling, PortConfig, PortDesc, SwitchConfig, TableFlags, TableMod};
use openflow::{Message, NiciraSetting, Version};
use pipeline::TableMiss;
use testbed::{Clock, Program, Spawner};
use testkit::case::{CaseEvent, notation};

use crate::peer::Peer;
use meaning::{asynchronous_line, version};

pub(crate) use meaning::deletes;

/// Effects of an event in the notation of scripts, or the reason why it is impossible.
pub(crate) type EffectLines = Result<Vec<String>, String>;

/// Time limit for a tool.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Longest silence of a connection.
const ANSWER: Duration = Duration::from_secs(1);

/// OpenFlow 1.3 SET_ASYNC: packet-ins for all reasons, and flow-removed messages of all rules, for
/// a master.
const SET_ASYNC: [u8; 32] = [
    4, 28, 0, 32, 0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 15, 0, 0, 0,
    15,
];

/// Configuration bits of a port and their words in `ovs-ofctl mod-port`.
const CONFIG: [(PortConfig, &str); 6] = [
    (PortConfig::DOWN, "down"),
    (PortConfig::NO_RECV, "no-receive"),
    (PortConfig::NO_RECV_STP, "no-receive-stp"),
    (PortConfig::NO_FLOOD, "no-flood"),
    (PortConfig::NO_FWD, "no-forward"),
    (PortConfig::NO_PACKET_IN, "no-packet-in"),
];

/// Connections to a bridge's socket, opened on demand.
pub(crate) struct Peers {
    socket: PathBuf,
    by_version: BTreeMap<Version, Peer>,
    /// Asynchronous messages that were received and not yet returned.
    asynchronous: Vec<String>,
    /// Starts `ovs-ofctl`.
    spawner: Spawner,
    log: PathBuf,
}

impl Peers {
    /// Returns connections to the bridge at `socket`; `log` receives the errors of `ovs-ofctl`.
    pub(crate) fn to(socket: PathBuf, spawner: &Spawner, log: PathBuf) -> Self {
        Self {
            socket,
            by_version: BTreeMap::new(),
            asynchronous: Vec::new(),
            spawner: spawner.clone(),
            log,
        }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the connection of this version. That of 1.3 receives packet-ins and flow-removed
    /// messages.
    pub(crate) fn peer(&mut self, version: Version) -> Result<&mut Peer, String> {
        if !self.by_version.contains_key(&version) {
            let mut peer = Peer::connect(&self.socket, version)?;
            if version == Version::V13 {
                peer.request(&[Message::SetConfig(SwitchConfig {
                    fragments: FragmentHandling::Normal,
                    miss_send_len: u16::MAX,
                    invalid_ttl: false,
                })])?;
                peer.send_raw(&SET_ASYNC)?;
            }
            if version == Version::V10 {
                peer.request(&[Message::NiciraSetting(NiciraSetting::TableIds(true))])?;
            }
            self.by_version.insert(version, peer);
        }
        Ok(self.by_version.get_mut(&version).expect("it was just made"))
    }

    /// Opens the connection that receives asynchronous messages.
    pub(crate) fn listen(&mut self) -> Result<(), String> {
        self.peer(Version::V13).map(drop)
    }

    /// Sends messages, and returns all that are received before the barrier reply.
    pub(crate) fn request(
        &mut self,
        version: Version,
        messages: &[Message],
    ) -> Result<Vec<Message>, String> {
        let received = self.peer(version)?.request(messages)?;
        self.asynchronous
            .extend(received.iter().filter_map(asynchronous_line));
        Ok(received)
    }

    /// Sends a message in the version that its content requires.
    pub(crate) fn send_by_content(&mut self, message: Message) -> EffectLines {
        self.send(version(&message), message)
    }

    /// Sends a message, and returns the refusal if there is one.
    pub(crate) fn send(&mut self, version: Version, message: Message) -> EffectLines {
        self.listen()?;
        let received = self.request(version, &[message])?;
        let refusals = received.iter().filter_map(|received| match received {
            Message::Error(error) => Some(match error.code.refusal(version) {
                Some(refusal) => notation::refusal_line(refusal),
                None => notation::effect_line("!", &format!("refused {}", error.code)),
            }),
            _ => None,
        });
        Ok(refusals.collect())
    }

    /// Sends the OpenFlow message of an event; returns `None` if it is not an OpenFlow event.
    pub(crate) fn send_event(&mut self, event: &CaseEvent) -> Option<EffectLines> {
        Some(match event {
            CaseEvent::Fragments(fragments) => {
                let config = SwitchConfig {
                    fragments: *fragments,
                    miss_send_len: u16::MAX,
                    invalid_ttl: false,
                };
                self.send(Version::V13, Message::SetConfig(config))
            }
            // Later versions have no such setting.
            CaseEvent::TableMiss(table, miss) => {
                let config = match miss {
                    TableMiss::Default => Err("OpenFlow cannot restore the default".to_owned()),
                    TableMiss::Controller => Ok(TableFlags(0)),
                    TableMiss::Continue => Ok(TableFlags(1)),
                    TableMiss::Drop => Ok(TableFlags(2)),
                };
                config.and_then(|config| {
                    let command = TableMod::new(*table, config);
                    self.send(Version::V11, Message::TableMod(command))
                })
            }
            CaseEvent::Flow(command) => self.send_by_content(Message::FlowMod((**command).clone())),
            CaseEvent::Group(command) => self.send_by_content(Message::GroupMod(command.clone())),
            CaseEvent::Meter(command) => self.send_by_content(Message::MeterMod(command.clone())),
            CaseEvent::TlvTable(change) => {
                self.send_by_content(Message::TlvTableMod(change.clone()))
            }
            CaseEvent::PacketOut(message) => {
                self.send_by_content(Message::PacketOut(message.clone()))
            }
            _ => return None,
        })
    }

    /// Returns the asynchronous messages of all preceding events.
    pub(crate) fn asynchronous(&mut self, linger: Option<Duration>) -> EffectLines {
        // A switch may process a frame from each port before it reads from controllers: it has
        // finished with all earlier ones at the second reply.
        for _ in 0..2 {
            self.request(Version::V13, &[])?;
        }
        if let Some(linger) = linger {
            let received = self.peer(Version::V13)?.linger(linger)?;
            self.asynchronous
                .extend(received.iter().filter_map(asynchronous_line));
        }
        Ok(std::mem::take(&mut self.asynchronous))
    }

    /// Waits until `then`. Each connection sends barriers meanwhile, since a switch drops silent
    /// peers.
    pub(crate) fn wait_until(&mut self, then: Instant, clock: &Clock) -> Result<(), String> {
        loop {
            let now = clock.now();
            if now >= then {
                return Ok(());
            }
            clock.sleep_until(then.min(now + ANSWER));
            let versions: Vec<Version> = self.by_version.keys().copied().collect();
            for version in versions {
                self.request(version, &[])?;
            }
        }
    }

    /// Runs `ovs-ofctl`.
    pub(crate) fn ofctl(&self, words: &str) -> Result<(), String> {
        let program = Program::new("ovs-ofctl")
            .args(words.split_whitespace())
            .log(&self.log);
        let done = self.spawner.run(program, TIMEOUT);
        done.map_err(|failure| failure.to_string())
    }

    /// Sets all configuration bits of the port with this name.
    pub(crate) fn configure(&self, name: &str, port: &PortDesc) -> Result<(), String> {
        for (bit, word) in CONFIG {
            let word = match (port.config.0 & bit.0 != 0, word.strip_prefix("no-")) {
                (true, _) => word,
                (false, Some(word)) => word,
                (false, None) => "up",
            };
            let socket = self.socket.display();
            self.ofctl(&format!("mod-port {socket} {name} {word}"))?;
        }
        Ok(())
    }

    /// Returns the descriptions of the switch's ports.
    pub(crate) fn ports(&mut self) -> Result<Vec<PortDesc>, String> {
        self.port_descs(PortNo::ANY)
    }
}
