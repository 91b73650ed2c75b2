//! Text of a match, field by field as on the wire: `NXM_OF_IN_PORT(0001),
//! NXM_OF_IP_SRC_W(0a000000/ff000000)`. This is the format of `ovs-ofctl parse-nx-match` and
//! `parse-oxm`: the long names of the headers, values in hexadecimal, `_W` for a mask.
//!
//! `oxm` decodes the meaning of the fields; this module accepts any value of a known header.

use flow::Field;
use flow::field::WireId;

use crate::codec::{Malformed, Reader};
use crate::experimenter::ONF;
use crate::oxm::OxmHeader;

/// The class of experimenter fields, which begin with the experimenter id.
const EXPERIMENTER: u16 = 0xffff;

/// The class of the specification's fields.
const BASIC: u16 = 0x8000;

/// A condition on the cookie, which is not a field. Its length distinguishes it from a field with
/// the same number.
const COOKIE: WireId = WireId::new(1, 30);
const COOKIE_NAME: &str = "NXM_NX_COOKIE";
const COOKIE_BYTES: usize = 8;

/// The text of an empty list.
const ANY: &str = "<any>";

/// The reason why a text is not a list of fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}`: {problem}")]
pub struct OxmTextError {
    /// The field as written.
    pub entry: String,
    /// The problem and the expected form.
    pub problem: String,
}

/// Formats the fields to the end of `r`. An unknown header is printed as a number.
///
/// # Errors
/// The bytes end within a field.
pub(crate) fn format(r: &Reader<'_>) -> Result<String, Malformed> {
    let mut r = r.clone();
    let mut texts = Vec::new();
    while !r.is_empty() {
        let header = OxmHeader::decode(&mut r)?;
        let mut payload = r.sub(header.length)?;
        let id = match header.id.class {
            EXPERIMENTER => WireId::of_experimenter(payload.u32()?, header.id.number),
            _ => header.id,
        };
        let name = name(&header, id);
        let half = payload.len() / (1 + usize::from(header.masked));
        let value = hex(payload.bytes(half)?);
        texts.push(match header.masked {
            true => format!("{name}_W({value}/{})", hex(payload.rest())),
            false => format!("{name}({value})"),
        });
    }
    Ok(match texts.as_slice() {
        [] => ANY.to_owned(),
        texts => texts.join(", "),
    })
}

/// The name of a header without its mask. `id` includes the experimenter.
fn name(header: &OxmHeader, id: WireId) -> String {
    let cookie = COOKIE_BYTES << usize::from(header.masked);
    if header.id == COOKIE && header.length == cookie {
        return COOKIE_NAME.to_owned();
    }
    field(id).map_or_else(
        || format!("{:04x}{:02x}", id.class, id.number << 1),
        |field| field.header_name(id),
    )
}

/// The field of any of its headers.
fn field(id: WireId) -> Option<Field> {
    let onf = WireId::of_experimenter(ONF, id.number);
    // ONF's fields became basic fields in 1.5, with the same numbers.
    let moved = (id.class == BASIC).then(|| Field::from_oxm(onf)).flatten();
    Field::from_oxm(id)
        .or_else(|| Field::from_nxm(id))
        .or(moved)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses a list of fields to bytes. An empty text and `<any>` are an empty list.
///
/// # Errors
/// Returns the first invalid field: an unknown name, or a value of another length.
pub fn parse_oxm_text(text: &str) -> Result<Vec<u8>, OxmTextError> {
    let mut bytes = Vec::new();
    let text = text.trim();
    let mut rest = if text == ANY { "" } else { text };
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return Ok(bytes);
        }
        let end = rest.find(')').map_or(rest.len(), |end| end + 1);
        let (entry, tail) = rest.split_at(end);
        append_entry(entry, &mut bytes).map_err(|problem| OxmTextError {
            entry: entry.to_owned(),
            problem,
        })?;
        rest = tail;
    }
}

