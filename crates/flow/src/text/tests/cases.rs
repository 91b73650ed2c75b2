//! Coverage of the pipeline's case files: each field and each action with a name occurs in one.

use std::fs;
use std::path::Path;

use crate::field::Field;
use crate::text::{action_read, extension_read, names};

/// Returns the lines of all case files that contain rules, groups or actions.
fn commands() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipeline/cases");
    let mut commands = String::new();
    for entry in fs::read_dir(folder).expect("the folder of cases") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|end| end == "case") {
            let text = fs::read_to_string(path).expect("readable");
            let given = |line: &&str| {
                let first = line.split(' ').next().unwrap_or_default();
                ["flow", "flow10", "group", "packet_out"].contains(&first)
            };
            for line in text.lines().filter(given) {
                commands.push_str(&line.to_lowercase());
                commands.push('\n');
            }
        }
    }
    assert!(!commands.is_empty());
    commands
}

/// True if `word` occurs in `text` as a word.
fn says(text: &str, word: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.match_indices(word).any(|(at, _)| {
        let behind = &text[at + word.len()..];
        !text[..at].ends_with(is_word) && !behind.starts_with(is_word)
    })
}

#[test]
fn case_files_cover_all_fields() {
    let commands = commands();
    let missing: Vec<&str> = Field::all()
        .filter(|row| {
            let all = names::all(row.field);
            !all.iter().any(|name| says(&commands, name))
        })
        .map(|row| row.name)
        .collect();
    assert!(missing.is_empty(), "no case speaks of {missing:?}");
}

#[test]
fn case_files_cover_all_actions() {
    let commands = commands();
    let names = action_read::names().chain(extension_read::names());
    let missing: Vec<&str> = names.filter(|name| !says(&commands, name)).collect();
    assert!(missing.is_empty(), "no case speaks of {missing:?}");
}
