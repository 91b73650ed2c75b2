//! The arguments of `comporta flows`, `groups`, `meters` and `ports`: which switch is
//! asked, and what it is to tell or to change.

use std::error::Error;
use std::path::PathBuf;

use clap::Args;
use tools::{Client, Dump, Subject, change, dump};

use crate::input::typed_or_read;

/// Whom to ask.
#[derive(Args)]
struct Bridge {
    /// The bridge.
    bridge: String,
    /// Where the switch has its sockets [default: $OVS_RUNDIR, /var/run/openvswitch].
    #[arg(long, value_name = "DIRECTORY")]
    rundir: Option<PathBuf>,
}

impl Bridge {
    fn call(&self) -> Result<Client, Box<dyn Error>> {
        let socket = switch::management_socket(self.rundir.as_deref(), &self.bridge);
        Ok(Client::connect(&socket)?)
    }
}

/// What is to be changed in place of being told.
#[derive(Args)]
#[group(multiple = false)]
struct Change {
    /// Add what the text says, in the words of ovs-ofctl (- for lines on standard input).
    #[arg(long, value_name = "TEXT")]
    add: Option<String>,
    /// Change what the text says (- for lines on standard input).
    #[arg(long, value_name = "TEXT")]
    modify: Option<String>,
    /// Delete what the text says, or all (- for lines on standard input).
    #[arg(long, value_name = "TEXT")]
    delete: Option<String>,
}

impl Change {
    /// Makes the change, if one was asked for.
    fn make(self, bridge: &Bridge, subject: Subject) -> Result<bool, Box<dyn Error>> {
        let (command, text) = match (self.add, self.modify, self.delete) {
            (Some(text), _, _) => ("add", text),
            (_, Some(text), _) => ("modify", text),
            (_, _, Some(text)) => ("delete", text),
            (None, None, None) => return Ok(false),
        };
        let lines = typed_or_read(text)?;
        change(&mut bridge.call()?, subject, command, &lines)?;
        Ok(true)
    }
}

/// Tell the rules of a switch that runs, in the order in which frames meet them, or change them.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta flows br0 table=0\n  comporta flows br0 --add tcp,tp_dst=23,actions=drop"
)]
pub(crate) struct FlowsArgs {
    #[command(flatten)]
    bridge: Bridge,
    /// Which rules, in the words of ovs-ofctl dump-flows [default: all].
    filter: Option<String>,
    /// Without what they counted.
    #[arg(long)]
    no_stats: bool,
    #[command(flatten)]
    change: Change,
}

impl FlowsArgs {
    /// The text to show.
    pub(crate) fn ask(self) -> Result<String, Box<dyn Error>> {
        if self.change.make(&self.bridge, Subject::Flow)? {
            return Ok(String::new());
        }
        let what = Dump::Flows {
            filter: self.filter.unwrap_or_default(),
            counts: !self.no_stats,
        };
        Ok(dump(&mut self.bridge.call()?, &what)?)
    }
}

/// What `groups` and `meters` have in common.
#[derive(Args)]
pub(crate) struct TableArgs {
    #[command(flatten)]
    bridge: Bridge,
    /// What they counted, in place of what they are.
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    change: Change,
}

impl TableArgs {
    /// The text to show of groups.
    pub(crate) fn ask_groups(self) -> Result<String, Box<dyn Error>> {
        let counts = self.stats;
        self.ask(Subject::Group, &Dump::Groups { counts })
    }

    /// The text to show of meters.
    pub(crate) fn ask_meters(self) -> Result<String, Box<dyn Error>> {
        let counts = self.stats;
        self.ask(Subject::Meter, &Dump::Meters { counts })
    }

    fn ask(self, subject: Subject, what: &Dump) -> Result<String, Box<dyn Error>> {
        if self.change.make(&self.bridge, subject)? {
            return Ok(String::new());
        }
        Ok(dump(&mut self.bridge.call()?, what)?)
    }
}

/// Tell the ports of a switch that runs.
#[derive(Args)]
pub(crate) struct PortsArgs {
    #[command(flatten)]
    bridge: Bridge,
    /// What they counted, in place of what they are.
    #[arg(long)]
    stats: bool,
}

impl PortsArgs {
    /// The text to show.
    pub(crate) fn ask(self) -> Result<String, Box<dyn Error>> {
        let counts = self.stats;
        Ok(dump(&mut self.bridge.call()?, &Dump::Ports { counts })?)
    }
}
