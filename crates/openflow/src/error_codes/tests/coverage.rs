//! Checks that the switch uses each refusal, and that a test case, a vector or a test shows it by
//! our name or by Open vSwitch's. Refusals that the switch never sends are listed with the reason.

use flow::Refusal;

use crate::conformance::files::texts;
use crate::error_codes::refusals;
use crate::print::name_of;

/// Errors of the specification that this switch never sends.
#[rustfmt::skip]
const UNSENT: &[(Refusal, &str)] = { use Refusal::*; &[
    (HelloPermission,                "any peer that connects is accepted"),
    (RequestBufferEmpty,             "packets are not buffered, so every buffer id is unknown"),
    (ActionPermission,               "a controller that may change rules may use every action"),
    (ActionBadQueue,                 "an unknown queue uses the port's default queue"),
    (InstructionBadMetadata,         "all bits of metadata can be written"),
    (InstructionBadMetadataMask,     "all bits of metadata can be written"),
    (InstructionBadExperimenterType, "no experimenter instructions are supported"),
    (InstructionPermission,          "a controller that may change rules may use all instructions"),
    (MatchBadTag,                    "a tag in a match of 1.0 or 1.1 is an ordinary value"),
    (MatchBadDlAddressMask,          "all bits of Ethernet addresses can be masked"),
    (MatchBadNwAddressMask,          "all bits of network addresses can be masked"),
    (MatchPermission,                "a controller that may change rules may match every field"),
    (FlowModUnknown,                 "a more specific error always exists"),
    (FlowModPermission,              "a slave receives the error of its role"),
    (FlowModUnsupported,             "an action is refused with its own error"),
    (GroupModWeightUnsupported,      "buckets may have any weights"),
    (GroupModPermission,             "a slave receives the error of its role"),
    (PortModBadAdvertise,            "the advertised features of a port are ignored"),
    (PortModPermission,              "a slave receives the error of its role"),
    (TableModPermission,             "a slave receives the error of its role"),
    (QueuePermission,                "every controller may request every queue"),
    (ConfigBadLength,                "any miss_send_len is supported"),
    (ConfigPermission,               "a slave may set its own configuration"),
    (RoleUnsupported,                "roles are supported"),
    (MeterModUnknown,                "a more specific error always exists"),
    (TableFeaturesBadMetadata,       "all bits of metadata can be matched and written"),
] };

/// The text of the project's files: the source of the switch, and the evidence.
#[derive(Default)]
struct SourceTexts {
    code: String,
    tests: String,
}

impl SourceTexts {
    fn read() -> Self {
        let mut files = Self::default();
        for (path, text) in texts(&["crates", "tests", "suites"]) {
            files.take(&path.to_string_lossy(), &text);
        }
        files
    }

    fn take(&mut self, name: &str, text: &str) {
        // Files that only list names.
        let lists = [
            "flow/src/refusal.rs",
            "error_codes.rs",
            "error_codes/exceptions.rs",
            "coverage.rs",
            "error_names.rs",
            "refusal_names.rs",
            "conformance/limits.rs",
        ];
        if lists.iter().any(|list| name.ends_with(list)) {
            return;
        }
        if !name.ends_with(".rs") {
            let lines = text.lines().map(str::trim);
            let refused = lines.filter(|line| line.starts_with("! "));
            self.tests.extend(refused.map(|line| format!("{line}\n")));
        } else if name.contains("/tests/") || name.ends_with("tests.rs") {
            self.tests += text;
        } else {
            let parts = text.split_once("#[cfg(test)]\nmod tests {");
            let (code, tests) = parts.unwrap_or((text, ""));
            self.code += code;
            self.tests += tests;
        }
    }
}

/// Returns true if `text` contains `word` as a whole word.
fn has_word(text: &str, word: &str) -> bool {
    let continues = |letter: Option<char>| letter.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !continues(before.chars().next_back()) && !continues(after.chars().next())
    })
}

/// Converts `RoleBad` to `role_bad`, the form in test cases.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

#[test]
fn refusals_are_sent_and_tested_or_listed_as_unsent() {
    let files = SourceTexts::read();
    let mut wrong = Vec::new();
    for refusal in refusals() {
        let name = format!("{refusal:?}");
        let listed = UNSENT
            .iter()
            .any(|(unsent, why)| *unsent == refusal && !why.is_empty());
        let given = has_word(&files.code, &name);
        let shown = [name.clone(), snake(&name), name_of(refusal).to_owned()]
            .iter()
            .any(|name| has_word(&files.tests, name));
        match (listed, given, shown) {
            (true, false, _) | (false, true, true) => {}
            (true, true, _) => wrong.push(format!("{name} is sent, but listed as unsent")),
            (false, false, _) => wrong.push(format!("{name} is never sent")),
            (false, true, false) => wrong.push(format!("no test shows {name}")),
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
