//! Writer of extension actions, in the form of `ovs-ofctl`.

use std::fmt;

use base::{PortNo, TableId};

use super::extension_read::REASONS;
use super::match_write::CommaList;
use super::name_map::{NameMap, WithNames};
use super::names::set_name;
use super::{conntrack, learn, options, sample};
use crate::action::{Action, MaxLen};
use crate::extension::{BundleAction, ControllerAction, Extension, Multipath};

impl fmt::Display for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&WithNames(self, NameMap::empty()), f)
    }
}

impl fmt::Display for WithNames<'_, Extension> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(extension, names) = *self;
        match extension {
            Extension::Resubmit { port, table: None } => {
                write!(f, "resubmit:{}", WithNames(port, names))
            }
            Extension::Resubmit { port, table } => {
                write_resubmit(f, WithNames(port, names), WithNames(table, names))?;
                f.write_str(")")
            }
            Extension::ResubmitConnection { port, table } => {
                write_resubmit(f, WithNames(port, names), WithNames(table, names))?;
                f.write_str(",ct)")
            }
            Extension::Load { to, value } => write!(f, "load:{}->{to}", HexNumber((*value).into())),
            Extension::Move { from, to } => write!(f, "move:{from}->{to}"),
            Extension::Push(from) => write!(f, "push:{from}"),
            Extension::Pop(to) => write!(f, "pop:{to}"),
            // `ovs-ofctl` neither reads nor prints a shorter length.
            Extension::OutputReg { from, .. } => write!(f, "output:{from}"),
            Extension::OutputTruncated { port, max_len } => {
                let port = WithNames(port, names);
                write!(f, "output(port={port},max_len={max_len})")
            }
            Extension::Controller(told) => write_controller(f, told),
            Extension::DecTtl(ids) => write_list(f, "dec_ttl(", ids.iter()),
            Extension::Note(bytes) => write_note(f, bytes),
            Extension::PopQueue => f.write_str("pop_queue"),
            Extension::Exit => f.write_str("exit"),
            Extension::Clone(actions) => write_clone(f, actions, names),
            Extension::Learn(learn) => learn::write(f, learn, names),
            Extension::FinTimeout { idle_s, hard_s } => write_fin_timeout(f, *idle_s, *hard_s),
            Extension::Multipath(multipath) => write_multipath(f, multipath),
            Extension::Bundle(bundle) => write_bundle(f, bundle, names),
            Extension::Conjunction {
                id,
                clause,
                clauses,
            } => write!(f, "conjunction({id},{}/{clauses})", u16::from(*clause) + 1),
            Extension::CheckPacketLarger { bytes, to } => {
                write!(f, "check_pkt_larger({bytes})->{to}")
            }
            Extension::Encap(encap) => write!(f, "{encap}"),
            Extension::Decap { left: None } => f.write_str("decap()"),
            Extension::Decap { left: Some(left) } => {
                let (space, kind) = left.parts();
                let kind = HexNumber(kind.into());
                write!(f, "decap(packet_type(ns={space},type={kind}))")
            }
            Extension::SetOption(term) => options::write_set(f, term),
            Extension::DeleteField(field) => write!(f, "delete_field:{}", set_name(*field)),
            Extension::DecNshTtl => f.write_str("dec_nsh_ttl"),
            Extension::Sample(sample) => sample::write(f, sample, names),
            Extension::Conntrack(ct) => conntrack::write(f, ct, names),
            Extension::Nat(nat) => conntrack::write_nat(f, nat),
            Extension::ConntrackClear => f.write_str("ct_clear"),
            Extension::DebugSlow => f.write_str("debug_slow"),
            Extension::DebugRecirc => f.write_str("debug_recirc"),
        }
    }
}

/// Writes a resubmission up to its table.
fn write_resubmit(
    f: &mut fmt::Formatter<'_>,
    port: WithNames<'_, PortNo>,
    table: WithNames<'_, Option<TableId>>,
) -> fmt::Result {
    let WithNames(table, names) = table;
    f.write_str("resubmit(")?;
    if *port.0 != PortNo::IN_PORT {
        write!(f, "{port}")?;
    }
    f.write_str(",")?;
    match table {
        Some(table) => write!(f, "{}", WithNames(table, names)),
        None => Ok(()),
    }
}

