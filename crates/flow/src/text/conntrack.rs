//! Reader and writer of `ct` and `nat`, in the form of `ovs-ofctl`.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use base::TableId;

use super::address::Ipv6Text;
use super::error::ParseError;
use super::lexer::{KeyValue, KeyValues, Token};
use super::match_write::CommaList;
use super::name_map::{NameMap, WithNames};
use super::number::{number, unsigned};
use super::subfield::subfield;
use super::{extension_read, instructions, name_map};
use crate::action::Action;
use crate::extension::{
    ConntrackAction, ConntrackFlags, ConntrackZone, Extension, NESTING_MAX, NatAction,
    NatAddresses, NatFlags,
};

/// Helpers by name and port.
const HELPERS: [(&str, u16); 2] = [("ftp", 21), ("tftp", 69)];

/// Flags of `nat` after the addresses, in the order of printing.
const NAT_FLAGS: [(NatFlags, &str); 3] = [
    (NatFlags::PERSISTENT, "persistent"),
    (NatFlags::HASH, "hash"),
    (NatFlags::RANDOM, "random"),
];

/// Reads the arguments of `ct`.
pub(super) fn read(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let mut ct = ConntrackAction::default();
    if let Some(value) = item.value {
        if extension_read::depth(value.text) > NESTING_MAX {
            return Err(value.error(format!("nested deeper than {NESTING_MAX} levels")));
        }
        let mut options = KeyValues::new(value);
        while let Some(option) = options.next_pair()? {
            read_option(&mut ct, option)?;
        }
    }
    if ct.flags == ConntrackFlags::FORCE {
        return Err(item.key.error("`force` requires `commit`"));
    }
    Ok(Extension::Conntrack(Arc::new(ct)))
}

fn read_option(ct: &mut ConntrackAction, option: KeyValue<'_>) -> Result<(), ParseError> {
    match option.key.text {
        "commit" => ct.flags.0 |= ConntrackFlags::COMMIT.0,
        "force" => ct.flags.0 |= ConntrackFlags::FORCE.0,
        "table" => {
            let value = option.required_value()?;
            match name_map::table(value)? {
                TableId::ALL => return Err(value.error("expected a table from 0 to 254")),
                table => ct.table = Some(table),
            }
        }
        "zone" => ct.zone = zone(option.required_value()?)?,
        "alg" => ct.alg = helper(option.required_value()?)?,
        "nat" => ct.actions.push(Action::Extended(read_nat(option)?)),
        "exec" => {
            let actions = option
                .value
                .map_or(Ok(Vec::new()), instructions::action_list);
            ct.actions.extend(actions?);
        }
        _ => return Err(option.key.error("unknown option of `ct`")),
    }
    Ok(())
}

fn zone(token: Token<'_>) -> Result<ConntrackZone, ParseError> {
    if token.text.starts_with(|c: char| c.is_ascii_digit()) {
        return number(token).map(ConntrackZone::Number);
    }
    match subfield(token)? {
        part if part.bits() == 16 => Ok(ConntrackZone::Subfield(part)),
        _ => Err(token.error("expected 16 bits of a field")),
    }
}

fn helper(token: Token<'_>) -> Result<u16, ParseError> {
    let known = HELPERS.iter().find(|(name, _)| *name == token.text);
    known.map_or_else(|| number(token), |(_, port)| Ok(*port))
}

