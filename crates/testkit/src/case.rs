//! Test cases of the pipeline: timed scripts with the expected effects, run by the interpreter, by
//! the interpreter with compiled lookups, and by the fast path.
//!
//! ```text
//! # The copy that leaves shows the new TTL; the rule counts the frame as received.
//! ports 1 2
//! flow add table=0,priority=10,in_port=1,ip actions=dec_ttl,output:2
//!
//! < 1  eth / ipv4(ttl=64) / tcp
//!    > 2  eth / ipv4(ttl=63) / tcp
//!    = flow table=0,priority=10,in_port=1,ip packets=1 bytes=54
//! +10s
//! ```
//!
//! Events begin at the left margin:
//!
//! | line | meaning |
//! ---|---|
//! | `ports 1 2(no_flood) local` | these ports exist, with their configuration and state bits |
//! | `port 2(down)`, `port 2 gone` | a port changes, or is removed |
//! | `miss controller`, `miss drop` | sets the table-miss policy |
//! | `table_miss TABLE continue` (or `controller`, `drop`, `default`) | sets the treatment of misses in a table, or `all` |
//! | `fragments normal`, `drop`, `nx_match`, `reassemble` | sets the handling of IP fragments |
//! | `standalone on`, `standalone off` | enters or leaves fail-standalone mode |
//! | `flow add ..`, `modify`, `modify_strict`, `delete`, `delete_strict` | a flow-mod with the semantics of OpenFlow 1.3 |
//! | `flow10 add ..`, `flow11 add ..` | the same with the semantics of OpenFlow 1.0 or 1.1 |
//! | `group add ..`, `modify`, `delete` | a group-mod |
//! | `meter add ..`, `modify`, `delete` | a meter-mod |
//! | `tlv add 0xffff,0x01,4->tun_metadata0`, `delete`, `clear` | changes the TLV map of tunnel options: class, type, length, field |
//! | `packet_out in_port actions \| frame` | a packet-out |
//! | `resume`, `resume reg0=5` | resumes the last paused frame, with changed registers |
//! | `< 1  frame` | a frame arrives (or several: `< 1 x 3  frame`) |
//! | `+10s`, `+500ms` | time passes, and rules expire |
//! | `dump`, `dump filter` | dumps the rules |
//! | `groups`, `meters` | dumps the groups or meters |
//!
//! The effects of an event follow it, indented, complete and in order:
//!
//! | line | meaning |
//! ---|---|
//! | `> 2  frame`, `> normal  frame` | a frame leaves |
//! | `! packet_in ..`, `! flow_removed ..` | a message to the controllers |
//! | `! refused reason` | a refusal, sent to the controller as an error message |
//! | `x reason` | a frame, or one copy of it, is dropped |
//! | `= flow .. packets=1 bytes=54` | the named counters of one rule |
//! | `= table 0 lookups=1 matched=1 active=1` | counters of a table |
//! | `= group 1 references=1 packets=1 bytes=54 bucket0=1` | counters of a group, and packets of its buckets |
//! | `= meter 1 flows=1 packets=1 bytes=54 band0=1` | counters of a meter, and packets of its bands |
//! | `= ..` | below `dump`, `groups` or `meters`: a rule, group or meter |
//!
//! Frames are stacks ([`packet::build::Stack`]); flows, groups and meters have the syntax of
//! `ovs-ofctl`. With `UPDATE=1` in the environment, the expected effects in the file are replaced
//! by the actual ones; the difference is reviewed as code.

pub mod counts;
pub mod notation;
mod player;
mod script;

use std::fs;
use std::path::Path;

pub use script::{CaseEvent, CountQuery};

use player::{CaseEngine, Player};
use script::{CaseLine, read};

/// Runs the script in `text` with every engine and compares the actual effects with the expected
/// ones.
///
/// # Errors
/// A syntax error, or the first difference, with the trace of the frame through the tables.
pub fn check(text: &str) -> Result<(), String> {
    CaseEngine::ALL.into_iter().try_for_each(|engine| {
        check_one(text, engine).map_err(|difference| format!("{engine:?}: {difference}"))
    })
}

fn check_one(text: &str, engine: CaseEngine) -> Result<(), String> {
    let transcript = play(text, engine)?;
    let Some(index) = (0..transcript.expected.len().max(transcript.actual.len()))
        .find(|index| transcript.expected.get(*index) != transcript.actual.get(*index))
    else {
        return Ok(());
    };
    let line = |lines: &[String]| lines.get(index).cloned().unwrap_or_default();
    let before = transcript.actual[..index]
        .iter()
        .rfind(|line| !line.starts_with(' '));
    Err(format!(
        "below `{}`\n  expected: {}\n  actual:   {}\n{}",
        before.map_or("", String::as_str),
        line(&transcript.expected).trim(),
        line(&transcript.actual).trim(),
        transcript.trace_at(index),
    ))
}

