//! The arguments of `comporta flows`, `groups`, `meters` and `ports`: the switch, and the query or
//! change.

use std::error::Error;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{ArgMatches, Args};
use tools::{
    Atomicity, Client, Command, DumpRequest, LineSubject, Naming, SortOrder, ToolError, dump,
};

use crate::input::typed_or_read;

/// The bridge of a query.
#[derive(Args)]
struct Bridge {
    /// The bridge.
    bridge: String,
    /// The directory of the switch's sockets [default: $OVS_RUNDIR, /var/run/openvswitch].
    #[arg(long, value_name = "DIRECTORY")]
    rundir: Option<PathBuf>,
    /// Print names of ports and tables [default: on a terminal; names are always accepted].
    #[arg(long, overrides_with = "no_names")]
    names: bool,
    /// Print and accept numbers of ports and tables only.
    #[arg(long)]
    no_names: bool,
}

impl Bridge {
    fn call(&self) -> Result<Client, ToolError> {
        let socket = control_api::management_socket(self.rundir.as_deref(), &self.bridge);
        Client::connect(&socket, self.naming())
    }

    /// Returns the naming as in `ovs-ofctl`: names are printed on a terminal.
    fn naming(&self) -> Naming {
        match (self.names, self.no_names) {
            (true, _) => Naming::Show,
            (false, true) => Naming::Off,
            (false, false) if std::io::stdout().is_terminal() => Naming::Show,
            (false, false) => Naming::Accept,
        }
    }
}

/// A change instead of a query. TEXT is in the syntax of ovs-ofctl; - reads lines from standard
/// input, and @FILE from a file.
#[derive(Args)]
#[group(multiple = false)]
struct ChangeArgs {
    /// Add rules or other entries (-: lines from standard input, @FILE: lines of a file; a line may
    /// begin with a command).
    #[arg(long, value_name = "TEXT")]
    add: Option<String>,
    /// Modify entries (or - or @FILE).
    #[arg(long, value_name = "TEXT")]
    modify: Option<String>,
    /// Delete entries, or all of them (or - or @FILE).
    #[arg(long, value_name = "TEXT")]
    delete: Option<String>,
}

impl ChangeArgs {
    /// Returns the command and its text, if given.
    fn command(self, strict: bool) -> Option<(Command, String)> {
        let (modify, delete) = match strict {
            true => (Command::ModifyStrict, Command::DeleteStrict),
            false => (Command::Modify, Command::Delete),
        };
        let added = self.add.map(|text| (Command::Add, text));
        added
            .or_else(|| self.modify.map(|text| (modify, text)))
            .or_else(|| self.delete.map(|text| (delete, text)))
    }
}

/// Executes a change with the lines in `text`, or in the file that it names.
fn execute(
    bridge: &Bridge,
    subject: LineSubject,
    (command, text): (Command, String),
    bundle: bool,
) -> Result<ToolOutput, Box<dyn Error>> {
    let change = tools::ChangeRequest {
        subject,
        command,
        atomicity: atomicity(bundle),
    };
    with_lines(text, |lines| {
        tools::change(&mut bridge.call()?, change, lines)
    })?;
    Ok(ToolOutput::same(String::new()))
}

const fn atomicity(bundle: bool) -> Atomicity {
    if bundle {
        Atomicity::AllOrNothing
    } else {
        Atomicity::OneByOne
    }
}

/// Calls `act` with the lines in `text`, or in the file that it names; an error names that file.
fn with_lines<T>(
    text: String,
    act: impl FnOnce(&str) -> Result<T, ToolError>,
) -> Result<T, Box<dyn Error>> {
    let prefix = text.strip_prefix('@').map(|path| format!("{path}: "));
    let lines = typed_or_read(text)?;
    let prefix = prefix.unwrap_or_default();
    Ok(act(&lines).map_err(|error| format!("{prefix}{error}"))?)
}

/// The output of a tool, and whether it found differences.
pub(crate) struct ToolOutput {
    /// The text to print.
    pub(crate) text: String,
    /// The tool found differences, which the exit code reports, as that of ovs-ofctl does.
    pub(crate) differs: bool,
}

impl ToolOutput {
    pub(crate) const fn same(text: String) -> Self {
        Self {
            text,
            differs: false,
        }
    }
}

/// Print the rules of a running switch in their order of evaluation, or change them.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta flows br0 table=0 --sort=in_port\n  comporta flows br0 --add tcp,tp_dst=23,actions=drop\n  comporta flows br0 --replace rules.txt --bundle\n\n--diff ends with exit code 2 if there are differences."
)]
pub(crate) struct FlowsArgs {
    #[command(flatten)]
    bridge: Bridge,
    /// The rules to print, in the syntax of ovs-ofctl dump-flows [default: all].
    filter: Option<String>,
    /// Print counters, which is the default.
    #[arg(long, overrides_with = "no_stats")]
    stats: bool,
    /// Print no counters.
    #[arg(long)]
    no_stats: bool,
    /// Sort by a field of the match, or by priority (repeatable).
    #[arg(long, value_name = "FIELD", num_args = 0..=1, require_equals = true, default_missing_value = "priority")]
    sort: Vec<String>,
    /// As --sort, in descending order.
    #[arg(long, value_name = "FIELD", num_args = 0..=1, require_equals = true, default_missing_value = "priority")]
    rsort: Vec<String>,
    #[command(flatten)]
    change: ChangeArgs,
    /// Replace all rules of the switch by those of a file (- for standard input).
    #[arg(long, value_name = "FILE", conflicts_with = "ChangeArgs")]
    replace: Option<String>,
    /// Print the differences between the switch and a file (- for standard input).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ChangeArgs", "replace"])]
    diff: Option<String>,
    /// Change only rules with exactly this match and priority.
    #[arg(long)]
    strict: bool,
    /// Add rules again that exist already.
    #[arg(long, requires = "replace")]
    readd: bool,
    /// Change all or nothing, atomically for every frame.
    #[arg(long)]
    bundle: bool,
}

