//! Names of match sets and probers, on command lines and in records.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The text names nothing of that kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} '{text}'{hint}: one of {known} is wanted")]
pub struct UnknownName {
    kind: &'static str,
    text: String,
    hint: String,
    known: String,
}

/// Which fields the rules of an experiment match on (OpenFlow 1.0). Each set has
/// one rule for either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatchSet {
    /// The ingress port.
    Port,
    /// Both Ethernet addresses.
    Mac,
    /// The Ethernet type and both IPv4 addresses.
    Ip,
    /// All of `Ip`, the protocol and both UDP ports.
    Udp,
    /// All twelve fields.
    Exact,
}

/// How echoes are sent and awaited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prober {
    /// One thread owns both ends and never sleeps: it sees the device, not the
    /// time that a sleeping process takes to wake.
    #[default]
    Solo,
    /// A client and a server that block in their sockets, each in its namespace,
    /// as the published experiment had them.
    Pair,
}

impl MatchSet {
    /// Every set, in the order of the published table.
    pub const ALL: [Self; 5] = [Self::Port, Self::Mac, Self::Ip, Self::Udp, Self::Exact];

    /// The name it is asked for by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Mac => "mac",
            Self::Ip => "ip",
            Self::Udp => "udp",
            Self::Exact => "exact",
        }
    }
}

impl Prober {
    /// Every prober.
    pub const ALL: [Self; 2] = [Self::Solo, Self::Pair];

    /// The name it is asked for by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Solo => "solo",
            Self::Pair => "pair",
        }
    }
}

impl fmt::Display for MatchSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Prober {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MatchSet {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        find("match set", text, &Self::ALL)
    }
}

impl FromStr for Prober {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        find("prober", text, &Self::ALL)
    }
}

impl UnknownName {
    /// No `kind` is named `text`; these are known.
    pub fn new<'a>(
        kind: &'static str,
        text: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        Self {
            kind,
            text: text.to_owned(),
            hint: nearest(text, known.iter().copied()),
            known: known.join(", "),
        }
    }
}

fn find<T: Copy + fmt::Display>(
    kind: &'static str,
    text: &str,
    known: &[T],
) -> Result<T, UnknownName> {
    let names: Vec<String> = known.iter().map(T::to_string).collect();
    let position = names.iter().position(|name| name == text);
    let unknown = || UnknownName::new(kind, text, names.iter().map(String::as_str));
    position.map(|index| known[index]).ok_or_else(unknown)
}

/// How near a name must be to be meant: so many letters put in, left out or exchanged.
const SLIPS_MAX: usize = 3;

/// `, did you mean 'x'?` with the nearest of `known`, if any is near enough to `text`.
#[must_use]
pub fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let distances = known.into_iter().map(|name| (slips(text, name), name));
    let nearest = distances.min_by_key(|(distance, _)| *distance);
    let near = |distance: usize| distance <= SLIPS_MAX && distance < text.len();
    match nearest {
        Some((distance, name)) if near(distance) => format!(" (did you mean '{name}'?)"),
        _ => String::new(),
    }
}

/// The least number of letters to put in, leave out or exchange between two words
/// (Levenshtein, 1965).
fn slips(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (column, candidate) in other.iter().enumerate() {
            let exchanged = diagonal + usize::from(*candidate != letter);
            diagonal = row[column + 1];
            row[column + 1] = exchanged.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for set in MatchSet::ALL {
            assert_eq!(set.to_string().parse(), Ok(set));
        }
        for prober in Prober::ALL {
            assert_eq!(prober.to_string().parse(), Ok(prober));
        }
    }

    #[test]
    fn records_use_the_same_names() {
        for set in MatchSet::ALL {
            assert_eq!(serde_json::to_string(&set).unwrap(), format!("\"{set}\""));
        }
    }

    #[test]
    fn unknown_name_error_lists_known_names() {
        let told = "xyz".parse::<Prober>().unwrap_err().to_string();
        assert_eq!(
            told,
            "there is no prober 'xyz': one of solo, pair is wanted"
        );
    }

    #[test]
    fn slips_are_counted() {
        assert_eq!(slips("echo", "echo"), 0);
        assert_eq!(slips("ecko", "echo"), 1);
        assert_eq!(slips("", "echo"), 4);
        assert_eq!(slips("kitten", "sitting"), 3);
    }
}
