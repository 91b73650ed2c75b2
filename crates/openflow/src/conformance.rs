//! The parts of `docs/conformance.md` that are generated from the tables of this crate.

pub(crate) mod files;
mod limits;
mod meanings;

use std::fmt::{Debug, Display};
use std::ops::RangeInclusive;

use flow::Field;
use flow::field::{FieldInfo, Maskable, WireId};
use testkit::document::{check_part, table};

use crate::action::numbers;
use crate::error_codes::{self, ErrorCode};
use crate::experimenter::NICIRA;
use crate::instruction;
use crate::kinds;
use crate::version::Version;

const DOCUMENT: &str = "docs/conformance.md";

/// The table head: the row's name, then one column for each version.
const BY_VERSION: [&str; 7] = ["", "1.0", "1.1", "1.2", "1.3", "1.4", "1.5"];

// One test, because all parts are in one file.
#[test]
fn conformance_document_matches_tables() {
    messages();
    statistics();
    fields();
    instructions();
    actions();
    meanings::meanings();
    limits::limits();
    errors();
}

/// A table of the number of each kind in each version, one row for each kind.
fn numbers<K: Debug + PartialEq + Copy>(rows: &[(K, RangeInclusive<Version>, String)]) -> String {
    let mut kinds: Vec<K> = Vec::new();
    for (kind, ..) in rows {
        if !kinds.contains(kind) {
            kinds.push(*kind);
        }
    }
    let cell = |kind: K, version: Version| {
        let of_version = rows
            .iter()
            .filter(|row| row.0 == kind && row.1.contains(&version));
        let numbers: Vec<&str> = of_version.map(|row| row.2.as_str()).collect();
        if numbers.is_empty() {
            "-".to_owned()
        } else {
            numbers.join(", ")
        }
    };
    let line = |kind: &K| {
        let cells = Version::ALL.iter().map(|version| cell(*kind, *version));
        [words(kind)].into_iter().chain(cells).collect()
    };
    let lines: Vec<Vec<String>> = kinds.iter().map(line).collect();
    table(&BY_VERSION, &lines)
}

/// Converts `FlowRemoved` to `flow removed`.
fn words(name: &impl Debug) -> String {
    spaced(&format!("{name:?}"))
}

/// Converts a name to lower case with spaces between its words.
fn spaced(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

fn number(number: kinds::TypeNumber) -> String {
    match number {
        kinds::TypeNumber::Standard(number) => number.to_string(),
        kinds::TypeNumber::Nicira(number) => format!("nx {number}"),
        kinds::TypeNumber::Onf(number) => format!("onf {number}"),
    }
}

fn messages() {
    let rows = kinds::MESSAGES.iter();
    let rows: Vec<_> = rows
        .map(|row| (row.kind, row.versions.clone(), number(row.number)))
        .collect();
    check_part(DOCUMENT, "messages", &numbers(&rows));
}

fn statistics() {
    let rows = kinds::MULTIPARTS.iter();
    let rows: Vec<_> = rows
        .map(|row| (row.kind, row.versions.clone(), number(row.number)))
        .collect();
    check_part(DOCUMENT, "statistics", &numbers(&rows));
}

fn instructions() {
    // The numbers begin at one.
    let names = [
        "goto table",
        "write metadata",
        "write actions",
        "apply actions",
        "clear actions",
        "meter",
    ];
    let line = |(number, name): (u16, &str)| {
        let cell = |version: &Version| match version {
            // A rule of 1.0 has a list of actions.
            Version::V10 => "-".to_owned(),
            version if instruction::supported_numbers(*version).any(|known| known == number) => {
                number.to_string()
            }
            _ => "-".to_owned(),
        };
        let cells = Version::ALL.iter().map(cell);
        [name.to_owned()].into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = (1..).zip(names).map(line).collect();
    check_part(DOCUMENT, "instructions", &table(&BY_VERSION, &rows));
}

fn actions() {
    let rows: Vec<_> = numbers::ACTIONS
        .iter()
        .map(|row| {
            let number = match row.number {
                numbers::ActionNumber::Standard(number) => number.to_string(),
                numbers::ActionNumber::Nicira(number) => format!("nx {number}"),
                numbers::ActionNumber::Onf(number) => format!("onf {number}"),
            };
            (row.kind, row.versions.clone(), number)
        })
        .collect();
    check_part(DOCUMENT, "actions", &numbers(&rows));
}

fn fields() {
    let id = |id: Option<WireId>| {
        id.map_or_else(
            || "-".to_owned(),
            |id| match id.experimenter {
                0 => format!("{:#06x}:{}", id.class, id.number),
                whose => format!("{whose:#010x}:{}", id.number),
            },
        )
    };
    let yes = |yes: bool| if yes { "yes" } else { "-" }.to_owned();
    let line = |row: &FieldInfo| {
        vec![
            row.name.to_owned(),
            row.bits.to_string(),
            id(row.oxm),
            id(row.nxm),
            yes(row.maskable == Maskable::Any),
            yes(row.writable),
            words(&row.prerequisite),
        ]
    };
    let rows: Vec<_> = Field::all().map(line).collect();
    let heads = ["", "bits", "OXM", "NXM", "mask", "set", "needs"];
    check_part(DOCUMENT, "fields", &table(&heads, &rows));
}

fn errors() {
    let short = |code: ErrorCode| match code {
        ErrorCode::Plain { kind, code } => format!("{kind}/{code}"),
        ErrorCode::Nicira { kind, code } => format!("nx {kind}/{code}"),
        ErrorCode::Experimenter {
            experimenter: NICIRA,
            kind,
        } => format!("nx {kind}"),
        ErrorCode::Experimenter { kind, .. } => format!("onf {kind}"),
    };
    let line = |refusal: flow::Refusal| {
        let cell = |version: &Version| {
            let code = ErrorCode::of(refusal, *version);
            match code.refusal(*version) == Some(refusal) {
                true => short(code),
                false => format!("({})", short(code)),
            }
        };
        let name: &dyn Display = &refusal;
        let cells = Version::ALL.iter().map(cell);
        [name.to_string()]
            .into_iter()
            .chain(cells)
            .collect::<Vec<_>>()
    };
    let rows: Vec<_> = error_codes::refusals().map(line).collect();
    check_part(DOCUMENT, "errors", &table(&BY_VERSION, &rows));
}
