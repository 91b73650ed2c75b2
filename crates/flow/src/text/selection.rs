//! Reader and writer of hash selection: `selection_method=`, `selection_method_param=` and
//! `fields=` or `fields(..)` of a group, in the form of `ovs-ofctl`.
//!
//! The value of a field is a mask; without one, all bits are hashed.

use std::fmt;

use super::error::ParseError;
use super::lexer::{KeyValue, KeyValues, Token};
use super::match_write::{CommaList, write_set_value};
use super::name_map::NameMap;
use super::names::{self, ValueFormat};
use super::number::number;
use super::{match_read, special, subfield};
use crate::field::Field;
use crate::group::{Selection, SelectionFields, SelectionMethod};
use crate::refusal::Refusal;

/// Fields in the order in which the tool prints them; it does not support those after `NshTtl`.
#[rustfmt::skip]
const ORDER: [Field; Field::COUNT] = {
    use Field::*;
    [
        DpHash, RecircId, PacketType, ConjId,
        TunnelId, TunSrc, TunDst, TunIpv6Src, TunIpv6Dst, TunFlags, TunGbpId, TunGbpFlags,
        TunErspanIdx, TunErspanVer, TunErspanDir, TunErspanHwid, TunGtpuFlags, TunGtpuMsgtype,
        TunMetadata0, TunMetadata1, TunMetadata2, TunMetadata3, TunMetadata4, TunMetadata5, TunMetadata6, TunMetadata7,
        TunMetadata8, TunMetadata9, TunMetadata10, TunMetadata11, TunMetadata12, TunMetadata13, TunMetadata14, TunMetadata15,
        TunMetadata16, TunMetadata17, TunMetadata18, TunMetadata19, TunMetadata20, TunMetadata21, TunMetadata22, TunMetadata23,
        TunMetadata24, TunMetadata25, TunMetadata26, TunMetadata27, TunMetadata28, TunMetadata29, TunMetadata30, TunMetadata31,
        TunMetadata32, TunMetadata33, TunMetadata34, TunMetadata35, TunMetadata36, TunMetadata37, TunMetadata38, TunMetadata39,
        TunMetadata40, TunMetadata41, TunMetadata42, TunMetadata43, TunMetadata44, TunMetadata45, TunMetadata46, TunMetadata47,
        TunMetadata48, TunMetadata49, TunMetadata50, TunMetadata51, TunMetadata52, TunMetadata53, TunMetadata54, TunMetadata55,
        TunMetadata56, TunMetadata57, TunMetadata58, TunMetadata59, TunMetadata60, TunMetadata61, TunMetadata62, TunMetadata63,
        Metadata, NxInPort, InPort, ActsetOutput, PktMark,
        CtState, CtZone, CtMark, CtLabel, CtNwProto, CtNwSrc, CtNwDst, CtIpv6Src, CtIpv6Dst, CtTpSrc, CtTpDst,
        Reg0, Reg1, Reg2, Reg3, Reg4, Reg5, Reg6, Reg7,
        Reg8, Reg9, Reg10, Reg11, Reg12, Reg13, Reg14, Reg15,
        Xreg0, Xreg1, Xreg2, Xreg3, Xreg4, Xreg5, Xreg6, Xreg7,
        Xxreg0, Xxreg1, Xxreg2, Xxreg3,
        EthSrc, EthDst, EthType, VlanTci, VlanVid, VlanPcp,
        MplsLabel, MplsTc, MplsBos, MplsTtl,
        Ipv4Src, Ipv4Dst, Ipv6Src, Ipv6Dst, Ipv6Flabel,
        IpProto, IpTos, IpDscp, IpEcn, IpTtl, IpFrag,
        ArpOp, ArpSpa, ArpTpa, ArpSha, ArpTha,
        TcpSrc, TcpDst, TcpFlags, UdpSrc, UdpDst, SctpSrc, SctpDst,
        Icmpv4Type, Icmpv4Code, Icmpv6Type, Icmpv6Code,
        Ipv6NdTarget, Ipv6NdSll, Ipv6NdTll, NdReserved, NdOptionsType,
        NshFlags, NshMdtype, NshNp, NshSpi, NshSi, NshC1, NshC2, NshC3, NshC4, NshTtl,
        InPhyPort, Ipv6Exthdr, PbbIsid, PbbUca,
    ]
};