/// Number in hexadecimal like C's `%#x`: without 0x before zero.
pub(super) struct HexNumber(pub(super) u128);

impl fmt::Display for HexNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            number => write!(f, "0x{number:x}"),
        }
    }
}

/// Writes `open`, the items separated by commas, and the closing parenthesis.
fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    open: &str,
    items: impl Iterator<Item = T>,
) -> fmt::Result {
    f.write_str(open)?;
    let mut list = CommaList::new(f);
    for item in items {
        write!(list.next()?, "{item}")?;
    }
    f.write_str(")")
}

fn write_clone(f: &mut fmt::Formatter<'_>, actions: &[Action], names: &NameMap) -> fmt::Result {
    match actions {
        [] => f.write_str("clone(drop)"),
        actions => {
            let actions = actions.iter().map(|action| WithNames(action, names));
            write_list(f, "clone(", actions)
        }
    }
}

fn write_note(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("note:")?;
    write_bytes(f, bytes)
}

/// Writes bytes in hexadecimal, with dots between them.
fn write_bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for (index, byte) in bytes.iter().enumerate() {
        let dot = if index == 0 { "" } else { "." };
        write!(f, "{dot}{byte:02x}")?;
    }
    Ok(())
}

fn write_controller(f: &mut fmt::Formatter<'_>, told: &ControllerAction) -> fmt::Result {
    let ControllerAction {
        max_len,
        controller,
        reason,
        userdata,
        meter,
        pause,
    } = told;
    f.write_str("controller(")?;
    let mut list = CommaList::new(f);
    if let Some((_, name)) = REASONS[1..].iter().find(|(known, _)| known == reason) {
        write!(list.next()?, "reason={name}")?;
    }
    if *max_len != MaxLen::WHOLE {
        write!(list.next()?, "max_len={}", max_len.0)?;
    }
    if *controller != 0 {
        write!(list.next()?, "id={controller}")?;
    }
    if !userdata.is_empty() {
        let f = list.next()?;
        f.write_str("userdata=")?;
        write_bytes(f, userdata)?;
    }
    if *pause {
        list.next()?.write_str("pause")?;
    }
    if let Some(meter) = meter {
        write!(list.next()?, "meter_id={}", meter.0)?;
    }
    f.write_str(")")
}

fn write_fin_timeout(f: &mut fmt::Formatter<'_>, idle_s: u16, hard_s: u16) -> fmt::Result {
    let named = [("idle_timeout", idle_s), ("hard_timeout", hard_s)];
    let given = named.into_iter().filter(|(_, seconds)| *seconds != 0);
    let given = given.map(|(name, seconds)| format!("{name}={seconds}"));
    write_list(f, "fin_timeout(", given)
}

/// The name of `wanted` among `names`.
fn name_of<T: PartialEq>(expected: &T, names: &[(T, &'static str)]) -> &'static str {
    let known = names.iter().find(|(known, _)| known == expected);
    known.map_or("unknown", |(_, name)| *name)
}

fn write_multipath(f: &mut fmt::Formatter<'_>, multipath: &Multipath) -> fmt::Result {
    use crate::extension::{HashFields, MultipathAlgorithm};
    let Multipath {
        fields,
        basis,
        algorithm,
        link_max,
        argument,
        to,
    } = multipath;
    let fields = name_of(fields, &HashFields::ALL);
    let algorithm = name_of(algorithm, &MultipathAlgorithm::ALL);
    let links = u32::from(*link_max) + 1;
    write!(
        f,
        "multipath({fields},{basis},{algorithm},{links},{argument},{to})"
    )
}

fn write_bundle(f: &mut fmt::Formatter<'_>, bundle: &BundleAction, names: &NameMap) -> fmt::Result {
    use crate::extension::{BundleAlgorithm, HashFields};
    let name = if bundle.to.is_some() {
        "bundle_load"
    } else {
        "bundle"
    };
    let fields = name_of(&bundle.fields, &HashFields::ALL);
    let algorithm = name_of(&bundle.algorithm, &BundleAlgorithm::ALL);
    write!(f, "{name}({fields},{},{algorithm},ofport,", bundle.basis)?;
    if let Some(to) = bundle.to {
        write!(f, "{to},")?;
    }
    let members = bundle.members.iter().map(|port| WithNames(port, names));
    write_list(f, "members:", members)
}
