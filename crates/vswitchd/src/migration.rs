//! Review of the database of an Open vSwitch before Comporta takes its place: the settings that
//! Comporta applies, maps to a feature of its own, ignores or refuses.
//!
//! The rows are converted as the daemon converts them ([`crate::desired`]), so that the review and
//! the daemon cannot disagree. Open vSwitch's own tools read the database: `ovsdb-client` from a
//! running server, `ovsdb-tool` from a file.

use std::fmt::{self, Display, Write};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use config::Config;
use ovsdb::{Database, Malformed, Schema, UpdateFormat};
use serde_json::{Map, Value, json};

use crate::columns::TABLES;
use crate::desired::{ControllerEndpoint, DesiredState, InterfaceOutcome, convert_rows};
use crate::rows::{Record, root};
use crate::{DATABASE, DATABASE_SOCKET};

/// The directories of Open vSwitch's socket and database file, in Debian.
const RUN_DIRECTORY: &str = "/var/run/openvswitch";
const DATABASE_FILE: &str = "/etc/openvswitch/conf.db";

/// The source of the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationSource {
    /// A running ovsdb-server, as `unix:PATH` or `tcp:HOST:PORT`.
    Server(String),
    /// A database file.
    File(PathBuf),
}

impl MigrationSource {
    /// Returns the running server of this machine, or else its database file.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let socket = Path::new(RUN_DIRECTORY).join(DATABASE_SOCKET);
        match socket.exists() {
            true => Self::Server(format!("unix:{}", socket.display())),
            false => Self::File(DATABASE_FILE.into()),
        }
    }
}

impl FromStr for MigrationSource {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_remote = ["unix:", "tcp:", "ssl:"]
            .iter()
            .any(|scheme| text.starts_with(scheme));
        Ok(match is_remote {
            true => Self::Server(text.to_owned()),
            false => Self::File(text.into()),
        })
    }
}

impl Display for MigrationSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(remote) => f.write_str(remote),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The reason why a database cannot be reviewed.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// A tool cannot be started.
    #[error("cannot run {tool}: {error}; it is part of Open vSwitch")]
    Tool {
        /// The tool.
        tool: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// A tool failed.
    #[error("{tool}: {message}")]
    Refused {
        /// The tool.
        tool: &'static str,
        /// The last line of its standard error.
        message: String,
    },
    /// The content is no database of Open vSwitch.
    #[error("{source_name}: no database of Open vSwitch: {error}")]
    Content {
        /// The source.
        source_name: String,
        /// The reason.
        error: Malformed,
    },
}

/// The treatment of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Applied as with Open vSwitch.
    Applied,
    /// Applied by another feature.
    Mapped(String),
    /// Ignored, for this reason; the rest of the row is applied.
    Ignored(String),
    /// The row is not applied, for this reason.
    Refused(String),
}

/// A row or a setting, and its treatment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewItem {
    /// The kind and the name: `bridge br0`, `interface eth1 of br0`.
    pub subject: String,
    /// The treatment.
    pub treatment: Treatment,
}

/// The review of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationReview {
    /// The rows and settings: bridge by bridge, then settings of the whole switch.
    pub items: Vec<ReviewItem>,
}

impl MigrationReview {
    /// Returns true if a row is refused or a setting is ignored.
    #[must_use]
    pub fn has_losses(&self) -> bool {
        self.items.iter().any(|item| {
            matches!(
                item.treatment,
                Treatment::Ignored(_) | Treatment::Refused(_)
            )
        })
    }

    fn add(&mut self, subject: impl Into<String>, treatment: Treatment) {
        self.items.push(ReviewItem {
            subject: subject.into(),
            treatment,
        });
    }
}

impl Display for MigrationReview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = self.items.iter().map(|item| item.subject.chars().count());
        let width = lengths.max().unwrap_or_default();
        let (mut applied, mut mapped, mut ignored, mut refused) = (0, 0, 0, 0);
        for ReviewItem { subject, treatment } in &self.items {
            let (count, word, reason) = match treatment {
                Treatment::Applied => (&mut applied, "applied", None),
                Treatment::Mapped(reason) => (&mut mapped, "mapped", Some(reason)),
                Treatment::Ignored(reason) => (&mut ignored, "ignored", Some(reason)),
                Treatment::Refused(reason) => (&mut refused, "REFUSED", Some(reason)),
            };
            *count += 1;
            write!(f, "{subject:width$}  {word}")?;
            match reason {
                Some(reason) => writeln!(f, ": {reason}")?,
                None => f.write_char('\n')?,
            }
        }
        writeln!(
            f,
            "{applied} applied, {mapped} mapped, {ignored} ignored, {refused} refused"
        )
    }
}

/// Reads a database and reviews it.
///
/// # Errors
/// See [`MigrationError`].
pub fn review(source: &MigrationSource) -> Result<MigrationReview, MigrationError> {
    let content = |error| MigrationError::Content {
        source_name: source.to_string(),
        error,
    };
    let schema = read_schema(source)?;
    let schema = Schema::from_json(&schema).map_err(content)?;
    let mut database = Database::monitoring(&schema, TABLES.iter().copied());
    let updates = read_rows(source, &database)?;
    let applied = database.apply(&updates.map_err(content)?, UpdateFormat::Values);
    applied.map_err(content)?;
    Ok(review_rows(&database))
}

