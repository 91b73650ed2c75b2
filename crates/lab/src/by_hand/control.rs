//! The lab's controller alone: it waits for switches that call, and is to them as it is told.

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

/// Where switches call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// By TCP.
    Tcp(SocketAddr),
    /// At a Unix socket, which is made.
    Unix(PathBuf),
}

impl FromStr for Place {
    type Err = BadWord;

    /// Reads `127.0.0.1:6653`, `[::1]:6653`, `tcp:127.0.0.1:6653` or `unix:/run/br0.controller`.
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

/// What the controller does by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    #[default]
    Silent,
    /// It learns where stations are, and installs a rule for each conversation.
    Learning,
    /// It has every frame that comes up leave by all other ports.
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

/// A controller to be.
#[derive(Clone, Debug)]
pub struct Listening {
    /// Where it listens.
    pub at: Place,
    /// What it does by itself.
    pub role: Role,
    /// A file of rules, as `ovs-ofctl add-flows` takes them, which each switch is left with.
    pub rules: Option<PathBuf>,
    /// The versions that it may speak.
    pub versions: VersionSet,
    /// For how long; until it is enough, if there is no number.
    pub time: Option<Duration>,
}

/// What was heard.
#[derive(Clone, Debug, Default)]
pub struct ControlTally {
    switches: Vec<SwitchTally>,
    refused: u64,
    is_interrupted: bool,
}

/// What was heard of one connection.
#[derive(Clone, Debug)]
struct SwitchTally {
    datapath: u64,
    version: &'static str,
    said: u64,
    heard: BTreeMap<&'static str, u64>,
    errors: Vec<String>,
    over: Option<String>,
}

/// Switches at once, at most: each is a thread.
const SWITCHES_MAX: usize = 64;
/// Connections that are remembered when they are over.
const REMEMBERED_MAX: usize = 1_024;
/// How long a call is waited for before the switches are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// The longest file of rules.
const RULES_BYTES_MAX: u64 = 64 << 20;

impl Listening {
    /// Listens, and tells in words what happens.
    ///
    /// # Errors
    /// The place is taken, or the rules are none.
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

/// The rules of a text: a line each, but for empty ones and those that begin with `#`.
fn rules(text: &str) -> Result<Vec<FlowMod>, (usize, String)> {
    let lines = text.lines().zip(1..);
    let lines = lines.map(|(line, number)| (line.split('#').next().unwrap_or("").trim(), number));
    let lines = lines.filter(|(line, _)| !line.is_empty());
    let read = |(line, number): (&str, usize)| {
        flow::text::parse_flow_line(line).map_err(|error| (number, error.to_string()))
    };
    lines.map(read).collect()
}

/// Who is connected, and what is to be said to them.
struct Desk {
    manner: ControllerSettings,
    rules: Vec<FlowMod>,
    switches: Vec<Controller>,
    tally: ControlTally,
}

impl Desk {
    /// Waits a moment for a switch that calls.
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

    /// Tells of those that have hung up, and forgets what nobody asks for.
    fn look(&mut self, tell: &mut dyn FnMut(&str)) {
        let is_over = |switch: &mut Controller| {
            // What is told unasked is counted by kind; the messages themselves are of no use here.
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
    /// Whether the user ended it.
    #[must_use]
    pub const fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// As text for people.
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

    /// As a line for programs.
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
    fn places_and_roles_are_read() {
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
    fn rules_are_read_line_by_line() {
        let text =
            "# two rules\nin_port=1,actions=output:2\n\n  in_port=2,actions=output:1 # back\n";
        assert_eq!(rules(text).map(|rules| rules.len()), Ok(2));
        let (line, _) = rules("in_port=1,actions=drop\nin_pord=1\n").unwrap_err();
        assert_eq!(line, 2);
    }
}
