//! Rules in great number; each frame matches at most one of them.

use std::net::Ipv4Addr;

use base::{Cookie, PortNo};
use controller::ControllerError;
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, Refusal};
use openflow::Message;
use packet::MacAddr;

use super::echo;
use crate::catalogue::plane::Plane;
use crate::frames::UdpFrame;

/// Number of rules between two barrier requests.
pub(super) const BATCH: u32 = 1_000;
/// Cookie of these rules.
const FILL_COOKIE: Cookie = Cookie(0xf111);
/// First address of the network that these rules match: 11.0.0.0.
const BASE: u32 = 0x0b00_0000;

/// Kind of the rules in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableKind {
    /// All twelve fields of OpenFlow 1.0, with a different IPv4 destination in each rule.
    Exact,
    /// 24 bits of the IPv4 destination.
    Prefix,
    /// Prefixes of both IPv4 addresses, with a different pair of lengths in each rule, from one bit
    /// on.
    Masks,
}

impl TableKind {
    /// Returns the kind by its name in parameters.
    pub(super) fn of(word: &str) -> Self {
        match word {
            "prefix" => Self::Prefix,
            "masks" => Self::Masks,
            _ => Self::Exact,
        }
    }

    /// Returns the greatest number of different rules.
    pub(super) const fn rules_max(self) -> u32 {
        match self {
            Self::Exact => 4_000_000,
            Self::Prefix => 60_000,
            Self::Masks => 31 * 31,
        }
    }

    /// Returns a frame like `request` that matches rule `number`.
    pub(super) fn frame(self, number: u32, mut request: UdpFrame) -> UdpFrame {
        request.ip_dst = Ipv4Addr::from_bits(match self {
            Self::Exact => BASE + number,
            Self::Prefix => BASE + (number << 8) + 1,
            Self::Masks => {
                let (_, dst) = masks(number);
                // The first bit after the prefix distinguishes it from longer prefixes.
                alternating(dst)
            }
        });
        if self == Self::Masks {
            let (src, _) = masks(number);
            request.ip_src = Ipv4Addr::from_bits(alternating(src));
        }
        request
    }

    /// Returns rule `number`, which outputs to port 2.
    pub(super) fn rule(self, number: u32, request: UdpFrame) -> FlowMod {
        let frame = self.frame(number, request);
        let matching = match self {
            Self::Exact => exact(1, &frame),
            Self::Prefix => by_addresses(&frame, 0, 24),
            Self::Masks => {
                let (src, dst) = masks(number);
                by_addresses(&frame, src, dst)
            }
        };
        let matching = matching.expect("fields follow their prerequisites");
        let actions = Instructions::apply(vec![Action::output(PortNo(2))]);
        // Longer prefixes have higher priority.
        let priority = match self {
            Self::Masks => {
                let (src, dst) = masks(number);
                echo::PRIORITY + src * 32 + dst
            }
            Self::Exact | Self::Prefix => echo::PRIORITY,
        };
        let mut rule = FlowMod::new(FlowModCommand::Add, priority, matching, actions);
        rule.cookie = FILL_COOKIE;
        rule
    }
}

/// Returns the prefix lengths of the source and of the destination in rule `number`.
fn masks(number: u32) -> (u16, u16) {
    let short = |bits: u32| u16::try_from(bits + 1).expect("31 at most");
    (short(number / 31 % 31), short(number % 31))
}

/// Returns an address whose first `bits` alternate (1010...) and whose next bit equals the last of
/// them, so that no longer alternating prefix matches it.
fn alternating(bits: u16) -> u32 {
    let all = 0xaaaa_aaaa_u32;
    let kept = all & mask(bits);
    let next = 0x8000_0000 >> bits;
    let last = kept & (next << 1);
    if last == 0 { kept } else { kept | next }
}

const fn mask(bits: u16) -> u32 {
    if bits == 0 {
        0
    } else {
        u32::MAX << (32 - bits)
    }
}

