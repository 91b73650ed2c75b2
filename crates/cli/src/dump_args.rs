//! The arguments of `comporta flows`, `groups`, `meters` and `ports`: which switch is
//! asked, and what it is to tell or to change.

use std::error::Error;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{ArgMatches, Args};
use tools::{
    Atomicity, Client, Command, DumpRequest, LineSubject, Naming, SortOrder, ToolError, dump,
};

use crate::input::typed_or_read;

/// Whom to ask.
#[derive(Args)]
struct Bridge {
    /// The bridge.
    bridge: String,
    /// Where the switch has its sockets [default: $OVS_RUNDIR, /var/run/openvswitch].
    #[arg(long, value_name = "DIRECTORY")]
    rundir: Option<PathBuf>,
    /// Call ports and tables by their names [default: on a terminal; names are always understood].
    #[arg(long, overrides_with = "no_names")]
    names: bool,
    /// Know ports and tables by their numbers alone.
    #[arg(long)]
    no_names: bool,
}

impl Bridge {
    fn call(&self) -> Result<Client, ToolError> {
        let socket = control_api::management_socket(self.rundir.as_deref(), &self.bridge);
        Client::connect(&socket, self.naming())
    }

    /// As `ovs-ofctl` has it: whoever reads a terminal is told names.
    fn naming(&self) -> Naming {
        match (self.names, self.no_names) {
            (true, _) => Naming::Show,
            (false, true) => Naming::Off,
            (false, false) if std::io::stdout().is_terminal() => Naming::Show,
            (false, false) => Naming::Accept,
        }
    }
}

/// What is to be changed in place of being told. TEXT is in the words of ovs-ofctl; - is
/// lines on standard input, and @FILE those of a file.
#[derive(Args)]
#[group(multiple = false)]
struct Change {
    /// Add what the text says (-: lines on standard input, @FILE: lines of a file; a line may begin with a command).
    #[arg(long, value_name = "TEXT")]
    add: Option<String>,
    /// Change what the text says (or - or @FILE).
    #[arg(long, value_name = "TEXT")]
    modify: Option<String>,
    /// Delete what the text says, or all (or - or @FILE).
    #[arg(long, value_name = "TEXT")]
    delete: Option<String>,
}

impl Change {
    /// The command and its text, if one was given.
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

/// Makes a change, of lines that stand in `text` or where it says.
fn make(
    bridge: &Bridge,
    subject: LineSubject,
    (command, text): (Command, String),
    bundle: bool,
) -> Result<Told, Box<dyn Error>> {
    let change = tools::ChangeRequest {
        subject,
        command,
        atomicity: together(bundle),
    };
    with_lines(text, |lines| {
        tools::change(&mut bridge.call()?, change, lines)
    })?;
    Ok(Told::same(String::new()))
}

const fn together(bundle: bool) -> Atomicity {
    if bundle {
        Atomicity::AllOrNothing
    } else {
        Atomicity::OneByOne
    }
}

/// Does something with the lines that stand in `text`, or in the file that it names, and
/// names that file in a complaint.
fn with_lines<T>(
    text: String,
    act: impl FnOnce(&str) -> Result<T, ToolError>,
) -> Result<T, Box<dyn Error>> {
    let place = text.strip_prefix('@').map(|path| format!("{path}: "));
    let lines = typed_or_read(text)?;
    let place = place.unwrap_or_default();
    Ok(act(&lines).map_err(|error| format!("{place}{error}"))?)
}

/// What a tool tells, and whether it found what it was to look for otherwise.
pub(crate) struct Told {
    /// The text to show.
    pub(crate) text: String,
    /// Whether there are differences: then the exit code says so, as that of ovs-ofctl does.
    pub(crate) differs: bool,
}

impl Told {
    pub(crate) const fn same(text: String) -> Self {
        Self {
            text,
            differs: false,
        }
    }
}

/// Tell the rules of a switch that runs, in the order in which frames meet them, or change them.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta flows br0 table=0 --sort=in_port\n  comporta flows br0 --add tcp,tp_dst=23,actions=drop\n  comporta flows br0 --replace rules.txt --bundle\n\n--diff ends with exit code 2 if there are differences."
)]
pub(crate) struct FlowsArgs {
    #[command(flatten)]
    bridge: Bridge,
    /// Which rules, in the words of ovs-ofctl dump-flows [default: all].
    filter: Option<String>,
    /// With what they counted, which is how they are told.
    #[arg(long, overrides_with = "no_stats")]
    stats: bool,
    /// Without what they counted.
    #[arg(long)]
    no_stats: bool,
    /// Put them in order by a field of their matches, or by priority (may be given again).
    #[arg(long, value_name = "FIELD", num_args = 0..=1, require_equals = true, default_missing_value = "priority")]
    sort: Vec<String>,
    /// Likewise, the greatest first.
    #[arg(long, value_name = "FIELD", num_args = 0..=1, require_equals = true, default_missing_value = "priority")]
    rsort: Vec<String>,
    #[command(flatten)]
    change: Change,
    /// Have the switch hold the rules of a file and no others (- for standard input).
    #[arg(long, value_name = "FILE", conflicts_with = "Change")]
    replace: Option<String>,
    /// Tell what the switch has otherwise than a file (- for standard input).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["Change", "replace"])]
    diff: Option<String>,
    /// Change only rules of just this match and priority.
    #[arg(long)]
    strict: bool,
    /// Add again also what is there as it should be.
    #[arg(long, requires = "replace")]
    readd: bool,
    /// All or nothing, and to every frame at once.
    #[arg(long)]
    bundle: bool,
}

