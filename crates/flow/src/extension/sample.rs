//! The action `sample`: reports packets to collectors.

use std::fmt;

use base::PortNo;

use super::Subfield;

/// Parameters of the action `sample`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleAction {
    /// Sampling probability in units of 1/65,535; at least one.
    pub probability: u16,
    /// The set of collectors.
    pub collectors: u32,
    /// IPFIX's observation domain.
    pub domain: SampleId,
    /// IPFIX's observation point.
    pub point: SampleId,
    /// Port that the report concerns, if any.
    pub port: Option<PortNo>,
    /// Direction of the frame at that port.
    pub direction: SampleDirection,
}

/// Direction of a sampled frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleDirection {
    /// Not specified.
    #[default]
    Unspecified,
    /// In.
    Ingress,
    /// Out.
    Egress,
}

/// An identifier in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleId {
    /// A constant.
    Number(u32),
    /// At most [`SampleId::BITS`] bits of a field of the packet.
    Subfield(Subfield),
}

impl SampleAction {
    /// Returns the bits of fields that the action reads.
    pub fn sources(&self) -> impl Iterator<Item = Subfield> + use<> {
        let ids = [self.domain, self.point].into_iter();
        ids.filter_map(|id| match id {
            SampleId::Subfield(part) => Some(part),
            SampleId::Number(_) => None,
        })
    }

    /// Returns the action with `replace` applied to the bits of fields.
    #[must_use]
    pub fn with_sources(self, mut replace: impl FnMut(Subfield) -> SampleId) -> Self {
        let mut replaced = |id: SampleId| match id {
            SampleId::Subfield(part) => replace(part),
            SampleId::Number(_) => id,
        };
        Self {
            domain: replaced(self.domain),
            point: replaced(self.point),
            ..self
        }
    }
}

impl SampleId {
    /// Largest width of an identifier, in bits.
    pub const BITS: u16 = 32;

    /// Returns the constant. The bits of a field are zero: the execution of the action replaces
    /// them by their value.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Number(number) => number,
            Self::Subfield(_) => 0,
        }
    }
}

impl fmt::Display for SampleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => fmt::Display::fmt(number, f),
            Self::Subfield(part) => fmt::Display::fmt(part, f),
        }
    }
}
