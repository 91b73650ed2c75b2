//! Facts of a match: the parse depth that its fields need, and if some need further checks. Every
//! flow-mod needs them, so they are computed by one pass over the encoded match with a table.

use flow::field::Depth;
use flow::{Field, Match, TermHead, TermLayout};

/// A bit for each fact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MatchFacts(u8);

impl MatchFacts {
    const NETWORK: u8 = 1 << 0;
    const TRANSPORT: u8 = 1 << 1;
    const OPTION: u8 = 1 << 2;
    const INTERNAL: u8 = 1 << 3;

    /// Returns the facts of `matching`.
    pub(crate) fn of(matching: &Match) -> Self {
        let (bytes, mut bits, mut at) = (matching.as_bytes(), 0, 0);
        while let Some(head) = bytes.get(at) {
            let row = ROWS[usize::from(*head)];
            if row.length == 0 {
                // Bytes after all terms encode tunnel options.
                bits |= if *head == 0 { 0 } else { Self::OPTION };
                break;
            }
            bits |= row.bits;
            at += usize::from(row.length);
        }
        Self(bits)
    }

    /// Returns the parse depth.
    pub(crate) const fn depth(self) -> Depth {
        match (self.0 & Self::TRANSPORT, self.0 & Self::NETWORK) {
            (0, 0) => Depth::Link,
            (0, _) => Depth::Network,
            _ => Depth::Transport,
        }
    }

    /// True if a tunnel option is matched.
    pub(crate) const fn has_options(self) -> bool {
        self.0 & Self::OPTION != 0
    }

    /// True if a field is matched that is internal to data paths of another kind.
    pub(crate) const fn has_internal(self) -> bool {
        self.0 & Self::INTERNAL != 0
    }

    const fn of_field(field: Field) -> u8 {
        let depth = match field.depth() {
            Depth::Link => 0,
            Depth::Network => Self::NETWORK,
            Depth::Transport => Self::TRANSPORT,
        };
        let internal = match field {
            Field::DpHash | Field::RecircId => Self::INTERNAL,
            _ => 0,
        };
        depth | internal
    }
}

/// The facts of the latest match. The next one mostly has the same layout, and then the same facts.
#[derive(Clone, Debug, Default)]
pub(crate) struct MatchFactsCache(Option<(TermLayout, MatchFacts)>);

impl MatchFactsCache {
    /// Returns the facts of `matching`.
    #[inline]
    pub(crate) fn facts_of(&mut self, matching: &Match) -> MatchFacts {
        match &self.0 {
            Some((layout, asked)) if layout.is_of(matching) => *asked,
            _ => self.compute(matching),
        }
    }

    fn compute(&mut self, matching: &Match) -> MatchFacts {
        let asked = MatchFacts::of(matching);
        self.0 = TermLayout::of(matching).map(|layout| (layout, asked));
        asked
    }
}

/// The facts of a term, and its length in bytes; zero if it is no term.
#[derive(Clone, Copy)]
struct TermFacts {
    bits: u8,
    length: u8,
}

/// The facts by the head of a term.
static ROWS: [TermFacts; 256] = {
    let mut rows = [TermFacts { bits: 0, length: 0 }; 256];
    let mut head = u8::MAX;
    while head > 0 {
        if let Some(term) = TermHead::of(head) {
            let length = term.width << term.is_masked as u32;
            assert!(
                length < u8::MAX as usize,
                "a value has sixteen bytes at most"
            );
            rows[head as usize] = TermFacts {
                bits: MatchFacts::of_field(term.field),
                length: length.to_le_bytes()[0] + 1,
            };
        }
        head -= 1;
    }
    rows
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn match_facts_are_those_of_the_fields() {
        let lines = [
            "",
            "in_port=1,dl_dst=02:00:00:00:00:01/ff:00:00:00:00:00",
            "arp,arp_spa=10.0.0.0/8",
            "tcp6,ipv6_dst=ff02::/16,tp_dst=80",
            "metadata=5/7,udp,tp_src=0x10/0xf0",
            "reg3=1,xxreg2=7,dp_hash=1",
            "recirc_id=2,ip",
            "tun_metadata3=9,tun_id=4/6",
            "tun_metadata0,tcp",
        ];
        let mut latest = MatchFactsCache::default();
        for line in lines {
            let matching: Match = line.parse().expect(line);
            let asked = MatchFacts::of(&matching);
            let again = [latest.facts_of(&matching), latest.facts_of(&matching)];
            assert_eq!(again, [asked; 2], "{line}");
            let any = |is: fn(Field) -> bool| matching.terms().fields().any(is);
            let depths = matching.terms().fields().map(Field::depth);
            assert_eq!(asked.depth(), depths.max().unwrap_or_default(), "{line}");
            assert_eq!(
                asked.has_options(),
                matching.options().count() > 0,
                "{line}"
            );
            let is_internal = |field| matches!(field, Field::DpHash | Field::RecircId);
            assert_eq!(asked.has_internal(), any(is_internal), "{line}");
        }
    }
}
