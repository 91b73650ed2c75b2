//! Flows: the flow of each frame, and the fields that distinguish flows.

use base::SplitMix64;

use super::{BadTemplate, FLOWS_MAX, Protocol};

/// The number of flows, their order, and the fields that distinguish them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flows {
    /// The number of flows, up to a million.
    pub count: u32,
    /// The order of flows.
    pub order: FlowOrder,
    /// The fields that distinguish flows. The bits of a flow's number are distributed to them in
    /// equal parts, the lowest to the first, and are exclusive-ored with the lowest bits of the
    /// field.
    pub fields: Vec<FlowField>,
}

/// The order in which frames belong to flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowOrder {
    /// Round robin.
    Sequential,
    /// Random, reproducible by the seed.
    Random {
        /// The seed of the order.
        seed: u64,
    },
}

/// A field that distinguishes flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowField {
    /// The Ethernet source address.
    SourceMac,
    /// The Ethernet destination address.
    DestinationMac,
    /// The IP source address.
    SourceAddress,
    /// The IP destination address.
    DestinationAddress,
    /// The source port of UDP or TCP.
    SourcePort,
    /// The destination port of UDP or TCP.
    DestinationPort,
}

impl FlowField {
    /// The number of bits that may differ; 20 bits of an address suffice for the most flows.
    const fn bits(self) -> u32 {
        match self {
            Self::SourceMac | Self::DestinationMac => 20,
            Self::SourceAddress | Self::DestinationAddress => 20,
            Self::SourcePort | Self::DestinationPort => 16,
        }
    }
}

impl Flows {
    /// One flow.
    pub const ONE: Self = Self {
        count: 1,
        order: FlowOrder::Sequential,
        fields: Vec::new(),
    };

    /// This many flows in round robin that differ in these fields.
    #[must_use]
    pub fn sequential(count: u32, fields: &[FlowField]) -> Self {
        Self {
            count,
            order: FlowOrder::Sequential,
            fields: fields.to_vec(),
        }
    }

    /// This many flows in random order that differ in these fields.
    #[must_use]
    pub fn random(count: u32, seed: u64, fields: &[FlowField]) -> Self {
        Self {
            count,
            order: FlowOrder::Random { seed },
            fields: fields.to_vec(),
        }
    }

    /// The flow of the frame `number`.
    #[must_use]
    pub fn of(&self, number: u64) -> u32 {
        let count = u64::from(self.count);
        let flow = match self.order {
            _ if count == 1 => 0,
            FlowOrder::Sequential => number % count,
            FlowOrder::Random { seed } => {
                let random =
                    SplitMix64::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next_u64();
                // The high half of the product: as uniform as the random number, without a
                // division.
                u64::try_from((u128::from(random) * u128::from(count)) >> 64)
                    .expect("less than count")
            }
        };
        u32::try_from(flow).expect("less than count")
    }

    /// The bits of a flow's number for each field.
    pub(super) fn bits_each(&self) -> u32 {
        let bits = (self.count - 1).checked_ilog2().map_or(0, |bits| bits + 1);
        let fields = u32::try_from(self.fields.len()).unwrap_or(u32::MAX);
        bits.div_ceil(fields.max(1))
    }

    pub(super) fn check(&self, protocol: Protocol) -> Result<(), BadTemplate> {
        let count = self.count;
        if !(1..=FLOWS_MAX).contains(&count) {
            return Err(BadTemplate::TooLarge {
                field: "the number of flows, at least 1,",
                requested: count,
                limit: FLOWS_MAX,
            });
        }
        if count > 1 && self.fields.is_empty() {
            return Err(BadTemplate::NoField { count });
        }
        let bits = self.bits_each();
        for &field in &self.fields {
            let is_port = matches!(field, FlowField::SourcePort | FlowField::DestinationPort);
            if is_port && protocol == Protocol::Icmp {
                return Err(BadTemplate::NoPorts(field));
            }
            let room = field.bits();
            if bits > room {
                return Err(BadTemplate::TooManyFlows {
                    count,
                    bits,
                    field,
                    room,
                });
            }
        }
        Ok(())
    }
}