/// Reads the schema: from the server, or from the first record of the file.
fn read_schema(source: &MigrationSource) -> Result<Value, MigrationError> {
    match source {
        MigrationSource::Server(remote) => {
            run_tool("ovsdb-client", &["get-schema", remote, DATABASE])
        }
        MigrationSource::File(path) => {
            let file = path.to_string_lossy();
            // The version check fails for a file that is no database, with a clear message.
            run_tool_text("ovsdb-tool", &["db-version", &file])?;
            let text = std::fs::read_to_string(path).map_err(|error| MigrationError::Refused {
                tool: "ovsdb-tool",
                message: format!("{file}: {error}"),
            })?;
            let schema = text.lines().nth(1).unwrap_or_default();
            Ok(serde_json::from_str(schema).unwrap_or(Value::Null))
        }
    }
}

/// Reads all rows of the tables and columns of `database`, as the updates that insert them.
fn read_rows(
    source: &MigrationSource,
    database: &Database,
) -> Result<Result<Value, Malformed>, MigrationError> {
    let tables: Vec<(&str, Vec<&str>)> = database.columns().collect();
    let select = |(table, columns): &(&str, Vec<&str>)| {
        let columns: Vec<_> = columns.iter().copied().chain(["_uuid"]).collect();
        json!({"op": "select", "table": table, "where": [], "columns": columns})
    };
    let mut transaction = vec![json!(DATABASE)];
    transaction.extend(tables.iter().map(select));
    let transaction = Value::from(transaction).to_string();
    let results = match source {
        MigrationSource::Server(remote) => {
            run_tool("ovsdb-client", &["query", remote, &transaction])?
        }
        MigrationSource::File(path) => run_tool(
            "ovsdb-tool",
            &["query", &path.to_string_lossy(), &transaction],
        )?,
    };
    Ok(insertions(&tables, &results))
}

/// Converts the results of the selections to updates that insert the rows.
fn insertions(tables: &[(&str, Vec<&str>)], results: &Value) -> Result<Value, Malformed> {
    let mut updates = Map::new();
    for (number, (table, _)) in tables.iter().enumerate() {
        let rows = results[number]["rows"].as_array();
        let rows = rows.ok_or_else(|| Malformed::new("a selection has no rows"))?;
        let mut inserted = Map::new();
        for row in rows {
            let uuid = row["_uuid"][1].as_str();
            let uuid = uuid.ok_or_else(|| Malformed::new("a row has no UUID"))?;
            let mut columns = row.clone();
            if let Some(columns) = columns.as_object_mut() {
                columns.remove("_uuid");
            }
            inserted.insert(uuid.to_owned(), json!({ "new": columns }));
        }
        updates.insert((*table).to_owned(), inserted.into());
    }
    Ok(updates.into())
}

fn run_tool(tool: &'static str, arguments: &[&str]) -> Result<Value, MigrationError> {
    let text = run_tool_text(tool, arguments)?;
    serde_json::from_str(&text).map_err(|error| MigrationError::Refused {
        tool,
        message: format!("invalid output: {error}"),
    })
}

fn run_tool_text(tool: &'static str, arguments: &[&str]) -> Result<String, MigrationError> {
    let output = Command::new(tool)
        .args(arguments)
        .output()
        .map_err(|error| MigrationError::Tool { tool, error })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let text = String::from_utf8_lossy(&output.stderr);
            let last = text.lines().last().unwrap_or("failed");
            let own = format!("{tool}: ");
            Err(MigrationError::Refused {
                tool,
                message: last.strip_prefix(&own).unwrap_or(last).to_owned(),
            })
        }
    }
}

/// Reviews the rows.
fn review_rows(database: &Database) -> MigrationReview {
    let mut review = MigrationReview::default();
    let Some(root) = root(database) else {
        review.add(
            "Open_vSwitch",
            Treatment::Refused("the table has no row: run ovs-vsctl init".to_owned()),
        );
        return review;
    };
    let desired = convert_rows(database, &Config::default());
    let mut bridges: Vec<_> = root.named_by(database, "bridges", "Bridge").collect();
    bridges.sort_by_key(|row| row.text("name").map(str::to_owned));
    for bridge in bridges {
        review_bridge(database, bridge, &desired, &mut review);
    }
    for key in &desired.unsupported {
        review.add(
            format!("Open_vSwitch other_config:{key}"),
            Treatment::Ignored("not supported".to_owned()),
        );
    }
    review
}