impl FlowsArgs {
    /// The text to show. `matches` tell in which order `--sort` and `--rsort` were given.
    pub(crate) fn ask(mut self, matches: &ArgMatches) -> Result<Told, Box<dyn Error>> {
        let orders = orders(&self.sort, &self.rsort, matches)?;
        if let Some(path) = self.replace.take() {
            let (again, together) = (self.readd, together(self.bundle));
            with_lines(named(path), |lines| {
                tools::replace(&mut self.bridge.call()?, lines, again, together)
            })?;
            return Ok(Told::same(String::new()));
        }
        if let Some(path) = self.diff.take() {
            let text = with_lines(named(path), |lines| {
                tools::difference(&mut self.bridge.call()?, lines)
            })?;
            let differs = !text.is_empty();
            return Ok(Told { text, differs });
        }
        if let Some(command) = self.change.command(self.strict) {
            return make(&self.bridge, LineSubject::Flow, command, self.bundle);
        }
        let what = DumpRequest::Flows {
            filter: self.filter.unwrap_or_default(),
            counts: self.stats || !self.no_stats,
            orders,
        };
        Ok(Told::same(dump(&mut self.bridge.call()?, &what)?))
    }
}

/// A file's name as it stands in place of a text.
fn named(path: String) -> String {
    match path.as_str() {
        "-" => path,
        path => format!("@{path}"),
    }
}

/// In which orders rules are to be told: as they were given, whichever option gave them.
fn orders(
    sort: &[String],
    rsort: &[String],
    matches: &ArgMatches,
) -> Result<Vec<SortOrder>, ToolError> {
    let mut given = Vec::new();
    for (name, fields, descending) in [("sort", sort, false), ("rsort", rsort, true)] {
        let places = matches.indices_of(name).into_iter().flatten();
        for (place, field) in places.zip(fields) {
            given.push((place, SortOrder::by(field, descending)?));
        }
    }
    given.sort_by_key(|(place, _)| *place);
    Ok(given.into_iter().map(|(_, order)| order).collect())
}

/// Tell the groups of a switch that runs, or change them.
#[derive(Args)]
#[command(
    after_help = "Example:\n  comporta groups br0 --add group_id=1,type=select,bucket=output:1,bucket=output:2"
)]
pub(crate) struct GroupsArgs {
    #[command(flatten)]
    table: TableArgs,
    /// Put buckets into a group (or - or @FILE).
    #[arg(long, value_name = "TEXT", conflicts_with = "Change")]
    insert_buckets: Option<String>,
    /// Take buckets out of a group (or - or @FILE).
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["Change", "insert_buckets"])]
    remove_buckets: Option<String>,
}

impl GroupsArgs {
    /// The text to show.
    pub(crate) fn ask(self) -> Result<Told, Box<dyn Error>> {
        let inserted = self
            .insert_buckets
            .map(|text| (Command::InsertBuckets, text));
        let removed = self
            .remove_buckets
            .map(|text| (Command::RemoveBuckets, text));
        if let Some(command) = inserted.or(removed) {
            return make(
                &self.table.bridge,
                LineSubject::Group,
                command,
                self.table.bundle,
            );
        }
        let counts = self.table.stats;
        self.table
            .ask(LineSubject::Group, &DumpRequest::Groups { counts })
    }
}

/// Tell the meters of a switch that runs, or change them.
#[derive(Args)]
#[command(
    after_help = "Example:\n  comporta meters br0 --add meter=1,kbps,bands=type=drop,rate=1000"
)]
pub(crate) struct MetersArgs {
    #[command(flatten)]
    table: TableArgs,
}

impl MetersArgs {
    /// The text to show.
    pub(crate) fn ask(self) -> Result<Told, Box<dyn Error>> {
        let counts = self.table.stats;
        self.table
            .ask(LineSubject::Meter, &DumpRequest::Meters { counts })
    }
}

/// What `groups` and `meters` have in common.
#[derive(Args)]
struct TableArgs {
    #[command(flatten)]
    bridge: Bridge,
    /// What they counted, in place of what they are.
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    change: Change,
    /// All or nothing, and to every frame at once.
    #[arg(long)]
    bundle: bool,
}

impl TableArgs {
    fn ask(self, subject: LineSubject, what: &DumpRequest) -> Result<Told, Box<dyn Error>> {
        if let Some(command) = self.change.command(false) {
            return make(&self.bridge, subject, command, self.bundle);
        }
        Ok(Told::same(dump(&mut self.bridge.call()?, what)?))
    }
}

/// Tell the ports of a switch that runs.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta ports br0 --stats")]
pub(crate) struct PortsArgs {
    #[command(flatten)]
    bridge: Bridge,
    /// What they counted, in place of what they are.
    #[arg(long)]
    stats: bool,
}

impl PortsArgs {
    /// The text to show.
    pub(crate) fn ask(self) -> Result<Told, Box<dyn Error>> {
        let counts = self.stats;
        let told = dump(&mut self.bridge.call()?, &DumpRequest::Ports { counts })?;
        Ok(Told::same(told))
    }
}
