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

use super::{BadWord, ByHandError};

/// Address for connections of switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// TCP address.
    Tcp(SocketAddr),
    /// Path of a Unix socket, which is created.
    Unix(PathBuf),
}

impl FromStr for Place {
    type Err = BadWord;

    /// Parses `127.0.0.1:6653`, `[::1]:6653`, `tcp:127.0.0.1:6653` or `unix:/run/br0.controller`.
    fn from_str(text: &str) -> Result<Self, BadWord> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let address = text.strip_prefix("tcp:").unwrap_or(text);
        address.parse().map(Self::Tcp).map_err(|_| {
            BadWord(format!(
                "'{text}' is no place to listen at: ADDRESS:PORT or unix:PATH is wanted"
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
                "there is no application '{text}'{}: one of silent, learning, hub is wanted",
                nearest(text, ["silent", "learning", "hub"])
            ))),
        }
    }
}

/// Parameters of a controller.
#[derive(Clone, Debug)]
pub struct Listening {
    /// Address for connections.
    pub at: Place,
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
    said: u64,
    heard: BTreeMap<&'static str, u64>,
    errors: Vec<String>,
    over: Option<String>,
}

/// Greatest number of simultaneous switches; each has a thread.
const SWITCHES_MAX: usize = 64;
/// Greatest number of ended connections in the results.
const REMEMBERED_MAX: usize = 1_024;
/// Time limit for a connection before the existing ones are checked.
const LOOK: Duration = Duration::from_millis(100);
/// Greatest size of a file of rules, in bytes.
const RULES_BYTES_MAX: u64 = 64 << 20;

impl Listening {
    /// Accepts connections, and reports events in words.
    ///
    /// # Errors
    /// The address is in use, or the rules are invalid.
    pub fn run(
        &self,
        clock: &Clock,
        interrupt: &Interrupt,
        tell: &mut dyn FnMut(&str),
    ) -> Result<ControlTally, ByHandError> {
        let rules = self.read_rules()?;
        let listener = match &self.at {
            Place::Tcp(address) => Listener::bind_tcp(*address)?,
            Place::Unix(path) => Listener::bind(path)?,
        };
        if let Some(address) = listener.address() {
            tell(&format!("listening at {address}"));
        }
        let mut desk = Desk {
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
            desk.look(tell);
            if desk.switches.len() < SWITCHES_MAX {
                desk.take_call(&listener, clock, tell)?;
            } else {
                clock.sleep_until(clock.now() + LOOK);
            }
        }
        desk.look(tell);
        let mut tally = desk.tally;
        tally
            .switches
            .extend(desk.switches.iter().map(SwitchTally::of));
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

    fn read_rules(&self) -> Result<Vec<FlowMod>, ByHandError> {
        let Some(path) = &self.rules else {
            return Ok(Vec::new());
        };
        let bad = |cause: String| ByHandError::File {
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
struct Desk {
    manner: ControllerSettings,
    rules: Vec<FlowMod>,
    switches: Vec<Controller>,
    tally: ControlTally,
}

impl Desk {
    /// Waits [`LOOK`] for a connection, and installs the rules.
    fn take_call(
        &mut self,
        listener: &Listener,
        clock: &Clock,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), ByHandError> {
        let called = listener.accept_as(self.manner.clone(), clock, LOOK, || Ok(()));
        let switch = match called {
            Ok(switch) => switch,
            Err(ControllerError::Failure(Failure::Timeout { .. })) => return Ok(()),
            Err(ControllerError::Failure(failure)) => return Err(failure.into()),
            Err(error) => {
                self.tally.refused += 1;
                tell(&format!("a call came to nothing: {error}"));
                return Ok(());
            }
        };
        let DatapathId(id) = switch.datapath_id();
        tell(&format!("{id:016x}: {}", switch.diagnosis()));
        if !self.rules.is_empty() {
            match switch.install(&self.rules) {
                Ok(()) => tell(&format!(
                    "{id:016x}: {} rules are in force",
                    self.rules.len()
                )),
                Err(error) => tell(&format!("{id:016x}: {error}")),
            }
        }
        self.switches.push(switch);
        Ok(())
    }

    /// Reports ended connections, and discards unread messages.
    fn look(&mut self, tell: &mut dyn FnMut(&str)) {
        let is_over = |switch: &mut Controller| {
            // Asynchronous messages are counted by kind; their contents are not used here.
            drop(switch.events());
            switch.diagnosis().over.is_some()
        };
        for switch in self.switches.extract_if(.., is_over) {
            let DatapathId(id) = switch.datapath_id();
            tell(&format!("{id:016x}: {}", switch.diagnosis()));
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
        let mut heard = BTreeMap::new();
        for (kind, count, _) in tally.kinds() {
            *heard.entry(kind.name()).or_default() += count;
        }
        Self {
            datapath,
            version: diagnosis.version.map_or("", openflow::Version::name),
            said: tally.sent(),
            heard,
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
            let heard = one.heard.iter().filter(|(_, count)| **count > 0);
            let heard: Vec<String> = heard
                .map(|(kind, number)| format!("{kind} {}", count(*number)))
                .collect();
            let _ = writeln!(
                text,
                "{:016x} by {}: said {}, heard {}",
                one.datapath,
                one.version,
                count(one.said),
                if heard.is_empty() {
                    "nothing".to_owned()
                } else {
                    heard.join(", ")
                },
            );
            for error in &one.errors {
                let _ = writeln!(text, "  error: {error}");
            }
        }
        if self.switches.is_empty() {
            text += "no switch called\n";
        }
        if self.refused > 0 {
            let _ = writeln!(text, "{} calls came to nothing", count(self.refused));
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
                "said": one.said,
                "heard": one.heard,
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
        let tcp = |text: &str| Place::Tcp(text.parse().unwrap());
        assert_eq!("127.0.0.1:6653".parse(), Ok(tcp("127.0.0.1:6653")));
        assert_eq!("tcp:[::1]:6653".parse(), Ok(tcp("[::1]:6653")));
        assert_eq!("unix:/run/x".parse(), Ok(Place::Unix("/run/x".into())));
        assert!("6653".parse::<Place>().is_err() && "unix:".parse::<Place>().is_err());
        assert_eq!("hub".parse(), Ok(Role::Hub));
        let told = "learnin".parse::<Role>().unwrap_err().to_string();
        assert!(told.contains("did you mean 'learning'?"), "{told}");
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
