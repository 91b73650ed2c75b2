//! The description of a switch as text (OF 1.0.1, 5.3.5; OF 1.3.5, 7.3.5.1).

use flow::SwitchDescription;

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::message::WireFormat;

impl WireFormat for SwitchDescription {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            manufacturer: r.text(256)?,
            hardware: r.text(256)?,
            software: r.text(256)?,
            serial_number: r.text(32)?,
            datapath: r.text(256)?,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.text(256, &self.manufacturer);
        w.text(256, &self.hardware);
        w.text(256, &self.software);
        w.text(32, &self.serial_number);
        w.text(256, &self.datapath);
        Ok(())
    }
}
