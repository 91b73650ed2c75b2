//! What rules write that goes with a frame: the metadata, the general registers and the
//! output of the action set. It stands among the words, and is put into [`PipelineFields`] only
//! for those who ask for more than words.

use base::PortNo;
use flow::field::REGISTERS;
use flow::{Field, MetadataWrite, PipelineFields, Subfield};

use super::{LANES, Lanes, Place, halves, lane, place};

/// Bits of a word that goes with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    lane: u8,
    /// Only bits of the mask.
    value: u64,
    mask: u64,
}

impl Write {
    /// Writes these bits of a field; none if it is neither the metadata nor a general
    /// register.
    pub(crate) fn of_field(field: Field, value: u128, mask: u128) -> Option<Self> {
        let place = place_of(field)?;
        let word = |bits: u128| halves(bits).1 << place.shift;
        Some(Self {
            lane: place.lane.to_le_bytes()[0],
            value: word(value & mask),
            mask: word(mask),
        })
    }
}

impl From<MetadataWrite> for Write {
    fn from(write: MetadataWrite) -> Self {
        Self {
            lane: lane::METADATA.to_le_bytes()[0],
            value: write.value & write.mask,
            mask: write.mask,
        }
    }
}

/// Where the field is, if it is the metadata or a general register.
fn place_of(field: Field) -> Option<Place> {
    let is_written = field == Field::Metadata || field.register().is_some();
    is_written.then(|| place(field))?
}

impl Lanes {
    /// Those of a frame of which nothing was read, and nothing written that goes with it.
    pub(crate) fn fresh() -> Self {
        let mut lanes = Self::new();
        lanes.known(&PipelineFields::new(PortNo::ANY));
        lanes
    }

    /// Takes in what goes with a frame when it comes in.
    pub(crate) fn arrive(&mut self, with: &PipelineFields) {
        self.known(with);
    }

    /// Nothing is written any more of what is written here.
    pub(crate) fn forget(&mut self) {
        self.0[lane::METADATA] = 0;
        self.put_set_output(PortNo::UNSET);
        self.0[lane::REGISTERS..].fill(0);
    }

    /// Writes bits of a word.
    #[inline]
    pub(crate) fn write(&mut self, write: Write) {
        let word = &mut self.0[usize::from(write.lane) % LANES];
        *word = *word & !write.mask | write.value;
    }

    /// Copies bits of the metadata or a general register to one or the other.
    pub(crate) fn copy(&mut self, from: Subfield, to: Subfield) {
        let value = place_of(from.field()).map_or(0, |place| {
            let bits = u128::from(self.0[place.lane] >> place.shift);
            bits & from.field().full_mask()
        });
        let bits = to.place(from.of(value));
        if let Some(write) = Write::of_field(to.field(), bits, to.mask()) {
            self.write(write);
        }
    }

    /// Puts another port in the place of that of the action set.
    #[inline]
    pub(crate) fn put_set_output(&mut self, port: PortNo) {
        self.0[lane::SET_OUTPUT] = port.0.into();
    }

    /// Puts what is written here into registers.
    pub(crate) fn tell(&self, registers: &mut PipelineFields) {
        let upper = |word: u64| u32::try_from(word >> 32).expect("32 bits");
        let lower = |word: u64| upper(word << 32);
        registers.metadata = self.0[lane::METADATA];
        registers.set_output = PortNo(lower(self.0[lane::SET_OUTPUT]));
        let words = &self.0[lane::REGISTERS..];
        for (number, word) in words.iter().take(REGISTERS / 2).enumerate() {
            registers.general[2 * number] = upper(*word);
            registers.general[2 * number + 1] = lower(*word);
        }
    }
}
