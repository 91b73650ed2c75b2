//! Pipeline fields that rules write: metadata, the general registers and the output of the
//! action set. They are written in the packed key, and copied to [`PipelineFields`] only for the
//! consumers that need all fields (the interpreter, packet-ins, `select` groups).

use base::PortNo;
use conntrack::{AddressFamily, CtState, CtZone, SteadyPacket};
use flow::field::{FieldView, REGISTERS};
use flow::{ConnectionFields, Field, MetadataWrite, PipelineFields, Subfield};
use packet::{PlainEnds, PlainHop};

use super::{FieldPosition, HEADER_WORDS, KEY_WORDS, PackedKey, halves, position, word};

/// A write to bits of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldWrite {
    word: u8,
    /// Zero outside `mask`.
    value: u64,
    mask: u64,
}

impl FieldWrite {
    /// Returns the write of these bits of a field, or `None` if the field is neither the
    /// metadata nor a view of general registers, or the bits are in several words.
    pub(crate) fn of_field(field: Field, value: u128, mask: u128) -> Option<Self> {
        if let Some(FieldView::Registers { first, count }) = field.view() {
            return Self::of_registers(first, count, (value & mask, mask));
        }
        let position = writable_position(field)?;
        let word = |bits: u128| halves(bits).1 << position.shift;
        Some(Self {
            word: position.word.to_le_bytes()[0],
            value: word(value & mask),
            mask: word(mask),
        })
    }
}

impl FieldWrite {
    /// Returns the write of these bits of two or four registers.
    fn of_registers(first: usize, count: usize, (value, mask): (u128, u128)) -> Option<Self> {
        let (upper, lower) = (halves(mask).0, halves(mask).1);
        let (skipped, value, mask) = match count {
            2 => (0, halves(value).1, lower),
            _ if upper == 0 => (2, halves(value).1, lower),
            _ if lower == 0 => (0, halves(value).0, upper),
            _ => return None,
        };
        let position = position(Field::from_register(first + skipped))?;
        Some(Self {
            word: position.word.to_le_bytes()[0],
            value,
            mask,
        })
    }
}

impl From<MetadataWrite> for FieldWrite {
    fn from(write: MetadataWrite) -> Self {
        Self {
            word: word::METADATA.to_le_bytes()[0],
            value: write.value & write.mask,
            mask: write.mask,
        }
    }
}

/// Returns the upper and the lower half of a word.
const fn halves_of(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_be_bytes();
    [
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([e, f, g, h]),
    ]
}

/// Returns the position of the metadata or a general register, or `None` for other fields.
fn writable_position(field: Field) -> Option<FieldPosition> {
    let is_writable = field == Field::Metadata || field.register().is_some();
    is_writable.then(|| position(field))?
}

impl PackedKey {
    /// Key of a packet without tunnel metadata, before its headers are parsed.
    pub(crate) fn at_ingress() -> Self {
        let mut key = Self::new();
        key.fill_metadata(&PipelineFields::new(PortNo::ANY));
        key
    }

    /// Sets the pipeline fields that a packet has at ingress: those of its tunnel.
    pub(crate) fn set_ingress_fields(&mut self, fields: &PipelineFields) {
        self.fill_metadata(fields);
    }

    /// Returns the bits of general registers or of the metadata; zero for other fields.
    pub(crate) fn written_bits(&self, part: Subfield) -> u128 {
        if let Some(view) = part.field().view() {
            return self.bits_of_view(view, part);
        }
        let value = writable_position(part.field()).map_or(0, |position| {
            let bits = u128::from(self.0[position.word] >> position.shift);
            bits & part.field().full_mask()
        });
        part.of(value)
    }

    /// Returns the bits of a view of general registers; zero for other views.
    #[inline(never)]
    fn bits_of_view(&self, view: FieldView, part: Subfield) -> u128 {
        let value = view.read(|register| {
            let position = writable_position(register)?;
            let bits = u128::from(self.0[position.word] >> position.shift);
            Some(bits & register.full_mask())
        });
        part.of(value.unwrap_or(0))
    }

    /// Sets all pipeline fields but the id of a conjunction.
    pub(crate) fn set_fields(&mut self, fields: &PipelineFields) {
        self.fill_metadata(fields);
        self.0[word::MARK] = self.0[word::MARK] >> 32 << 32;
        self.fill_registers(&fields.general);
        self.fill_connection(fields.connection.as_deref());
    }

    /// Sets the ingress port; the presence bits stay.
    pub(crate) fn replace_in_port(&mut self, port: PortNo) {
        let ingress = &mut self.0[word::INGRESS];
        *ingress = *ingress << 32 >> 32 | u64::from(port.0) << 32;
    }

    /// Returns the fields of the connection, if the packet was tracked.
    pub(crate) fn connection(&self) -> Option<ConnectionFields> {
        if self.0[word::CONNECTION] == 0 {
            return None;
        }
        let [a, b, c, d, zone_high, zone_low, protocol, state] =
            self.0[word::CONNECTION].to_be_bytes();
        let wide = |word: usize| u128::from(self.0[word]) << 64 | u128::from(self.0[word + 1]);
        let [_, _, high, low, e, f, g, h] = self.0[word::CT_PORTS].to_be_bytes();
        Some(ConnectionFields {
            state,
            zone: u16::from_be_bytes([zone_high, zone_low]),
            mark: u32::from_be_bytes([a, b, c, d]),
            label: wide(word::CT_LABEL),
            protocol,
            v4: halves_of(self.0[word::CT_V4]),
            v6: [wide(word::CT_V6_SRC), wide(word::CT_V6_DST)],
            ports: [u16::from_be_bytes([e, f]), u16::from_be_bytes([g, h])],
            eth_type: u16::from_be_bytes([high, low]),
        })
    }