/// Hash selection while it is read.
#[derive(Default)]
pub(super) struct SelectionDraft<'a> {
    method: Option<Token<'a>>,
    param: Option<(Token<'a>, u64)>,
    fields: Option<(Token<'a>, SelectionFields)>,
}

impl<'a> SelectionDraft<'a> {
    /// Takes a key of a group. Returns true if it is new, false for a duplicate, and `None` if it
    /// is another key.
    pub(super) fn take(&mut self, item: KeyValue<'a>) -> Result<Option<bool>, ParseError> {
        let before = match item.key.text {
            "selection_method" => self.method.replace(item.required_value()?).is_some(),
            "selection_method_param" => {
                let param = number(item.required_value()?)?;
                self.param.replace((item.key, param)).is_some()
            }
            "fields" => {
                let read = item
                    .value
                    .map_or_else(|| Ok(SelectionFields::default()), fields)?;
                self.fields.replace((item.key, read)).is_some()
            }
            _ => return Ok(None),
        };
        Ok(Some(!before))
    }

    /// Returns the first key of the selection, if any.
    pub(super) fn first_token(&self) -> Option<Token<'a>> {
        let param = self.param.as_ref().map(|(key, _)| *key);
        let fields = self.fields.as_ref().map(|(key, _)| *key);
        self.method.or(param).or(fields)
    }

    /// Returns the selection, if its parts are consistent.
    pub(super) fn finish(self) -> Result<Option<Selection>, ParseError> {
        let (param_key, param) = self.param.unzip();
        let (fields_key, fields) = self.fields.unzip();
        let fields = fields.unwrap_or_default();
        let hash = self.method.is_some_and(|method| method.text == "hash");
        if let Some(key) = fields_key.filter(|_| !hash && !fields.is_empty()) {
            return Err(key.error("`fields` requires `selection_method=hash`"));
        }
        let method = match self.method {
            Some(_) if hash => SelectionMethod::Hash(fields),
            Some(method) if method.text == "dp_hash" => SelectionMethod::Datapath,
            Some(method) => return Err(method.error("expected hash or dp_hash")),
            None => {
                let key = param_key.filter(|_| param != Some(0));
                return key.map_or(
                    Ok(None),
                    |key| Err(key.error("missing `selection_method=`")),
                );
            }
        };
        Ok(Some(Selection {
            method,
            param: param.unwrap_or_default(),
        }))
    }
}

/// Reads fields and their masks.
fn fields(text: Token<'_>) -> Result<SelectionFields, ParseError> {
    let mut fields = SelectionFields::default();
    let mut items = KeyValues::new(text);
    while let Some(item) = items.next_pair()? {
        let field = subfield::field(item.key)?;
        let mask = match item.value {
            None => field.full_mask(),
            Some(value) => {
                let (mask, all) = match_read::value(field, value)?;
                // `ip_frag` has more bits in masks than as a field.
                if all & field.full_mask() != field.full_mask() {
                    return Err(value.error("expected a mask only"));
                }
                mask
            }
        };
        fields.add(field, mask).map_err(|refusal| match refusal {
            Refusal::MatchDuplicateField => item.key.error("duplicate key"),
            _ => item.key.error("invalid mask for this field"),
        })?;
    }
    Ok(fields)
}

/// The field's name in the list.
fn name(field: Field) -> &'static str {
    match field {
        Field::InPort => "in_port_oxm",
        _ => names::learn_name(field),
    }
}

impl fmt::Display for SelectionFields {
    /// Writes the fields as `ovs-ofctl` does between `fields(` and `)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = CommaList::new(f);
        for field in ORDER {
            let Some(mask) = self.mask(field) else {
                continue;
            };
            let f = list.next()?;
            f.write_str(name(field))?;
            let full = field.full_mask();
            if mask != full {
                f.write_str("=")?;
                match names::form(field) {
                    ValueFormat::Flags => special::write_tcp_flags(f, (mask, full))?,
                    ValueFormat::ConnectionFlags => special::write_ct_state(f, (mask, full))?,
                    ValueFormat::Fragment => special::write_fragment(f, (mask, full))?,
                    _ => write_set_value(f, field, (mask, full), NameMap::empty())?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Selection {
    /// Writes the choice as `ovs-ofctl` does in a group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "selection_method={}", self.method.name())?;
        if self.param != 0 {
            write!(f, ",selection_method_param={}", self.param)?;
        }
        match &self.method {
            SelectionMethod::Hash(fields) => match fields.iter().len() {
                0 => Ok(()),
                1 => write!(f, ",fields={fields}"),
                _ => write!(f, ",fields({fields})"),
            },
            SelectionMethod::Datapath => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer;
    use super::*;

    #[test]
    fn selection_fields_are_printed_once_and_read_back() {
        let mut seen: Vec<Field> = ORDER.to_vec();
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(Field::all().map(|row| row.field)));
        for field in ORDER {
            let text = name(field);
            let read = subfield::field(lexer::line(text).expect(text)).expect(text);
            assert_eq!(read, field, "{text}");
        }
    }
}
