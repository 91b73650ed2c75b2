//! The text form of flows: everything that parses is printed as text that parses as the same value,
//! and no text makes the parser panic.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use flow::text::{ParseError, parse_actions, parse_flow, parse_flow_stats_request};
use flow::{FlowMod, FlowModCommand, Instructions, Match};

/// Parses `data` with every text parser.
///
/// # Panics
/// If printed text does not parse as the same value, or an error position is outside the text.
pub fn flow_text(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    round_trip::<FlowMod>(text);
    round_trip::<Match>(text);
    round_trip::<Instructions>(text);
    for command in [
        FlowModCommand::Modify,
        FlowModCommand::Delete,
        FlowModCommand::DeleteStrict,
    ] {
        let flow = checked(text, parse_flow(command, text));
        assert!(flow.is_none_or(|flow| flow.to_string().parse() == Ok(flow)));
    }
    checked(text, parse_flow_stats_request(text));
    checked(text, parse_actions(text));
}

/// Parses `text`, prints the value, and parses it again.
fn round_trip<T>(text: &str)
where
    T: FromStr<Err = ParseError> + Display + PartialEq + Debug,
{
    if let Some(read) = checked(text, text.parse::<T>()) {
        let printed = read.to_string();
        let again = printed.parse::<T>();
        assert_eq!(again.as_ref(), Ok(&read), "{printed}");
        assert_eq!(again.map(|again| again.to_string()), Ok(printed));
    }
}

/// Returns the parsed value. Checks that an error points into `text`.
fn checked<T>(text: &str, result: Result<T, ParseError>) -> Option<T> {
    match result {
        Ok(read) => Some(read),
        Err(error) => {
            let rest = text.get(error.at..).expect("an error points into the text");
            assert!(rest.starts_with(error.found.trim_end_matches("...")));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_vectors_round_trip_as_text() {
        for text in [
            include_str!("../../../flow/vectors/flows.txt"),
            include_str!("../../../flow/vectors/flows-bad.txt"),
        ] {
            for line in text.lines() {
                flow_text(line.get(2..).unwrap_or("").as_bytes());
            }
        }
    }
}
