//! Templates after reflection by a far end that swaps addresses.

use super::{Encapsulation, FlowField, Template, Tunnel};

/// The addresses in the outermost headers that a far end swaps before it reflects a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reflection {
    /// Ethernet addresses: enough for a device that bridges.
    Macs,
    /// Ethernet and IP addresses: for a device that routes.
    Addresses,
}

impl Template {
    /// The template of the reflected frames.
    #[must_use]
    pub fn reflected(&self, reflection: Reflection) -> Self {
        let mut back = self.clone();
        match &mut back.encapsulation {
            Encapsulation::Vxlan(tunnel)
            | Encapsulation::Gre(tunnel)
            | Encapsulation::Geneve(tunnel) => {
                let Tunnel {
                    source,
                    destination,
                    ..
                } = tunnel;
                std::mem::swap(&mut source.mac, &mut destination.mac);
                if reflection == Reflection::Addresses {
                    std::mem::swap(&mut source.ipv4, &mut destination.ipv4);
                }
                return back;
            }
            Encapsulation::Plain
            | Encapsulation::Vlan(_)
            | Encapsulation::QinQ { .. }
            | Encapsulation::Mpls(_) => {}
        }
        std::mem::swap(&mut back.source.mac, &mut back.destination.mac);
        if reflection == Reflection::Addresses {
            std::mem::swap(&mut back.source.ipv4, &mut back.destination.ipv4);
            std::mem::swap(&mut back.source.ipv6, &mut back.destination.ipv6);
        }
        for field in &mut back.flows.fields {
            *field = field.reflected(reflection);
        }
        back
    }
}

impl FlowField {
    /// The field that holds its bits after reflection.
    const fn reflected(self, reflection: Reflection) -> Self {
        match (self, reflection) {
            (Self::SourceMac, _) => Self::DestinationMac,
            (Self::DestinationMac, _) => Self::SourceMac,
            (Self::SourceAddress, Reflection::Addresses) => Self::DestinationAddress,
            (Self::DestinationAddress, Reflection::Addresses) => Self::SourceAddress,
            (field, _) => field,
        }
    }
}