/// Returns the match of all twelve fields of OpenFlow 1.0 for `frame` at ingress port `port`.
pub(super) fn exact(port: u32, frame: &UdpFrame) -> Result<Match, Refusal> {
    let mac = |mac| u128::from(MacAddr(mac).to_u64());
    Match::any()
        .with(Field::InPort, port.into())?
        .with(Field::EthSrc, mac(frame.eth_src))?
        .with(Field::EthDst, mac(frame.eth_dst))?
        .with(Field::VlanVid, 0)?
        .with(Field::EthType, 0x0800)?
        .with(Field::IpDscp, frame.dscp.into())?
        .with(Field::IpProto, 17)?
        .with(Field::Ipv4Src, frame.ip_src.to_bits().into())?
        .with(Field::Ipv4Dst, frame.ip_dst.to_bits().into())?
        .with(Field::UdpSrc, frame.udp_src.into())?
        .with(Field::UdpDst, frame.udp_dst.into())
}

fn by_addresses(frame: &UdpFrame, src: u16, dst: u16) -> Result<Match, Refusal> {
    let mut matching = Match::any().with(Field::EthType, 0x0800)?;
    for (field, address, bits) in [
        (Field::Ipv4Src, frame.ip_src, src),
        (Field::Ipv4Dst, frame.ip_dst, dst),
    ] {
        let mask = mask(bits);
        if mask != 0 {
            let value = address.to_bits() & mask;
            matching = matching.with_masked(field, value.into(), mask.into())?;
        }
    }
    Ok(matching)
}

/// Outcome of [`fill`].
#[derive(Clone, Debug, Default)]
pub(super) struct FillOutcome {
    /// Number of rules that the device accepted.
    pub(super) accepted: u32,
    /// The first error; none if the device accepted all rules.
    pub(super) refused: Option<String>,
}

/// Adds the rules `from..to` of `kind`, in batches with a barrier request each, until one is
/// rejected.
pub(super) fn fill(
    plane: &mut dyn Plane,
    kind: TableKind,
    rules: std::ops::Range<u32>,
    request: UdpFrame,
) -> Result<FillOutcome, ControllerError> {
    let mut filled = FillOutcome::default();
    let mut next = rules.start;
    while next < rules.end && filled.refused.is_none() {
        let end = rules.end.min(next + BATCH);
        let batch = (next..end).map(|number| Message::FlowMod(kind.rule(number, request)));
        let done = plane.request(batch.collect())?;
        let refused = u32::try_from(done.refused).unwrap_or(u32::MAX);
        filled.accepted += (end - next).saturating_sub(refused);
        filled.refused = done.refusals.first().map(ToString::to_string);
        next = end;
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::frames::tests::frame as request;

    /// Returns the value and the mask of a field in a rule.
    fn term(rule: &FlowMod, field: Field) -> (u128, u128) {
        let term = rule.matching.term(field);
        term.map_or((0, 0), |term| (term.value, term.mask))
    }

    fn matches(rule: &FlowMod, frame: &UdpFrame) -> bool {
        let addresses = [
            (Field::Ipv4Src, frame.ip_src),
            (Field::Ipv4Dst, frame.ip_dst),
        ];
        addresses.iter().all(|(field, address)| {
            let (value, mask) = term(rule, *field);
            u128::from(address.to_bits()) & mask == value
        })
    }

    #[test]
    fn frame_of_a_rule_matches_it_with_highest_priority() {
        for kind in [TableKind::Exact, TableKind::Prefix, TableKind::Masks] {
            let count = kind.rules_max().min(961);
            let rules: Vec<FlowMod> = (0..count).map(|n| kind.rule(n, request())).collect();
            let distinct: BTreeSet<_> = rules.iter().map(|rule| rule.matching.clone()).collect();
            assert_eq!(distinct.len(), rules.len(), "{kind:?}");
            for (number, rule) in (0..).zip(&rules) {
                let frame = kind.frame(number, request());
                assert!(matches(rule, &frame), "{kind:?} {number}");
                assert!(!matches(rule, &request()), "{kind:?} {number}");
                let best = rules.iter().filter(|other| matches(other, &frame));
                let best = best.max_by_key(|other| other.priority);
                assert_eq!(
                    best.map(|one| &one.matching),
                    Some(&rule.matching),
                    "{kind:?} {number}"
                );
            }
        }
    }
}
