//! What goes with a frame besides its bytes, and how actions write it.

use base::PortNo;
use flow::field::{FieldView, widen};
use flow::{Field, PipelineFields, Wide};

use super::Execution;
use super::actions::{low_u16, low_u32};

impl Execution<'_> {
    /// What is known of the frame besides its bytes.
    pub(crate) fn registers(&mut self) -> PipelineFields {
        self.gather();
        self.registers.clone()
    }

    /// Puts among the registers what stands elsewhere.
    pub(crate) fn gather(&mut self) {
        self.registers.in_port = self.from;
        self.registers.set_output = self.set.output();
    }

    /// Writes `field` whole, if it is one that goes with the frame and no tunnel option's; else
    /// answers false.
    pub(crate) fn set_register(&mut self, field: Field, value: u128) -> bool {
        if let Some(FieldView::Registers { first, count }) = field.view() {
            for above in 0..count {
                let part = u128::from(low_u32(value >> (32 * above)));
                self.set_register(Field::from_register(first + count - 1 - above), part);
            }
            return true;
        }
        match field {
            Field::InPort => self.from = PortNo(low_u32(value)),
            Field::NxInPort => {
                let port = widen(low_u16(value));
                return self.set_register(Field::InPort, port.into());
            }
            // It is the lookup that writes it.
            Field::ConjId => return false,
            field if self.registers.set(field, value) => {}
            _ => return false,
        }
        self.key.set(field, value);
        true
    }

    /// The value of a tunnel option; zero without it.
    pub(crate) fn option(&self, field: Field) -> Wide {
        self.registers.options.value(field).unwrap_or_default()
    }

    /// Writes the masked bits of a tunnel option, no more than it has room for. With that it is
    /// there, unless nothing is bound to the field.
    pub(crate) fn set_option(&mut self, field: Field, value: Wide, mask: Wide) {
        if let Some(room) = self.pipeline.tunnel_option_mask(field) {
            let written = self.option(field) & !mask | value & mask;
            self.registers.options.set(field, written & room);
            self.key.set_options(&self.registers.options);
        }
    }

    /// Takes a tunnel option away.
    pub(crate) fn delete_option(&mut self, field: Field) {
        self.registers.options.remove(field);
        self.key.set_options(&self.registers.options);
    }
}