/// Appends a field.
fn append_entry(entry: &str, bytes: &mut Vec<u8>) -> Result<(), String> {
    let inside = entry
        .strip_suffix(')')
        .and_then(|text| text.split_once('('));
    let (name, value) = inside.ok_or("an entry is NAME(VALUE), or NAME_W(VALUE/MASK)")?;
    let (name, masked) = match name.strip_suffix("_W") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let (id, length) = header_of(name).ok_or("no field has this name")?;
    let (value, mask) = match (value.split_once('/'), masked) {
        (Some((value, mask)), true) => (digits(value, length)?, digits(mask, length)?),
        (None, false) => (digits(value, length)?, Vec::new()),
        (None, true) => return Err("_W requires a mask: VALUE/MASK".to_owned()),
        (Some(_), false) => return Err("a mask requires a name that ends in _W".to_owned()),
    };
    let experimenter = match id.class {
        EXPERIMENTER => id.experimenter.to_be_bytes().to_vec(),
        _ => Vec::new(),
    };
    let count = experimenter.len() + value.len() + mask.len();
    bytes.extend(id.class.to_be_bytes());
    bytes.push(id.number << 1 | u8::from(masked));
    bytes.push(u8::try_from(count).expect("two values of a field are short"));
    for part in [experimenter, value, mask] {
        bytes.extend(part);
    }
    Ok(())
}

/// The header with this name, and the length of its value in bytes.
fn header_of(name: &str) -> Option<(WireId, usize)> {
    if name == COOKIE_NAME {
        return Some((COOKIE, COOKIE_BYTES));
    }
    Field::all().find_map(|row| {
        let moved = row.oxm.filter(|id| id.experimenter == ONF);
        let moved = moved.map(|id| WireId::new(BASIC, id.number));
        let ids = [row.nxm, row.oxm, moved].into_iter().flatten();
        let mut named = ids.filter(|id| row.field.header_name(*id) == name);
        Some((named.next()?, row.field.bytes()))
    })
}

/// Parses `length` bytes from pairs of hexadecimal digits.
fn digits(text: &str, length: usize) -> Result<Vec<u8>, String> {
    let text = text.trim();
    let wrong = || format!("expected {} hexadecimal digits", 2 * length);
    if text.len() != 2 * length || !text.bytes().all(|letter| letter.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let starts = (0..text.len()).step_by(2);
    starts
        .map(|start| u8::from_str_radix(&text[start..start + 2], 16).map_err(|_| wrong()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::version::Version;

    fn reformat(text: &str) -> Result<String, OxmTextError> {
        let bytes = parse_oxm_text(text)?;
        let read = format(&Reader::new(&bytes, Dialect::new(Version::V10)));
        Ok(read.expect("own encoding decodes"))
    }

    #[test]
    fn oxm_text_round_trips() {
        for text in [
            "<any>",
            "NXM_OF_IN_PORT(0001), NXM_OF_ETH_TYPE(0800)",
            "NXM_OF_VLAN_TCI_W(100a/1fff)",
            "OXM_OF_IPV4_SRC_W(0a000000/ff000000)",
            "NXM_NX_COOKIE_W(0000000000000009/00000000000000ff)",
            "NXM_NX_MPLS_TTL(40)",
            "ONFOXM_ET_TCP_FLAGS(0002), OXM_OF_TCP_FLAGS(0002)",
            "OXM_OF_PKT_REG1(0000000000000012)",
        ] {
            assert_eq!(reformat(text).as_deref(), Ok(text));
        }
        assert_eq!(reformat("").as_deref(), Ok(ANY));
    }

    #[test]
    fn malformed_entry_error_names_problem() {
        let problem = |text: &str| reformat(text).map_err(|bad| bad.problem);
        let expected = |text: &str| Err(text.to_owned());
        assert_eq!(
            problem("NXM_OF_IN_PORT(1)"),
            expected("expected 4 hexadecimal digits")
        );
        assert_eq!(
            problem("NXM_OF_NONE(1)"),
            expected("no field has this name")
        );
        assert_eq!(
            problem("NXM_OF_IN_PORT(0001/0001)"),
            expected("a mask requires a name that ends in _W")
        );
        assert_eq!(
            problem("NXM_OF_IN_PORT_W(0001)"),
            expected("_W requires a mask: VALUE/MASK")
        );
        assert_eq!(
            problem("tcp"),
            expected("an entry is NAME(VALUE), or NAME_W(VALUE/MASK)")
        );
    }

    #[test]
    fn header_names_are_unique() {
        for row in Field::all() {
            for id in [row.nxm, row.oxm].into_iter().flatten() {
                let found = header_of(&row.field.header_name(id));
                assert_eq!(found, Some((id, row.field.bytes())));
            }
        }
    }
}
