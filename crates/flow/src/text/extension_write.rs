//! Writing Nicira's actions as `ovs-ofctl` does.

use std::fmt;

use base::PortNo;

use super::address::write_port;
use super::extension_read::REASONS;
use super::learn;
use super::match_write::Commas;
use super::names::set_name;
use crate::action::{Action, MaxLen};
use crate::extension::{Bundle, Extension, Multipath, Sample, SampleDirection, ToController};

impl fmt::Display for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resubmit { port, table: None } => {
                f.write_str("resubmit:")?;
                write_port(f, port.0.into())
            }
            Self::Resubmit {
                port,
                table: Some(table),
            } => {
                f.write_str("resubmit(")?;
                if *port != PortNo::IN_PORT {
                    write_port(f, port.0.into())?;
                }
                write!(f, ",{table})")
            }
            Self::Load { to, value } => write!(f, "load:{}->{to}", Hex((*value).into())),
            Self::Move { from, to } => write!(f, "move:{from}->{to}"),
            Self::Push(from) => write!(f, "push:{from}"),
            Self::Pop(to) => write!(f, "pop:{to}"),
            // What `ovs-ofctl` reads; a shorter length it neither reads nor prints.
            Self::OutputPart { from, .. } => write!(f, "output:{from}"),
            Self::OutputTruncated { port, max_len } => {
                f.write_str("output(port=")?;
                write_port(f, port.0.into())?;
                write!(f, ",max_len={max_len})")
            }
            Self::Controller(told) => write_controller(f, told),
            Self::DecTtl(ids) => write_list(f, "dec_ttl(", ids.iter()),
            Self::Note(bytes) => {
                f.write_str("note:")?;
                write_bytes(f, bytes)
            }
            Self::PopQueue => f.write_str("pop_queue"),
            Self::Exit => f.write_str("exit"),
            Self::Clone(actions) => write_clone(f, actions),
            Self::Learn(learn) => learn::write(f, learn),
            Self::FinTimeout { idle_s, hard_s } => write_fin_timeout(f, *idle_s, *hard_s),
            Self::Multipath(multipath) => write_multipath(f, multipath),
            Self::Bundle(bundle) => write_bundle(f, bundle),
            Self::Conjunction {
                id,
                clause,
                clauses,
            } => write!(f, "conjunction({id},{}/{clauses})", u16::from(*clause) + 1),
            Self::CheckPacketLarger { bytes, to } => write!(f, "check_pkt_larger({bytes})->{to}"),
            Self::Encap(encap) => write!(f, "{encap}"),
            Self::Decap { left: None } => f.write_str("decap()"),
            Self::Decap { left: Some(left) } => {
                let (space, kind) = left.parts();
                let kind = Hex(kind.into());
                write!(f, "decap(packet_type(ns={space},type={kind}))")
            }
            Self::DeleteField(field) => write!(f, "delete_field:{}", set_name(*field)),
            Self::DecNshTtl => f.write_str("dec_nsh_ttl"),
            Self::Sample(sample) => write_sample(f, sample),
        }
    }
}

/// A number as C's `%#x` has it: no 0x before a zero.
pub(super) struct Hex(pub(super) u128);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            number => write!(f, "0x{number:x}"),
        }
    }
}

/// Writes `open`, the items with commas between them, and the end.
fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    open: &str,
    items: impl Iterator<Item = T>,
) -> fmt::Result {
    f.write_str(open)?;
    let mut list = Commas::new(f);
    for item in items {
        write!(list.next()?, "{item}")?;
    }
    f.write_str(")")
}

fn write_clone(f: &mut fmt::Formatter<'_>, actions: &[Action]) -> fmt::Result {
    match actions {
        [] => f.write_str("clone(drop)"),
        actions => write_list(f, "clone(", actions.iter()),
    }
}

/// Writes bytes in hexadecimal, with dots between them.
fn write_bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for (index, byte) in bytes.iter().enumerate() {
        let dot = if index == 0 { "" } else { "." };
        write!(f, "{dot}{byte:02x}")?;
    }
    Ok(())
}

fn write_controller(f: &mut fmt::Formatter<'_>, told: &ToController) -> fmt::Result {
    let ToController {
        max_len,
        controller,
        reason,
        userdata,
        meter,
        pause,
    } = told;
    f.write_str("controller(")?;
    let mut list = Commas::new(f);
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
fn name_of<T: PartialEq>(wanted: &T, names: &[(T, &'static str)]) -> &'static str {
    let known = names.iter().find(|(known, _)| known == wanted);
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

fn write_bundle(f: &mut fmt::Formatter<'_>, bundle: &Bundle) -> fmt::Result {
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
    write_list(f, "members:", bundle.members.iter())
}

fn write_sample(f: &mut fmt::Formatter<'_>, sample: &Sample) -> fmt::Result {
    let Sample {
        probability,
        collectors,
        domain,
        point,
        port,
        direction,
    } = sample;
    write!(
        f,
        "sample(probability={probability},collector_set_id={collectors},\
         obs_domain_id={domain},obs_point_id={point}"
    )?;
    if let Some(port) = port {
        f.write_str(",sampling_port=")?;
        write_port(f, port.0.into())?;
    }
    f.write_str(match direction {
        SampleDirection::Unsaid => ")",
        SampleDirection::Ingress => ",ingress)",
        SampleDirection::Egress => ",egress)",
    })
}
