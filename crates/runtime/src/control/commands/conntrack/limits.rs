//! Limits of zones: their text and their changes (`dpctl/ct-set-limits`, `ct-get-limits`).

use std::fmt::Write;

use conntrack::{Conntrack, CtZone};

use super::number;

/// Limits that a command sets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LimitChanges {
    default: Option<u32>,
    zones: Vec<(CtZone, u32)>,
}

impl LimitChanges {
    /// Parses limits: `default=LIMIT` first, if at all, then `zone=ZONE,limit=LIMIT`.
    pub(super) fn parse(words: &[&str]) -> Result<Self, String> {
        let (default, zones) = match words {
            [first, zones @ ..] if first.starts_with("default=") => {
                let limit = number(first, "default=").ok_or("invalid default limit")?;
                (Some(limit), zones)
            }
            zones => (None, zones),
        };
        Ok(Self {
            default,
            zones: zones
                .iter()
                .map(|word| zone_limit(word))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Sets the limits.
    pub(super) fn apply(&self, tracker: &Conntrack) {
        if self.default.is_some() {
            tracker.set_default_zone_limit(self.default);
        }
        for (zone, limit) in &self.zones {
            tracker.set_zone_limit(*zone, Some(*limit));
        }
    }
}

/// Parses `zone=ZONE,limit=LIMIT`, in any order.
fn zone_limit(word: &str) -> Result<(CtZone, u32), String> {
    let (mut zone, mut limit): (Option<u16>, Option<u32>) = (None, None);
    for part in word.split(',').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if value.is_empty() {
            return Err(format!("field {key} missing value"));
        }
        let malformed = || format!("failed to parse field {key}");
        match key {
            "zone" => zone = Some(value.parse().map_err(|_| malformed())?),
            "limit" => limit = Some(value.parse().map_err(|_| malformed())?),
            _ => return Err(format!("invalid zone limit field: {key}")),
        }
    }
    let both = zone.map(CtZone).zip(limit);
    both.ok_or_else(|| "failed to parse zone limit".to_owned())
}

/// Parses `zone=N1[,N2]...`.
pub(super) fn parse_zones(word: &str) -> Result<Vec<CtZone>, String> {
    let list = word.strip_prefix("zone=");
    let list = list.ok_or_else(|| format!("invalid argument {word}"))?;
    let zones = list.split(',').map(|zone| zone.parse().ok().map(CtZone));
    let zones: Option<_> = zones.collect();
    zones.ok_or_else(|| "invalid zone".to_owned())
}

/// Formats the limits and counts of these zones, or of all with a limit of their own. No limit is
/// zero, as in Open vSwitch.
pub(super) fn format_limits(tracker: &Conntrack, zones: Option<&[CtZone]>) -> String {
    let default = tracker.default_zone_limit().unwrap_or(0);
    let mut text = format!("default limit={default}");
    let write = |zone: CtZone| {
        let limit = tracker.zone_limit(zone).unwrap_or(default);
        let (CtZone(number), count) = (zone, tracker.zone_len(zone));
        write!(text, "\nzone={number},limit={limit},count={count}").expect("a string has room");
    };
    match zones {
        Some(zones) => zones.iter().copied().for_each(write),
        None => (0..=u16::MAX)
            .map(CtZone)
            .filter(|zone| tracker.zone_limit(*zone).is_some())
            .for_each(write),
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use base::Instant;
    use conntrack::{
        CtCommit, CtMetadata, CtPacket, CtRequest, HashSeed, PacketFacts, PacketTuple,
        TransportFacts,
    };

    use super::*;

    #[test]
    fn limits_of_zones_are_set_and_listed() {
        let tracker = Conntrack::new(HashSeed([1, 2]), 10);
        assert_eq!(format_limits(&tracker, None), "default limit=0\n");
        let changes = LimitChanges::parse(&["default=3", "zone=1,limit=5", "limit=2,zone=0"]);
        changes.expect("three limits").apply(&tracker);
        let packet = CtPacket {
            facts: Some(PacketFacts {
                tuple: PacketTuple::default(),
                transport: TransportFacts::Other,
            }),
            payload: &[],
            metadata: CtMetadata::default(),
        };
        let commit = CtRequest {
            zone: CtZone(1),
            commit: CtCommit::Commit,
            ..CtRequest::default()
        };
        tracker.track(&packet, &commit, Instant::from_secs(1));
        let expected = "default limit=3\nzone=0,limit=2,count=0\nzone=1,limit=5,count=1\n";
        assert_eq!(format_limits(&tracker, None), expected);
        let zones = parse_zones("zone=7,1").expect("two zones");
        let expected = "default limit=3\nzone=7,limit=3,count=0\nzone=1,limit=5,count=1\n";
        assert_eq!(format_limits(&tracker, Some(&zones)), expected);
    }

    #[test]
    fn malformed_limits_of_zones_are_refused() {
        for (word, problem) in [
            ("zone=1", "failed to parse zone limit"),
            ("zone=70000,limit=1", "failed to parse field zone"),
            ("limit=1,zone=1x", "failed to parse field zone"),
            ("zone=1,limit=", "field limit missing value"),
            ("zone=1,count=1", "invalid zone limit field: count"),
            ("default=", "invalid default limit"),
        ] {
            assert_eq!(
                LimitChanges::parse(&[word]),
                Err(problem.to_owned()),
                "{word}"
            );
        }
        assert_eq!(parse_zones("7"), Err("invalid argument 7".to_owned()));
        assert_eq!(parse_zones("zone=1,x"), Err("invalid zone".to_owned()));
    }
}
