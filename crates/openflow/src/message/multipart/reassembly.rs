//! Questions and answers that come in several messages, put together.

use super::{MultipartReply, MultipartRequest};

impl MultipartReply {
    /// Takes in what a later message of the same answer told, or gives it back if
    /// it tells of something else.
    ///
    /// # Errors
    /// `more` is about another kind of thing, or about one that has no lists.
    pub fn append(&mut self, more: Self) -> Result<(), Self> {
        match (self, more) {
            (Self::Flow(_, all), Self::Flow(_, mut more)) => all.append(&mut more),
            (Self::Table(all), Self::Table(mut more)) => all.append(&mut more),
            (Self::Port(all), Self::Port(mut more)) => all.append(&mut more),
            (Self::Queue(all), Self::Queue(mut more)) => all.append(&mut more),
            (Self::Group(all), Self::Group(mut more)) => all.append(&mut more),
            (Self::GroupDesc(all), Self::GroupDesc(mut more)) => all.append(&mut more),
            (Self::Meter(all), Self::Meter(mut more)) => all.append(&mut more),
            (Self::MeterConfig(all), Self::MeterConfig(mut more)) => all.append(&mut more),
            (Self::TableFeatures(all), Self::TableFeatures(mut more)) => all.append(&mut more),
            (Self::PortDesc(all), Self::PortDesc(mut more)) => all.append(&mut more),
            (Self::TableDesc(all), Self::TableDesc(mut more)) => all.append(&mut more),
            (Self::QueueDesc(all), Self::QueueDesc(mut more)) => all.append(&mut more),
            (Self::FlowMonitor(all), Self::FlowMonitor(mut more)) => all.append(&mut more),
            (Self::Ipfix(of, all), Self::Ipfix(also, mut more)) if *of == also => {
                all.append(&mut more);
            }
            (Self::ControllerStatus(all), Self::ControllerStatus(mut more)) => {
                all.append(&mut more);
            }
            (_, more) => return Err(more),
        }
        Ok(())
    }
}

impl MultipartRequest {
    /// Takes in what a later message of the same question says, or gives it back if it
    /// is another question.
    ///
    /// # Errors
    /// `more` is about another kind of thing, or about one that has no lists.
    pub fn append(&mut self, more: Self) -> Result<(), Self> {
        match (self, more) {
            (Self::TableFeatures(all), Self::TableFeatures(mut more)) => all.append(&mut more),
            (Self::FlowMonitor(all), Self::FlowMonitor(mut more)) => all.append(&mut more),
            (_, more) => return Err(more),
        }
        Ok(())
    }

    /// How many things it lists, if it is a list.
    #[must_use]
    pub const fn entries(&self) -> usize {
        match self {
            Self::TableFeatures(all) => all.len(),
            Self::FlowMonitor(all) => all.len(),
            _ => 0,
        }
    }
}