impl FlowsArgs {
    /// Returns the output. `matches` contains the order of `--sort` and `--rsort`.
    pub(crate) fn query(mut self, matches: &ArgMatches) -> Result<ToolOutput, Box<dyn Error>> {
        let orders = orders(&self.sort, &self.rsort, matches)?;
        if let Some(path) = self.replace.take() {
            let (again, atomicity) = (self.readd, atomicity(self.bundle));
            with_lines(file_argument(path), |lines| {
                tools::replace(&mut self.bridge.call()?, lines, again, atomicity)
            })?;
            return Ok(ToolOutput::same(String::new()));
        }
        if let Some(path) = self.diff.take() {
            let text = with_lines(file_argument(path), |lines| {
                tools::difference(&mut self.bridge.call()?, lines)
            })?;
            let differs = !text.is_empty();
            return Ok(ToolOutput { text, differs });
        }
        if let Some(command) = self.change.command(self.strict) {
            return execute(&self.bridge, LineSubject::Flow, command, self.bundle);
        }
        let request = DumpRequest::Flows {
            filter: self.filter.unwrap_or_default(),
            counts: self.stats || !self.no_stats,
            orders,
        };
        Ok(ToolOutput::same(dump(&mut self.bridge.call()?, &request)?))
    }
}

/// Returns the notation of a file name in place of a text.
fn file_argument(path: String) -> String {
    match path.as_str() {
        "-" => path,
        path => format!("@{path}"),
    }
}

/// Returns the sort orders as they were given, in the order of both options.
fn orders(
    sort: &[String],
    rsort: &[String],
    matches: &ArgMatches,
) -> Result<Vec<SortOrder>, ToolError> {
    let mut given = Vec::new();
    for (name, fields, descending) in [("sort", sort, false), ("rsort", rsort, true)] {
        let positions = matches.indices_of(name).into_iter().flatten();
        for (position, field) in positions.zip(fields) {
            given.push((position, SortOrder::by(field, descending)?));
        }
    }
    given.sort_by_key(|(position, _)| *position);
    Ok(given.into_iter().map(|(_, order)| order).collect())
}

/// Print the groups of a running switch, or change them.
#[derive(Args)]
#[command(
    after_help = "Example:\n  comporta groups br0 --add group_id=1,type=select,bucket=output:1,bucket=output:2"
)]
pub(crate) struct GroupsArgs {
    #[command(flatten)]
    table: TableArgs,
    /// Insert buckets into a group (or - or @FILE).
    #[arg(long, value_name = "TEXT", conflicts_with = "ChangeArgs")]
    insert_buckets: Option<String>,
    /// Remove buckets from a group (or - or @FILE).
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["ChangeArgs", "insert_buckets"])]
    remove_buckets: Option<String>,
}

impl GroupsArgs {
    /// Returns the output.
    pub(crate) fn query(self) -> Result<ToolOutput, Box<dyn Error>> {
        let inserted = self
            .insert_buckets
            .map(|text| (Command::InsertBuckets, text));
        let removed = self
            .remove_buckets
            .map(|text| (Command::RemoveBuckets, text));
        if let Some(command) = inserted.or(removed) {
            return execute(
                &self.table.bridge,
                LineSubject::Group,
                command,
                self.table.bundle,
            );
        }
        let counts = self.table.stats;
        self.table
            .query(LineSubject::Group, &DumpRequest::Groups { counts })
    }
}

/// Print the meters of a running switch, or change them.
#[derive(Args)]
#[command(
    after_help = "Example:\n  comporta meters br0 --add meter=1,kbps,bands=type=drop,rate=1000"
)]
pub(crate) struct MetersArgs {
    #[command(flatten)]
    table: TableArgs,
}

impl MetersArgs {
    /// Returns the output.
    pub(crate) fn query(self) -> Result<ToolOutput, Box<dyn Error>> {
        let counts = self.table.stats;
        self.table
            .query(LineSubject::Meter, &DumpRequest::Meters { counts })
    }
}

/// Common arguments of `groups` and `meters`.
#[derive(Args)]
struct TableArgs {
    #[command(flatten)]
    bridge: Bridge,
    /// Print counters instead of descriptions.
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    change: ChangeArgs,
    /// Change all or nothing, atomically for every frame.
    #[arg(long)]
    bundle: bool,
}

impl TableArgs {
    fn query(
        self,
        subject: LineSubject,
        request: &DumpRequest,
    ) -> Result<ToolOutput, Box<dyn Error>> {
        if let Some(command) = self.change.command(false) {
            return execute(&self.bridge, subject, command, self.bundle);
        }
        Ok(ToolOutput::same(dump(&mut self.bridge.call()?, request)?))
    }
}

/// Print the ports of a running switch.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta ports br0 --stats")]
pub(crate) struct PortsArgs {
    #[command(flatten)]
    bridge: Bridge,
    /// Print counters instead of descriptions.
    #[arg(long)]
    stats: bool,
}

impl PortsArgs {
    /// Returns the output.
    pub(crate) fn query(self) -> Result<ToolOutput, Box<dyn Error>> {
        let counts = self.stats;
        let text = dump(&mut self.bridge.call()?, &DumpRequest::Ports { counts })?;
        Ok(ToolOutput::same(text))
    }
}
