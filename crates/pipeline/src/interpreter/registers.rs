//! Pipeline fields of a packet in execution, and the actions that write them.

use base::PortNo;
use flow::field::{FieldView, widen};
use flow::{Field, PipelineFields, Wide};

use super::Execution;
use super::actions::{low_u16, low_u32};

impl Execution<'_> {
    /// Returns the pipeline fields.
    pub(crate) fn registers(&mut self) -> PipelineFields {
        self.sync_registers();
        self.registers.clone()
    }

    /// Copies ingress port and output of the action set to the pipeline fields.
    pub(crate) fn sync_registers(&mut self) {
        self.registers.in_port = self.in_port;
        self.registers.set_output = self.set.output();
    }

    /// Writes a whole pipeline field. Returns false for a field of the packet or a tunnel option.
    pub(crate) fn set_register(&mut self, field: Field, value: u128) -> bool {
        if let Some(FieldView::Registers { first, count }) = field.view() {
            for above in 0..count {
                let part = u128::from(low_u32(value >> (32 * above)));
                self.set_register(Field::from_register(first + count - 1 - above), part);
            }
            return true;
        }
        match field {
            Field::InPort => self.in_port = PortNo(low_u32(value)),
            Field::NxInPort => {
                let port = widen(low_u16(value));
                return self.set_register(Field::InPort, port.into());
            }
            // Only the lookup writes it.
            Field::ConjId => return false,
            field if self.registers.set(field, value) => {
                self.has_own_fields |= field.register().is_none() && field != Field::Metadata;
            }
            _ => return false,
        }
        self.key.set(field, value);
        true
    }

    /// Returns the value of a tunnel option; zero if it is absent.
    pub(crate) fn option(&self, field: Field) -> Wide {
        self.registers.options.value(field).unwrap_or_default()
    }

    /// Writes the masked bits of a tunnel option, up to its mapped length. The option is present
    /// from then on, if the field is mapped.
    pub(crate) fn set_option(&mut self, field: Field, value: Wide, mask: Wide) {
        if let Some(room) = self.pipeline.tunnel_option_mask(field) {
            self.has_own_fields = true;
            let written = self.option(field) & !mask | value & mask;
            self.registers.options.set(field, written & room);
            self.key.set_options(&self.registers.options);
        }
    }

    /// Removes a tunnel option.
    pub(crate) fn delete_option(&mut self, field: Field) {
        self.has_own_fields = true;
        self.registers.options.remove(field);
        self.key.set_options(&self.registers.options);
    }
}