/// Runs every `.case` file in `folder`. With `UPDATE=1`, rewrites the files whose expected effects
/// differ from the actual ones.
///
/// # Panics
/// If the folder contains no cases, or a file cannot be read or does not pass.
pub fn run_folder(folder: &Path) {
    let entries = fs::read_dir(folder).expect("the folder of cases is readable");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let mut cases: Vec<_> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "case")
        })
        .collect();
    cases.sort();
    assert!(!cases.is_empty(), "no cases in {}", folder.display());
    let update = std::env::var("UPDATE").is_ok_and(|value| value == "1");
    let mut failures = Vec::new();
    for path in cases {
        let text = fs::read_to_string(&path).expect("readable");
        match play(&text, CaseEngine::Interpreter) {
            Ok(transcript) if update => {
                fs::write(&path, transcript.actual.join("\n") + "\n").expect("writable");
            }
            _ => {
                let name = path.file_name().unwrap_or_default().display().to_string();
                let difference = check(&text).err();
                failures.extend(difference.map(|difference| format!("{name}: {difference}")));
            }
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
}

/// A system under test that can play a script.
pub trait Subject {
    /// Plays an event and returns its effects in the notation of a script.
    ///
    /// # Errors
    /// The subject does not support the event.
    fn play(&mut self, event: &CaseEvent) -> Result<Vec<String>, String>;

    /// Answers a count query in the notation of the query.
    ///
    /// # Errors
    /// The subject has no such counter.
    fn count(&mut self, count: &CountQuery) -> Result<String, String>;
}

/// An event of a script with its expected and actual effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayStep {
    /// The line of the event.
    pub event: String,
    /// The expected effects: the lines below the event.
    pub expected: Vec<String>,
    /// The actual effects.
    pub actual: Vec<String>,
}

/// Plays the whole script in `text` on `subject`.
///
/// # Errors
/// A syntax error, or an event that the subject does not support.
pub fn replay(text: &str, subject: &mut impl Subject) -> Result<Vec<ReplayStep>, String> {
    let mut steps: Vec<ReplayStep> = Vec::new();
    for text in text.lines() {
        let with_line = |message: String| format!("{message}: {text}");
        match read(text).map_err(with_line)? {
            CaseLine::Remark => {}
            CaseLine::Event(event) => steps.push(ReplayStep {
                event: text.to_owned(),
                expected: Vec::new(),
                actual: subject.play(&event).map_err(with_line)?,
            }),
            CaseLine::Effect(effect) => {
                let step = steps
                    .last_mut()
                    .ok_or_else(|| with_line("no event before".to_owned()))?;
                step.expected.push(effect);
            }
            CaseLine::Count(count) => {
                let actual = subject.count(&count).map_err(with_line)?;
                let question = text.trim().trim_start_matches('=');
                let step = steps
                    .last_mut()
                    .ok_or_else(|| with_line("no event before".to_owned()))?;
                step.expected.push(notation::effect_line("=", question));
                step.actual.push(actual);
            }
        }
    }
    Ok(steps)
}

/// The expected and the actual lines of a script.
struct CaseTranscript {
    expected: Vec<String>,
    actual: Vec<String>,
    /// Traces of frames, each with the index of its first line in `actual`.
    traces: Vec<(usize, String)>,
}

impl CaseTranscript {
    fn trace_at(&self, index: usize) -> &str {
        let before = self.traces.iter().rfind(|(line, _)| *line <= index);
        before.map_or("", |(_, trace)| trace)
    }
}

fn play(text: &str, engine: CaseEngine) -> Result<CaseTranscript, String> {
    let mut player = Player::new(engine);
    let mut transcript = CaseTranscript {
        expected: Vec::new(),
        actual: Vec::new(),
        traces: Vec::new(),
    };
    for (number, text) in text.lines().enumerate() {
        let with_line = |message: String| format!("line {}: {message}: {text}", number + 1);
        match read(text).map_err(with_line)? {
            CaseLine::Remark => {
                transcript.expected.push(text.to_owned());
                transcript.actual.push(text.to_owned());
            }
            CaseLine::Event(event) => {
                transcript.expected.push(text.to_owned());
                transcript.actual.push(text.to_owned());
                transcript
                    .traces
                    .push((transcript.actual.len(), String::new()));
                let (effects, trace) = player.play(&event).map_err(with_line)?;
                transcript.actual.extend(effects);
                if let Some((_, last)) = transcript.traces.last_mut() {
                    *last = trace;
                }
            }
            CaseLine::Effect(effect) => transcript.expected.push(effect),
            CaseLine::Count(count) => {
                let question = text.trim().trim_start_matches('=');
                transcript
                    .expected
                    .push(notation::effect_line("=", question));
                transcript
                    .actual
                    .push(player.count(&count).map_err(with_line)?);
            }
        }
    }
    Ok(transcript)
}
