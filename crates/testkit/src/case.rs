//! Cases: timed scripts that say what the tables mean, run by the interpreter as it
//! walks along the rules, and as it looks into the compiled tables.
//!
//! ```text
//! # The copy that leaves shows the new TTL; the rule counts the frame that came.
//! ports 1 2
//! flow add table=0,priority=10,in_port=1,ip actions=dec_ttl,output:2
//!
//! < 1  eth / ipv4(ttl=64) / tcp
//!      > 2  eth / ipv4(ttl=63) / tcp
//!      = flow table=0,priority=10,in_port=1,ip packets=1 bytes=54
//! +10s
//! ```
//!
//! What happens to the switch stands at the margin:
//!
//! | line | meaning |
//! |---|---|
//! | `ports 1 2(no_flood) local` | these ports exist, with what is barred or down |
//! | `port 2(down)`, `port 2 gone` | a port changes, or goes |
//! | `miss controller`, `miss drop` | what a miss comes to |
//! | `fragments normal`, `drop`, `nx_match`, `reassemble` | what becomes of fragments |
//! | `standalone on`, `standalone off` | the switch is on its own, or not |
//! | `flow add ..`, `modify`, `modify_strict`, `delete`, `delete_strict` | a flow-mod, as OpenFlow 1.3 means it |
//! | `flow10 add ..`, `flow11 add ..` | the same, as OpenFlow 1.0 or 1.1 means it |
//! | `group add ..`, `modify`, `delete` | a group-mod |
//! | `meter add ..`, `modify`, `delete` | a meter-mod |
//! | `tlv add 0xffff,0x01,4->tun_metadata0`, `delete`, `clear` | the map of tunnel options changes: class, type, length, field |
//! | `packet_out in_port actions \| frame` | a packet-out |
//! | `resume`, `resume reg0=5` | the frame that began to wait last goes on, with other registers |
//! | `< 1  frame` | a frame comes in (or several: `< 1 x 3  frame`) |
//! | `+10s`, `+500ms` | time passes, and rules expire |
//! | `dump`, `dump filter` | the rules are asked for |
//! | `groups`, `meters` | they are asked for |
//!
//! What comes of it stands below, indented, complete and in order:
//!
//! | line | meaning |
//! |---|---|
//! | `> 2  frame`, `> normal  frame` | a frame leaves |
//! | `! packet_in ..`, `! flow_removed ..` | the controllers are told |
//! | `! refused reason` | they are refused something |
//! | `x reason` | a frame, or one copy of it, is dropped |
//! | `= flow .. packets=1 bytes=54` | counts of one rule, those that are named |
//! | `= table 0 lookups=1 matched=1 active=1` | counts of a table |
//! | `= group 1 references=1 packets=1 bytes=54 bucket0=1` | counts of a group, and frames of its buckets |
//! | `= meter 1 flows=1 packets=1 bytes=54 band0=1` | counts of a meter, and frames of its bands |
//! | `= ..` | below `dump`, `groups` or `meters`: a rule, group or meter |
//!
//! Frames are stacks ([`packet::build::Stack`]); flows, groups and meters the text of `ovs-ofctl`.
//! With `UPDATE=1` in the environment a file is rewritten to say what happens;
//! the difference is reviewed as code.

pub mod counts;
pub mod notation;
mod player;
mod script;

use std::fs;
use std::path::Path;

pub use script::{CaseEvent, CountQuery};

use player::{CaseEngine, Player};
use script::{CaseLine, read};

/// Runs the script in `text`, walked and compiled, and asks whether it says what happens.
///
/// # Errors
/// A line that is not understood, or the first difference, told with the frame's
/// way through the tables.
pub fn check(text: &str) -> Result<(), String> {
    CaseEngine::ALL.into_iter().try_for_each(|engine| {
        check_one(text, engine).map_err(|difference| format!("{engine:?}: {difference}"))
    })
}

