//! The lab's controller alone: it accepts connections of switches and behaves as configured.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use base::DatapathId;
use controller::learning::Learning;
use controller::{Application, Controller, ControllerError, ControllerSettings, Listener};
use flow::FlowMod;
use openflow::VersionSet;
use record::nearest;
use report::format::count;
use serde_json::{Value, json};
use testbed::Interrupt;
use testbed::{Clock, Failure};

use super::{BadWord, InstrumentError};

/// Address for connections of switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerEndpoint {
    /// TCP address.
    Tcp(SocketAddr),
    /// Path of a Unix socket, which is created.
    Unix(PathBuf),
}

impl FromStr for ControllerEndpoint {
    type Err = BadWord;

    /// Parses `127.0.0.1:6653`, `[::1]:6653`, `tcp:127.0.0.1:6653` or `unix:/run/br0.controller`.
    fn from_str(text: &str) -> Result<Self, BadWord> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let address = text.strip_prefix("tcp:").unwrap_or(text);
        address.parse().map(Self::Tcp).map_err(|_| {
            BadWord(format!(
                "invalid address '{text}': expected ADDRESS:PORT or unix:PATH"
            ))
        })
    }
}

/// Application of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// No application.
    #[default]
    Silent,
    /// Learning switch: it learns addresses and installs a rule for each flow.
    Learning,
    /// Hub: it floods the packet of every packet-in.
    Hub,
}

impl FromStr for Role {
    type Err = BadWord;

    fn from_str(text: &str) -> Result<Self, BadWord> {
        match text {
            "silent" => Ok(Self::Silent),
            "learning" => Ok(Self::Learning),
            "hub" => Ok(Self::Hub),
            _ => Err(BadWord(format!(
                "unknown application '{text}'{}: expected silent, learning or hub",
                nearest(text, ["silent", "learning", "hub"])
            ))),
        }
    }
}

/// Parameters of a controller.
#[derive(Clone, Debug)]
pub struct ControllerCommand {
    /// Address for connections.
    pub at: ControllerEndpoint,
    /// Application.
    pub role: Role,
    /// File of rules in the syntax of `ovs-ofctl add-flows`, which replace the rules of each
    /// switch.
    pub rules: Option<PathBuf>,
    /// Permitted versions of OpenFlow.
    pub versions: VersionSet,
    /// Duration; until the user interrupts it if `None`.
    pub time: Option<Duration>,
}

/// Results of all connections.
#[derive(Clone, Debug, Default)]
pub struct ControlTally {
    switches: Vec<SwitchTally>,
    refused: u64,
    is_interrupted: bool,
}

/// Results of one connection.
#[derive(Clone, Debug)]
struct SwitchTally {
    datapath: u64,
    version: &'static str,
    sent: u64,
    received: BTreeMap<&'static str, u64>,
    errors: Vec<String>,
    over: Option<String>,
}

/// Greatest number of simultaneous switches; each has a thread.
const SWITCHES_MAX: usize = 64;
/// Greatest number of ended connections in the results.
const REMEMBERED_MAX: usize = 1_024;
/// Time limit for a connection before the existing ones are checked.
const ACCEPT_LIMIT: Duration = Duration::from_millis(100);
/// Greatest size of a file of rules, in bytes.
const RULES_BYTES_MAX: u64 = 64 << 20;

impl ControllerCommand {
    /// Accepts connections, and reports events in words.
    ///
    /// # Errors
    /// The address is in use, or the rules are invalid.
    pub fn run(
        &self,
        clock: &Clock,
        interrupt: &Interrupt,
        report: &mut dyn FnMut(&str),
    ) -> Result<ControlTally, InstrumentError> {
        let rules = self.read_rules()?;
        let listener = match &self.at {
            ControllerEndpoint::Tcp(address) => Listener::bind_tcp(*address)?,
            ControllerEndpoint::Unix(path) => Listener::bind(path)?,
        };
        if let Some(address) = listener.address() {
            report(&format!("listening at {address}"));
        }
        let mut connections = SwitchConnections {
            manner: ControllerSettings {
                versions: self.versions,
                application: self.application(),
            },
            rules,
            switches: Vec::new(),
            tally: ControlTally::default(),
        };
        let began = clock.now();
        while !interrupt.is_set() && self.time.is_none_or(|time| clock.now().since(began) < time) {
            connections.check_connections(report);
            if connections.switches.len() < SWITCHES_MAX {
                connections.accept_switch(&listener, clock, report)?;
            } else {
                clock.sleep_until(clock.now() + ACCEPT_LIMIT);
            }
        }
        connections.check_connections(report);
        let mut tally = connections.tally;
        tally
            .switches
            .extend(connections.switches.iter().map(SwitchTally::of));
        tally.is_interrupted = interrupt.is_set();
        Ok(tally)
    }

    fn application(&self) -> Application {
        match self.role {
            Role::Silent => Application::Silent,
            Role::Hub => Application::Hub,
            Role::Learning => Application::Learning(Learning::default()),
        }
    }

    fn read_rules(&self) -> Result<Vec<FlowMod>, InstrumentError> {
        let Some(path) = &self.rules else {
            return Ok(Vec::new());
        };
        let bad = |cause: String| InstrumentError::File {
            file: path.display().to_string(),
            cause,
        };
        let length = std::fs::metadata(path).map_err(|error| bad(error.to_string()))?;
        if length.len() > RULES_BYTES_MAX {
            return Err(bad("it is longer than 64 MiB".to_owned()));
        }
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        rules(&text).map_err(|(line, cause)| bad(format!("line {line}: {cause}")))
    }
}