fn review_bridge(
    database: &Database,
    row: Record<'_>,
    desired: &DesiredState,
    review: &mut MigrationReview,
) {
    let name = row.text("name").unwrap_or_default();
    let subject = format!("bridge {name}");
    let outcome = desired.bridges.get(&row.uuid);
    match outcome.and_then(|outcome| outcome.refused.as_ref()) {
        Some(reason) => review.add(subject.clone(), Treatment::Refused(reason.clone())),
        None => review.add(subject.clone(), Treatment::Applied),
    }
    if matches!(row.text("datapath_type"), None | Some("" | "system")) {
        review.add(
            format!("{subject} datapath_type=system"),
            Treatment::Mapped("the userspace data path, without kernel module".to_owned()),
        );
    }
    for (column, reason) in outcome.into_iter().flat_map(|outcome| &outcome.notes) {
        let treatment = Treatment::Ignored(without_word(reason));
        review.add(format!("{subject} {column}"), treatment);
    }
    for port in row.named_by(database, "ports", "Port") {
        for interface in port.named_by(database, "interfaces", "Interface") {
            let interface_name = interface.text("name").unwrap_or_default();
            let subject = format!("interface {interface_name} of {name}");
            match desired.interfaces.get(&interface.uuid) {
                None => {}
                Some(InterfaceOutcome::Refused(reason)) => {
                    review.add(subject, Treatment::Refused(reason.clone()));
                }
                Some(InterfaceOutcome::Port { notes, .. }) => {
                    review.add(subject.clone(), Treatment::Applied);
                    for note in notes {
                        let (setting, reason) = note.split_once(": ").unwrap_or(("", note));
                        let treatment = Treatment::Ignored(without_word(reason));
                        review.add(format!("{subject} {setting}"), treatment);
                    }
                }
            }
        }
    }
    for controller in row.named_by(database, "controller", "Controller") {
        let target = controller.text("target").unwrap_or_default();
        let subject = format!("controller {target} of {name}");
        let Some(outcome) = desired.controllers.get(&controller.uuid) else {
            continue;
        };
        match &outcome.endpoint {
            Ok(ControllerEndpoint::Target(_) | ControllerEndpoint::Listen(_)) => {
                review.add(subject.clone(), Treatment::Applied);
            }
            Err(reason) => review.add(subject.clone(), Treatment::Refused(reason.clone())),
        }
        for note in &outcome.notes {
            review.add(subject.clone(), Treatment::Ignored(without_word(note)));
        }
    }
}

/// Removes the word of the treatment from a reason.
fn without_word(reason: &str) -> String {
    reason
        .strip_prefix("ignored: ")
        .unwrap_or(reason)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{empty, pairs, put_bridge, put_root, uuid};

    fn database() -> Database {
        let mut database = empty();
        let columns = json!({"other_config": pairs(&[("controller-queue-size", "1")])});
        let ports = [("eth1", json!({})), ("l0", json!({"type": "no-such-type"}))];
        put_bridge(&mut database, "br0", columns, &ports, &["tcp:127.0.0.1"]);
        put_root(&mut database, &["br0"], 1);
        database
    }

    fn treatment(review: &MigrationReview, subject: &str) -> Treatment {
        let mut items = review.items.iter();
        let item = items.find(|item| item.subject == subject);
        item.unwrap_or_else(|| panic!("{subject}:\n{review}"))
            .treatment
            .clone()
    }

    #[test]
    fn review_lists_applied_mapped_ignored_and_refused_settings() {
        let review = review_rows(&database());
        assert_eq!(treatment(&review, "bridge br0"), Treatment::Applied);
        assert_eq!(
            treatment(&review, "interface eth1 of br0"),
            Treatment::Applied
        );
        assert!(matches!(
            treatment(&review, "interface l0 of br0"),
            Treatment::Refused(_)
        ));
        assert!(matches!(
            treatment(&review, "bridge br0 datapath_type=system"),
            Treatment::Mapped(_)
        ));
        assert!(matches!(
            treatment(&review, "bridge br0 other_config:controller-queue-size"),
            Treatment::Ignored(_)
        ));
        assert_eq!(
            treatment(&review, "controller tcp:127.0.0.1 of br0"),
            Treatment::Applied
        );
        assert!(review.has_losses());
        let text = review.to_string();
        assert!(text.ends_with("1 mapped, 1 ignored, 1 refused\n"), "{text}");
    }

    #[test]
    fn empty_database_is_reported() {
        let review = review_rows(&empty());
        assert!(matches!(
            treatment(&review, "Open_vSwitch"),
            Treatment::Refused(_)
        ));
    }

    #[test]
    fn selected_rows_become_insertions() {
        let id = uuid("Manager", "m").to_string();
        let tables = [("Manager", vec!["target"])];
        let rows = json!([{"rows": [{"_uuid": ["uuid", id], "target": "ptcp:6640"}]}]);
        let updates = insertions(&tables, &rows).unwrap();
        assert_eq!(
            updates["Manager"][&id]["new"],
            json!({"target": "ptcp:6640"})
        );
        assert!(insertions(&tables, &json!([{"error": "no"}])).is_err());
    }

    #[test]
    fn source_is_a_server_or_a_file() {
        let parse = |text: &str| text.parse::<MigrationSource>().unwrap();
        assert_eq!(
            parse("unix:/run/db.sock"),
            MigrationSource::Server("unix:/run/db.sock".to_owned())
        );
        assert_eq!(parse("conf.db"), MigrationSource::File("conf.db".into()));
    }
}