    /// Sets the fields of the connection.
    pub(crate) fn set_connection(&mut self, fields: &ConnectionFields) {
        self.fill_connection(Some(fields));
    }

    /// Sets the fields of the connection of a packet.
    pub(crate) fn set_steady_connection(&mut self, packet: &SteadyPacket) {
        self.0[word::CONNECTION] = u64::from(packet.mark) << 32
            | u64::from(packet.zone.0) << 16
            | u64::from(packet.protocol.0) << 8
            | u64::from(packet.state.0);
        self.fill_wide(word::CT_LABEL, packet.label);
        let wide = word::CT_V6_SRC..word::CT_PORTS;
        match packet.family {
            AddressFamily::V4 => {
                self.0[word::CT_V4] = packet.addresses[0];
                self.0[wide].fill(0);
            }
            AddressFamily::V6 => {
                self.0[word::CT_V4] = 0;
                self.0[wide].copy_from_slice(&packet.addresses);
            }
        }
        self.0[word::CT_PORTS] = u64::from(self.eth_type().0) << 32 | u64::from(packet.ports);
    }

    /// Sets the addresses and ports of a packet over IPv4 with ports.
    #[inline]
    pub(crate) fn set_ends_v4(&mut self, ends: PlainEnds) {
        self.0[word::NETWORK] = ends.addresses;
        let transport = &mut self.0[word::TRANSPORT];
        *transport = *transport >> 32 << 32 | u64::from(ends.ports);
    }

    /// Applies the rewrites of a router to the key of a packet of IP.
    pub(crate) fn set_hop(&mut self, hop: &PlainHop) {
        let addresses = [(word::ETH_DST, hop.eth_dst), (word::ETH_SRC, hop.eth_src)];
        for (index, address) in addresses {
            if let Some(address) = address {
                let rest = self.0[index] & 0xffff;
                self.0[index] = address.to_u64() << u16::BITS | rest;
            }
        }
        self.0[word::TRANSPORT] -= u64::from(hop.dec_ttl) << 40;
    }

    /// Returns the flags of the translation that was made when the packet was tracked before in
    /// this zone.
    #[inline]
    pub(crate) fn translated_in(&self, zone: CtZone) -> CtState {
        let word = self.0[word::CONNECTION];
        let [.., zone_high, zone_low, _, state] = word.to_be_bytes();
        match u16::from_be_bytes([zone_high, zone_low]) == zone.0 {
            true => CtState(state & CtState::NAT.0),
            false => CtState::NONE,
        }
    }

    /// Copies all pipeline fields but the ingress port and the connection from another key.
    pub(crate) fn copy_pipeline_fields(&mut self, other: &Self) {
        let fields = HEADER_WORDS..word::CONNECTION;
        self.0[fields.clone()].copy_from_slice(&other.0[fields]);
        self.0[word::TUNNEL_GTPU] = other.0[word::TUNNEL_GTPU];
    }

    /// Makes the packet one that is not tracked.
    pub(crate) fn clear_connection(&mut self) {
        if self.0[word::CONNECTION] != 0 {
            self.fill_connection(None);
        }
    }

    /// Resets the pipeline fields that rules write.
    pub(crate) fn reset_written_fields(&mut self) {
        self.clear_connection();
        self.0[word::METADATA] = 0;
        self.set_action_set_output(PortNo::UNSET);
        self.0[word::REGISTERS..word::CONNECTION].fill(0);
    }

    /// Writes bits of a word.
    #[inline]
    pub(crate) fn write(&mut self, write: FieldWrite) {
        let word = &mut self.0[usize::from(write.word) % KEY_WORDS];
        *word = *word & !write.mask | write.value;
    }

    /// Copies bits between the metadata and general registers.
    pub(crate) fn copy(&mut self, from: Subfield, to: Subfield) {
        self.set_bits(to, self.written_bits(from));
    }

    /// Writes the lower bits of `bits` to the metadata or a general register.
    pub(crate) fn set_bits(&mut self, to: Subfield, bits: u128) {
        let bits = to.place(bits);
        if let Some(write) = FieldWrite::of_field(to.field(), bits, to.mask()) {
            self.write(write);
        }
    }

    /// Sets `actset_output`.
    #[inline]
    pub(crate) fn set_action_set_output(&mut self, port: PortNo) {
        self.0[word::SET_OUTPUT] = port.0.into();
    }

    /// Copies the pipeline fields that rules write to `fields`.
    pub(crate) fn store_written_fields(&self, fields: &mut PipelineFields) {
        let upper = |word: u64| u32::try_from(word >> 32).expect("32 bits");
        let lower = |word: u64| upper(word << 32);
        fields.metadata = self.0[word::METADATA];
        fields.set_output = PortNo(lower(self.0[word::SET_OUTPUT]));
        let words = &self.0[word::REGISTERS..];
        for (number, word) in words.iter().take(REGISTERS / 2).enumerate() {
            fields.general[2 * number] = upper(*word);
            fields.general[2 * number + 1] = lower(*word);
        }
        fields.connection = self.connection().map(Box::new);
    }
}
