//! A frame in a message: its fields in the form of a match.

use ::flow::field::Depth;
use ::flow::{Field, FlowKey, Match, PipelineFields};
use base::PortNo;
use packet::{Frame, Headers};

use super::Detail;
use super::text::PrintBuffer;
use packet::Transport;

/// Writes the frame's fields in a line, and its bytes if the verbosity includes them.
pub(super) fn print(bytes: &[u8], text: &mut PrintBuffer<'_>) {
    if text.context.detail >= Detail::BRIEF {
        text.end_line();
        writeln!(text, "{}", describe(bytes));
    }
    if text.context.detail >= Detail::FRAME_BYTES {
        text.plain_dump(bytes);
    }
}

/// The fields of a frame as deep as it parses, in the format in which `ovs-ofctl` prints a
/// packet-in.
#[must_use]
pub fn describe(bytes: &[u8]) -> String {
    let frame = Frame::from_bytes(bytes);
    let depths = Depth::ALL.into_iter().rev();
    let read = depths
        .flat_map(|depth| Headers::parse(&frame, depth))
        .next();
    let mut key = FlowKey::new();
    if let Some(headers) = &read {
        key.fill(headers, &PipelineFields::new(PortNo::ANY));
    }
    let fields = Field::all().filter(|row| row.field.view().is_none());
    let fields = fields
        .map(|row| row.field)
        .filter(|field| !is_metadata(*field));
    // A header field that does not parse is zero.
    let matching = fields.fold(Match::any(), |matching, field| {
        let value = key.get(field).unwrap_or(0);
        matching.clone().with(field, value).unwrap_or(matching)
    });
    let untagged = "vlan_tci=0x0000/0x1fff";
    let fields = matching.to_string().replace(untagged, "vlan_tci=0x0000");
    format!("{fields}{}", checksum(read.as_ref(), bytes))
}

/// Returns true if a field is not part of the frame.
fn is_metadata(field: Field) -> bool {
    use Field as F;
    field > F::Ipv6NdTll
        || matches!(
            field,
            F::InPort
                | F::InPhyPort
                | F::Metadata
                | F::TunnelId
                | F::PacketType
                | F::Ipv6Exthdr
                | F::ActsetOutput
        )
}

/// The checksum of the transport header, which is printed after the fields.
fn checksum(headers: Option<&Headers>, bytes: &[u8]) -> String {
    let Some(headers) = headers else {
        return String::new();
    };
    let (name, offset, length) = match headers.transport {
        Transport::None => return String::new(),
        Transport::Tcp(_) => ("tcp", 16, 2),
        Transport::Udp(_) => ("udp", 6, 2),
        Transport::Sctp(_) => ("sctp", 8, 4),
        Transport::Icmpv4(_) => ("icmp", 2, 2),
        Transport::Icmpv6(_) => ("icmp6", 2, 2),
    };
    let at = headers.transport_at().unwrap_or(0) + offset;
    let field = bytes.get(at..at + length).unwrap_or_default();
    let number = field
        .iter()
        .fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    format!(" {name}_csum:{number:x}")
}
