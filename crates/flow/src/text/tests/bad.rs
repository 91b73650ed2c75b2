//! Invalid lines and their error messages.

use std::fmt::Write;
use std::{env, fs};

use super::super::*;

#[test]
fn invalid_flow_is_refused_with_position_and_expected_syntax() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/flows-bad.txt");
    let vectors = fs::read_to_string(path).expect("the file is there");
    let mut answered = String::new();
    let mut command = FlowModCommand::Add;
    for line in vectors.lines().filter(|line| !line.starts_with("! ")) {
        writeln!(answered, "{line}").expect("a string takes all");
        if let Some(word) = line.strip_prefix("@ ") {
            let flow = parse_flow_line(&format!("{word} actions=drop"));
            command = flow
                .or_else(|_| parse_flow_line(word))
                .expect("a command")
                .command;
        } else if let Some(text) = line.strip_prefix("< ") {
            let error = parse_flow(command, text).expect_err(text);
            assert!(
                text[error.at..].starts_with(error.found.trim_end_matches("...")),
                "{text}"
            );
            writeln!(answered, "! {error}").expect("a string takes all");
        }
    }
    if env::var_os("UPDATE").is_some() {
        fs::write(path, answered).expect("the file can be written");
    } else {
        assert_eq!(answered, vectors);
    }
}