/// Reads the arguments of `nat`.
pub(super) fn read_nat(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let mut nat = NatAction::default();
    if let Some(value) = item.value {
        let mut options = KeyValues::new(value);
        while let Some(option) = options.next_pair()? {
            let flag = match option.key.text {
                "src" => NatFlags::SOURCE,
                "dst" => NatFlags::DESTINATION,
                "persistent" => NatFlags::PERSISTENT,
                "hash" => NatFlags::HASH,
                "random" => NatFlags::RANDOM,
                _ => {
                    return Err(option
                        .key
                        .error("expected src, dst, persistent, hash or random"));
                }
            };
            nat.flags = nat.flags.with(flag);
            if let Some(range) = option.value {
                (nat.addresses, nat.ports) = range_of(range)?;
            }
        }
    }
    let is_directed = nat.flags.0 & NatFlags::SOURCE.with(NatFlags::DESTINATION).0 != 0;
    if nat.check().is_err() || (!is_directed && nat != NatAction::default()) {
        return Err(item
            .key
            .error("contradictory or incomplete arguments of `nat`"));
    }
    Ok(Extension::Nat(Arc::new(nat)))
}

/// Reads `ADDRESS[-ADDRESS][:PORT[-PORT]]`; an IPv6 address before a port is in brackets.
fn range_of(token: Token<'_>) -> Result<(NatAddresses, NatPorts), ParseError> {
    let wrong = || token.error("expected ADDRESS[-ADDRESS][:PORT[-PORT]]");
    let is_v4 = token
        .text
        .split(['-', ':'])
        .next()
        .is_some_and(|first| first.contains('.'));
    let (addresses, ports) = match token.text.rfind("]:") {
        Some(at) => (&token.text[..=at], Some(&token.text[at + 2..])),
        None if is_v4 => match token.text.split_once(':') {
            Some((addresses, ports)) => (addresses, Some(ports)),
            None => (token.text, None),
        },
        None => (token.text, None),
    };
    let (first, last) = match addresses.split_once('-') {
        Some((first, last)) => (first, Some(last)),
        None => (addresses, None),
    };
    let addresses = if is_v4 {
        let address = |text: &str| text.parse::<Ipv4Addr>().map_err(|_| wrong());
        NatAddresses::V4(address(first)?, last.map(address).transpose()?)
    } else {
        let address = |text: &str| {
            let bare = text
                .strip_prefix('[')
                .and_then(|text| text.strip_suffix(']'));
            bare.unwrap_or(text)
                .parse::<Ipv6Addr>()
                .map_err(|_| wrong())
        };
        NatAddresses::V6(address(first)?, last.map(address).transpose()?)
    };
    let port = |text: &str| {
        let port = unsigned(Token { text, ..token }, u16::MAX.into())?;
        Ok::<_, ParseError>(u16::try_from(port).expect("at most 65535"))
    };
    let ports = match ports.map(|ports| ports.split_once('-').ok_or(ports)) {
        None => None,
        Some(Ok((first, last))) => Some((port(first)?, Some(port(last)?))),
        Some(Err(one)) => Some((port(one)?, None)),
    };
    Ok((addresses, ports))
}

/// The first port, and the last one.
type NatPorts = Option<(u16, Option<u16>)>;

/// Writes `ct`. A translation at the start of the actions is written outside of `exec`.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    ct: &ConntrackAction,
    names: &NameMap,
) -> fmt::Result {
    f.write_str("ct(")?;
    let mut list = CommaList::new(f);
    if ct.flags.contains(ConntrackFlags::COMMIT) {
        list.next()?.write_str("commit")?;
    }
    if ct.flags.contains(ConntrackFlags::FORCE) {
        list.next()?.write_str("force")?;
    }
    if let Some(table) = &ct.table {
        write!(list.next()?, "table={}", WithNames(table, names))?;
    }
    match ct.zone {
        ConntrackZone::Number(0) => {}
        ConntrackZone::Number(zone) => write!(list.next()?, "zone={zone}")?,
        ConntrackZone::Subfield(zone) => write!(list.next()?, "zone={zone}")?,
    }
    let mut others = ct.actions.as_slice();
    if let [Action::Extended(Extension::Nat(nat)), rest @ ..] = others {
        write_nat(list.next()?, nat)?;
        others = rest;
    }
    if !others.is_empty() {
        let f = list.next()?;
        f.write_str("exec(")?;
        let mut inner = CommaList::new(f);
        for action in others {
            write!(inner.next()?, "{}", WithNames(action, names))?;
        }
        f.write_str(")")?;
    }
    match HELPERS.iter().find(|(_, port)| *port == ct.alg) {
        Some((name, _)) => write!(list.next()?, "alg={name}")?,
        None if ct.alg == 0 => {}
        None => write!(list.next()?, "alg={}", ct.alg)?,
    }
    f.write_str(")")
}