fn check_one(text: &str, engine: CaseEngine) -> Result<(), String> {
    let played = play(text, engine)?;
    let Some(index) = (0..played.expected.len().max(played.actual.len()))
        .find(|index| played.expected.get(*index) != played.actual.get(*index))
    else {
        return Ok(());
    };
    let line = |lines: &[String]| lines.get(index).cloned().unwrap_or_default();
    let before = played.actual[..index]
        .iter()
        .rfind(|line| !line.starts_with(' '));
    Err(format!(
        "below `{}`\n  the case says: {}\n  what happens:  {}\n{}",
        before.map_or("", String::as_str),
        line(&played.expected).trim(),
        line(&played.actual).trim(),
        played.trace_at(index),
    ))
}

/// Runs every `.case` file in `folder`. With `UPDATE=1` rewrites those that say
/// something else than what happens.
///
/// # Panics
/// If a file cannot be read, or does not say what happens, or there is none.
pub fn run_folder(folder: &Path) {
    let entries = fs::read_dir(folder).expect("the folder of cases");
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
            Ok(played) if update => {
                fs::write(&path, played.actual.join("\n") + "\n").expect("writable");
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

/// Something that a script happens to.
pub trait Subject {
    /// Lets the event happen, and tells what comes of it, in the words of a script.
    ///
    /// # Errors
    /// It cannot happen to this subject.
    fn play(&mut self, event: &CaseEvent) -> Result<Vec<String>, String>;

    /// Answers a count, in the words of the question.
    ///
    /// # Errors
    /// It cannot be counted here.
    fn count(&mut self, count: &CountQuery) -> Result<String, String>;
}

/// An event of a script, what the script says comes of it, and what does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayStep {
    /// The event's line.
    pub event: String,
    /// The lines below it.
    pub expected: Vec<String>,
    /// What came of it.
    pub actual: Vec<String>,
}

/// Lets all of the script in `text` happen to `subject`.
///
/// # Errors
/// A line that is not understood, or an event that cannot happen to this subject.
pub fn replay(text: &str, subject: &mut impl Subject) -> Result<Vec<ReplayStep>, String> {
    let mut steps: Vec<ReplayStep> = Vec::new();
    for text in text.lines() {
        let wrong = |what: String| format!("{what}: {text}");
        match read(text).map_err(wrong)? {
            CaseLine::Remark => {}
            CaseLine::Event(event) => steps.push(ReplayStep {
                event: text.to_owned(),
                expected: Vec::new(),
                actual: subject.play(&event).map_err(wrong)?,
            }),
            CaseLine::Effect(effect) => {
                let step = steps
                    .last_mut()
                    .ok_or_else(|| wrong("no event before".to_owned()))?;
                step.expected.push(effect);
            }
            CaseLine::Count(count) => {
                let actual = subject.count(&count).map_err(wrong)?;
                let question = text.trim().trim_start_matches('=');
                let step = steps
                    .last_mut()
                    .ok_or_else(|| wrong("no event before".to_owned()))?;
                step.expected.push(notation::effect_line("=", question));
                step.actual.push(actual);
            }
        }
    }
    Ok(steps)
}

/// A script beside what happened.
struct CaseTranscript {
    expected: Vec<String>,
    actual: Vec<String>,
    /// How frames went, by the line of what happened.
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
    let mut played = CaseTranscript {
        expected: Vec::new(),
        actual: Vec::new(),
        traces: Vec::new(),
    };
    for (number, text) in text.lines().enumerate() {
        let wrong = |what: String| format!("line {}: {what}: {text}", number + 1);
        match read(text).map_err(wrong)? {
            CaseLine::Remark => {
                played.expected.push(text.to_owned());
                played.actual.push(text.to_owned());
            }
            CaseLine::Event(event) => {
                played.expected.push(text.to_owned());
                played.actual.push(text.to_owned());
                played.traces.push((played.actual.len(), String::new()));
                let (effects, trace) = player.play(&event).map_err(wrong)?;
                played.actual.extend(effects);
                if let Some((_, last)) = played.traces.last_mut() {
                    *last = trace;
                }
            }
            CaseLine::Effect(effect) => played.expected.push(effect),
            CaseLine::Count(count) => {
                let question = text.trim().trim_start_matches('=');
                played.expected.push(notation::effect_line("=", question));
                played.actual.push(player.count(&count).map_err(wrong)?);
            }
        }
    }
    Ok(played)
}
