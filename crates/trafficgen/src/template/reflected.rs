//! A template as it comes back from a far end that swaps addresses.

use super::{Encapsulation, FlowField, Template, Tunnel};

/// What a far end swaps before it sends a frame back, in its outermost headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reflection {
    /// The addresses of Ethernet: enough for a device that switches.
    Macs,
    /// Those of IP too: for one that routes.
    Addresses,
}

impl Template {
    /// Its frames, sent back.
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
    /// Where its bits are then.
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
