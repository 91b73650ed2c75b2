//! Groups of the generated suite: number, file, title, and whether the script starts a switch.
//!
//! The suite is one shell script. Each group is between the lines `#AT_START_N` and `#AT_STOP_N`,
//! and begins with a call of `at_fn_group_banner N 'FILE:LINE' "TITLE" ...`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use testbed::Failure;

/// Group of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestGroup {
    /// Number in the suite.
    pub(crate) number: u32,
    /// File, as in `ofproto.at`.
    pub(crate) file: String,
    /// Title, unique within the file.
    pub(crate) title: String,
    /// True if the group waits for long times.
    pub(crate) is_slow: bool,
}

impl TestGroup {
    /// Returns the name in the list of expected failures: `ofproto.at/TITLE`. Numbers and lines
    /// differ between versions of the suite.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.file, self.title)
    }
}

/// Groups that start a switch, in the order of their numbers.
#[derive(Debug)]
pub(crate) struct Testsuite {
    pub(crate) groups: Vec<TestGroup>,
}

/// Beginning of a group's first and last line.
const START: &str = "#AT_START_";
const STOP: &str = "#AT_STOP_";

/// Beginning of the line with number, file and line.
const BANNER: &str = "at_fn_group_banner ";

/// Command that starts the daemon, as the script executes it.
const STARTS_SWITCH: &str = "at_check_trace; ovs-vswitchd -";

/// Program of the build tree that Debian does not package.
const NEEDS_BUILD: &str = "ovstest ";

/// Tests of shell completion, which call a shell's completion functions rather than the switch.
const COMPLETION: &str = "completion.at";

impl Testsuite {
    /// Reads the generated suite.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = fs::read(path).map_err(Failure::to(format!("read {}", path.display())))?;
        Ok(Self::parse(&String::from_utf8_lossy(&text)))
    }

    fn parse(text: &str) -> Self {
        let mut groups = Vec::new();
        let mut titles: BTreeMap<String, u32> = BTreeMap::new();
        for part in text.split(&format!("\n{START}")).skip(1) {
            let body = part.split(&format!("\n{STOP}")).next().unwrap_or(part);
            let Some(mut group) = parse_group(body) else {
                continue;
            };
            let count = titles.entry(group.name()).or_default();
            *count += 1;
            if *count > 1 {
                group.title = format!("{} ({count})", group.title);
            }
            let is_of_switch = body.contains(STARTS_SWITCH) && !body.contains(NEEDS_BUILD);
            if is_of_switch && group.file != COMPLETION {
                groups.push(group);
            }
        }
        Self { groups }
    }

    /// Returns the groups that `words` name, all if there are none; of these every `every`-th that
    /// is not slow, if `every` is above 1.
    pub(crate) fn choose(&self, words: &[String], every: usize) -> Result<Vec<TestGroup>, Failure> {
        let mut chosen = Vec::new();
        let mut is_used = vec![false; words.len()];
        for group in &self.groups {
            let mut matches = words.is_empty();
            for (word, used) in words.iter().zip(&mut is_used) {
                if is_named(group, word) {
                    matches = true;
                    *used = true;
                }
            }
            if matches {
                chosen.push(group.clone());
            }
        }
        if let Some((word, _)) = words.iter().zip(&is_used).find(|(_, used)| !**used) {
            let none = io::Error::from(io::ErrorKind::NotFound);
            return Err(Failure::to(format!(
                "find a group that starts a switch in `{word}`"
            ))(none));
        }
        if every > 1 {
            chosen.retain(|group| !group.is_slow);
            chosen = chosen.into_iter().step_by(every).collect();
        }
        Ok(chosen)
    }
}

/// Commands of groups that advance the simulated clock by minutes, or wait for real seconds.
const SLOW: [&str; 3] = ["time/warp 1000000", "\n   sleep ", "; sleep "];

fn parse_group(body: &str) -> Option<TestGroup> {
    let at = body.find(BANNER)?;
    let banner = &body[at + BANNER.len()..];
    let (number, rest) = banner.split_once(' ')?;
    let place = rest.split('\'').nth(1)?;
    let (file, _) = place.rsplit_once(':')?;
    let title = quoted(rest.split_once('\n')?.1.trim_start())?;
    Some(TestGroup {
        number: number.parse().ok()?,
        file: file.to_owned(),
        title,
        is_slow: SLOW.iter().any(|slow| body.contains(slow)),
    })
}

/// Parses a word in double quotes, in which a backslash escapes.
fn quoted(text: &str) -> Option<String> {
    let mut characters = text.strip_prefix('"')?.chars();
    let mut word = String::new();
    loop {
        match characters.next()? {
            '"' => return Some(word),
            '\\' => word.push(characters.next()?),
            other => word.push(other),
        }
    }
}

/// Returns true if `word` is the group's file, its number, or a range that includes it.
fn is_named(group: &TestGroup, word: &str) -> bool {
    let number = |text: &str| text.parse::<u32>().ok();
    match word.split_once('-') {
        _ if word == group.file => true,
        None => number(word) == Some(group.number),
        Some((first, last)) => match (number(first), number(last)) {
            (Some(first), Some(last)) => (first..=last).contains(&group.number),
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str = "at_x=1
#AT_START_1
at_fn_group_banner 1 'completion.at:21' \\
  \"vsctl-bashcomp\" \"  \" 1
( $at_check_trace; ovs-vswitchd --detach
#AT_STOP_1
#AT_START_2
at_fn_group_banner 2 'ofproto.at:3' \\
  \"ofproto - \\\"echo\\\" request\" \"   \" 54
( $at_check_trace; ovs-vswitchd --detach
#AT_STOP_2
#AT_START_3
at_fn_group_banner 3 'ofproto.at:9' \\
  \"ofproto - \\\"echo\\\" request\" \"   \" 54
( $at_check_trace; ovs-vswitchd --detach
#AT_STOP_3
#AT_START_4
at_fn_group_banner 4 'ofp-print.at:9' \\
  \"no switch\" \"   \" 54
( $at_check_trace; ovs-ofctl ofp-print
#AT_STOP_4
";

    fn numbers(words: &[&str], every: usize) -> Option<Vec<u32>> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let chosen = Testsuite::parse(SUITE).choose(&words, every).ok()?;
        Some(chosen.iter().map(|group| group.number).collect())
    }

    #[test]
    fn groups_that_start_a_switch_have_unique_names() {
        let groups = Testsuite::parse(SUITE).groups;
        let names: Vec<_> = groups.iter().map(TestGroup::name).collect();
        assert_eq!(
            names,
            [
                "ofproto.at/ofproto - \"echo\" request",
                "ofproto.at/ofproto - \"echo\" request (2)"
            ]
        );
    }

    #[test]
    fn words_choose_groups_by_number_range_and_file() {
        assert_eq!(numbers(&[], 1), Some(vec![2, 3]));
        assert_eq!(numbers(&["3"], 1), Some(vec![3]));
        assert_eq!(numbers(&["1-2"], 1), Some(vec![2]));
        assert_eq!(numbers(&["ofproto.at"], 1), Some(vec![2, 3]));
        assert_eq!(numbers(&[], 2), Some(vec![2]));
        assert_eq!(numbers(&["4"], 1), None);
    }
}
