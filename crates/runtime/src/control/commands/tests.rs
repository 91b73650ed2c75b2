//! Checks of the table of commands.

use std::collections::BTreeSet;

use super::*;

#[test]
fn commands_have_unique_names_and_matching_usages() {
    let mut names = BTreeSet::new();
    for row in all(DummyMode::Typed) {
        assert!(names.insert(row.name), "{} is there twice", row.name);
        assert!(row.least <= row.most, "{}", row.name);
        assert_eq!(row.usage.is_empty(), row.most == 0, "{}", row.name);
    }
}

#[test]
fn command_errors_match_open_vswitch() {
    let wrong = |name, arguments| Command::find(name, arguments, DummyMode::None).err();
    let error = |words: &str| Some(words.to_owned());
    assert_eq!(
        wrong("dance", 0),
        error(
            "\"dance\" is not a valid command (use \"list-commands\" to see a list of valid commands)"
        )
    );
    assert_eq!(
        wrong("fdb/show", 0),
        error("\"fdb/show\" command requires at least 1 arguments")
    );
    assert_eq!(
        wrong("version", 1),
        error("\"version\" command takes at most 0 arguments")
    );
    assert_eq!(wrong("fdb/show", 1), None);
    assert_eq!(wrong("vlog/set", 90), None);
    assert!(wrong("time/stop", 0).is_some());
    assert!(Command::find("time/stop", 0, DummyMode::Typed).is_ok());
}