/// Writes `nat`.
pub(super) fn write_nat(f: &mut fmt::Formatter<'_>, nat: &NatAction) -> fmt::Result {
    f.write_str("nat")?;
    let direction = match nat.flags {
        flags if flags.contains(NatFlags::SOURCE) => "src",
        flags if flags.contains(NatFlags::DESTINATION) => "dst",
        _ => return Ok(()),
    };
    write!(f, "({direction}")?;
    let has_ports = nat.ports.is_some();
    match nat.addresses {
        NatAddresses::Unspecified => return f.write_str(")"),
        NatAddresses::V4(first, last) => {
            write!(f, "={first}")?;
            if let Some(last) = last.filter(|last| *last != first) {
                write!(f, "-{last}")?;
            }
        }
        NatAddresses::V6(first, last) => {
            write!(f, "={}", InBrackets(first, has_ports))?;
            if let Some(last) = last.filter(|last| *last != first) {
                write!(f, "-{}", InBrackets(last, has_ports))?;
            }
        }
    }
    if let Some((first, last)) = nat.ports {
        write!(f, ":{first}")?;
        if let Some(last) = last.filter(|last| *last != first) {
            write!(f, "-{last}")?;
        }
    }
    for (flag, name) in NAT_FLAGS {
        if nat.flags.contains(flag) {
            write!(f, ",{name}")?;
        }
    }
    f.write_str(")")
}

/// An IPv6 address, in brackets if true.
struct InBrackets(Ipv6Addr, bool);

impl fmt::Display for InBrackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(address, true) => write!(f, "[{}]", Ipv6Text(*address)),
            Self(address, false) => write!(f, "{}", Ipv6Text(*address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::text::parse_actions;

    #[test]
    fn conntrack_text_round_trips() {
        for line in [
            "ct()",
            "ct(commit)",
            "ct(commit,force,table=4,zone=10)",
            "ct(table=9,zone=NXM_NX_REG13[0..15])",
            "ct(commit,alg=ftp)",
            "ct(commit,zone=1,alg=tftp)",
            "ct(nat)",
            "ct(commit,nat(src))",
            "ct(commit,nat(src=10.0.0.240-10.0.0.254:32768-65535,persistent,random))",
            "ct(commit,nat(dst=fd00::1))",
            "ct(commit,nat(dst=[fd00::1]-[fd00::9]:80))",
            "ct(commit,nat(dst=[::0.2.0.6]-[::0.2.0.9]:80))",
            "ct(commit,nat(src=::0.2.0.6-::0.2.0.9))",
            "ct(commit,nat(src=10.0.0.1),exec(set_field:0x1/0x3->ct_mark,set_field:0x2->ct_label))",
            "ct(commit,exec(load:0x1->NXM_NX_CT_LABEL[0],move:NXM_NX_REG0[]->NXM_NX_CT_MARK[]))",
            "ct_clear",
        ] {
            let actions = parse_actions(line).expect(line);
            assert_eq!(actions.len(), 1);
            assert_eq!(actions[0].to_string(), line);
        }
        for line in [
            "ct(force)",
            "ct(table=255)",
            "ct(zone=70000)",
            "ct(zone=reg0)",
            "ct(commit,nat(random))",
            "ct(commit,nat(src=1.2.3.4,dst=1.2.3.4))",
            "ct(commit,nat(src=1.2.3.4-1.2.3.3))",
            "ct(commit,nat(src=1.2.3.4:0))",
            "ct(what)",
        ] {
            assert!(parse_actions(line).is_err(), "{line}");
        }
    }
}
