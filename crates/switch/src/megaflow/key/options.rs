//! Tunnel options: of a packet with their values, of a mask with the bits that count. An option of
//! a mask without bits counts by its presence alone.

use flow::{Field, TunnelOptions, Wide};

use super::KeyBits;
use crate::odp::OdpGeneveOption;

impl KeyBits {
    /// Returns the options.
    pub(in super::super) const fn options(&self) -> &TunnelOptions {
        &self.options
    }

    /// Adds bits of an option to a mask.
    pub(in super::super) fn add_option(&mut self, field: Field, bits: Wide) {
        let known = self.options.value(field).unwrap_or_default();
        self.options.set(field, known | bits);
    }

    /// Adds the options of another mask.
    pub(in super::super) fn add_options(&mut self, others: &TunnelOptions) {
        for (field, bits) in others.iter() {
            self.add_option(field, bits);
        }
    }

    /// Removes all options.
    pub(in super::super) fn clear_options(&mut self) {
        self.options = TunnelOptions::new();
    }

    /// Returns the options that a mask selects; absent ones remain absent.
    pub(super) fn masked_options(&self, mask: &Self) -> TunnelOptions {
        let mut masked = TunnelOptions::new();
        for (field, bits) in mask.options.iter() {
            if let Some(value) = self.options.value(field) {
                masked.set(field, value & bits);
            }
        }
        masked
    }

    /// Returns true if an option or a bit of one counts that does not count in the other mask.
    pub(super) fn has_more_options_than(&self, other: &Self) -> bool {
        self.options.iter().any(|(field, bits)| {
            let known = other.options.value(field);
            known.is_none_or(|known| !(bits & !known).is_zero())
        })
    }

    /// Sets the options of a Geneve tunnel.
    pub(in super::super) fn set_geneve(&mut self, options: Vec<OdpGeneveOption>) {
        self.geneve = options;
    }

    /// Returns the options of a Geneve tunnel.
    pub(in super::super) fn geneve(&self) -> &[OdpGeneveOption] {
        &self.geneve
    }

    /// Returns the Geneve options with the bits that a mask selects. Classes, types and lengths
    /// always count.
    pub(super) fn masked_geneve(&self, mask: &Self) -> Vec<OdpGeneveOption> {
        let masked = self.geneve.iter().enumerate().map(|(place, option)| {
            let mask = mask.geneve.get(place);
            let mask = mask.map_or(&[][..], |mask| mask.value.as_slice());
            let bits = mask.iter().copied().chain(std::iter::repeat(0));
            let value = option.value.iter().zip(bits);
            OdpGeneveOption {
                class: option.class,
                kind: option.kind,
                value: value.map(|(byte, bits)| byte & bits).collect(),
            }
        });
        masked.collect()
    }

    /// Returns the numbers of the options and the bytes of their values, and the Geneve options.
    pub(super) fn option_bytes(&self) -> impl Iterator<Item = u8> {
        let fields = self.options.iter().flat_map(|(field, value)| {
            let number = field.option().and_then(|number| u8::try_from(number).ok());
            number.into_iter().chain(value.to_be_bytes())
        });
        let geneve = self.geneve.iter().flat_map(|option| {
            let [high, low] = option.class.to_be_bytes();
            [high, low, option.kind]
                .into_iter()
                .chain(option.value.iter().copied())
        });
        fields.chain(geneve)
    }
}
