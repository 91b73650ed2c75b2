//! Reassembly of requests and replies that consist of several messages.

use super::{MultipartReply, MultipartRequest, decode_reply, decode_request};
use crate::codec::{Malformed, Reader};
use crate::message::Message;

impl MultipartReply {
    /// Decodes a reply, or a part of one.
    pub(in crate::message) fn decode_message(r: &mut Reader<'_>) -> Result<Message, Malformed> {
        let (reply, more) = decode_reply(r)?;
        Ok(Message::MultipartReply { reply, more })
    }

    /// Appends the entries of a later message of the same reply.
    ///
    /// # Errors
    /// Returns `more` if it has another type or is not a list.
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
    /// Decodes a request, or a part of one that another message continues.
    pub(in crate::message) fn decode_message(r: &mut Reader<'_>) -> Result<Message, Malformed> {
        Ok(match decode_request(r)? {
            (request, false) => Message::MultipartRequest(request),
            (request, true) => Message::MultipartFragment(request),
        })
    }

    /// Appends the entries of a later message of the same request.
    ///
    /// # Errors
    /// Returns `more` if it has another type or is not a list.
    pub fn append(&mut self, more: Self) -> Result<(), Self> {
        match (self, more) {
            (Self::TableFeatures(all), Self::TableFeatures(mut more)) => all.append(&mut more),
            (Self::FlowMonitor(all), Self::FlowMonitor(mut more)) => all.append(&mut more),
            (_, more) => return Err(more),
        }
        Ok(())
    }

    /// The number of entries of a list; zero for other requests.
    #[must_use]
    pub const fn entries(&self) -> usize {
        match self {
            Self::TableFeatures(all) => all.len(),
            Self::FlowMonitor(all) => all.len(),
            _ => 0,
        }
    }
}