/// Parses rules, one per line; empty lines and comments after `#` are ignored.
fn rules(text: &str) -> Result<Vec<FlowMod>, (usize, String)> {
    let lines = text.lines().zip(1..);
    let lines = lines.map(|(line, number)| (line.split('#').next().unwrap_or("").trim(), number));
    let lines = lines.filter(|(line, _)| !line.is_empty());
    let read = |(line, number): (&str, usize)| {
        flow::text::parse_flow_line(line).map_err(|error| (number, error.to_string()))
    };
    lines.map(read).collect()
}

/// Connected switches, and the configuration of their connections.
struct SwitchConnections {
    manner: ControllerSettings,
    rules: Vec<FlowMod>,
    switches: Vec<Controller>,
    tally: ControlTally,
}

impl SwitchConnections {
    /// Waits [`ACCEPT_LIMIT`] for a connection, and installs the rules.
    fn accept_switch(
        &mut self,
        listener: &Listener,
        clock: &Clock,
        report: &mut dyn FnMut(&str),
    ) -> Result<(), InstrumentError> {
        let accepted = listener.accept_as(self.manner.clone(), clock, ACCEPT_LIMIT, || Ok(()));
        let switch = match accepted {
            Ok(switch) => switch,
            Err(ControllerError::Failure(Failure::Timeout { .. })) => return Ok(()),
            Err(ControllerError::Failure(failure)) => return Err(failure.into()),
            Err(error) => {
                self.tally.refused += 1;
                report(&format!("connection failed: {error}"));
                return Ok(());
            }
        };
        let DatapathId(id) = switch.datapath_id();
        report(&format!("{id:016x}: {}", switch.diagnosis()));
        if !self.rules.is_empty() {
            match switch.install(&self.rules) {
                Ok(()) => report(&format!(
                    "{id:016x}: {} rules are in force",
                    self.rules.len()
                )),
                Err(error) => report(&format!("{id:016x}: {error}")),
            }
        }
        self.switches.push(switch);
        Ok(())
    }

    /// Reports ended connections, and discards unread messages.
    fn check_connections(&mut self, report: &mut dyn FnMut(&str)) {
        let is_over = |switch: &mut Controller| {
            // Asynchronous messages are counted by kind; their contents are not used here.
            drop(switch.events());
            switch.diagnosis().over.is_some()
        };
        for switch in self.switches.extract_if(.., is_over) {
            let DatapathId(id) = switch.datapath_id();
            report(&format!("{id:016x}: {}", switch.diagnosis()));
            if self.tally.switches.len() < REMEMBERED_MAX {
                self.tally.switches.push(SwitchTally::of(&switch));
            }
        }
    }
}

impl SwitchTally {
    fn of(switch: &Controller) -> Self {
        let (tally, diagnosis) = (switch.tally(), switch.diagnosis());
        let DatapathId(datapath) = switch.datapath_id();
        let mut received = BTreeMap::new();
        for (kind, count, _) in tally.kinds() {
            *received.entry(kind.name()).or_default() += count;
        }
        Self {
            datapath,
            version: diagnosis.version.map_or("", openflow::Version::name),
            sent: tally.sent(),
            received,
            errors: tally.errors().to_vec(),
            over: diagnosis.over,
        }
    }
}

impl ControlTally {
    /// Returns true if the user interrupted the controller.
    #[must_use]
    pub const fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Returns the results as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for one in &self.switches {
            let received = one.received.iter().filter(|(_, count)| **count > 0);
            let received: Vec<String> = received
                .map(|(kind, number)| format!("{kind} {}", count(*number)))
                .collect();
            let _ = writeln!(
                text,
                "{:016x} by {}: sent {}, received {}",
                one.datapath,
                one.version,
                count(one.sent),
                if received.is_empty() {
                    "nothing".to_owned()
                } else {
                    received.join(", ")
                },
            );
            for error in &one.errors {
                let _ = writeln!(text, "  error: {error}");
            }
        }
        if self.switches.is_empty() {
            text += "no switch connected\n";
        }
        if self.refused > 0 {
            let _ = writeln!(text, "{} connections failed", count(self.refused));
        }
        text
    }

    /// Returns the results as a line of JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let switch = |one: &SwitchTally| {
            json!({
                "datapath": format!("{:016x}", one.datapath),
                "version": one.version,
                "said": one.sent,
                "heard": one.received,
                "errors": one.errors,
                "over": one.over,
            })
        };
        json!({
            "kind": "tally",
            "interrupted": self.is_interrupted,
            "switches": self.switches.iter().map(switch).collect::<Vec<_>>(),
            "refused": self.refused,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_roles_are_parsed() {
        let tcp = |text: &str| ControllerEndpoint::Tcp(text.parse().unwrap());
        assert_eq!("127.0.0.1:6653".parse(), Ok(tcp("127.0.0.1:6653")));
        assert_eq!("tcp:[::1]:6653".parse(), Ok(tcp("[::1]:6653")));
        assert_eq!(
            "unix:/run/x".parse(),
            Ok(ControllerEndpoint::Unix("/run/x".into()))
        );
        assert!(
            "6653".parse::<ControllerEndpoint>().is_err()
                && "unix:".parse::<ControllerEndpoint>().is_err()
        );
        assert_eq!("hub".parse(), Ok(Role::Hub));
        let message = "learnin".parse::<Role>().unwrap_err().to_string();
        assert!(message.contains("did you mean 'learning'?"), "{message}");
    }

    #[test]
    fn rules_are_parsed_line_by_line() {
        let text =
            "# two rules\nin_port=1,actions=output:2\n\n  in_port=2,actions=output:1 # back\n";
        assert_eq!(rules(text).map(|rules| rules.len()), Ok(2));
        let (line, _) = rules("in_port=1,actions=drop\nin_pord=1\n").unwrap_err();
        assert_eq!(line, 2);
    }
}
