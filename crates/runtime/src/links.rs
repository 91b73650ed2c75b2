//! Follows the interfaces of this network namespace by rtnetlink and notifies the control thread.
//! After the kernel has lost messages (`ENOBUFS`), all interfaces are listed again.

use std::io;

use futures_util::stream::{StreamExt, TryStreamExt};
use packet::MacAddr;
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::{Handle, MulticastGroup, new_multicast_connection};

use super::inbox::{Inbox, Input};
use switch::link::{Link, LinkEvent};

/// Follows interfaces until the runtime ends. Returns after the subscription, so that no change
/// after this call is missed.
pub(crate) async fn follow(inbox: Inbox) -> io::Result<()> {
    let (connection, handle, mut messages) = new_multicast_connection(&[MulticastGroup::Link])?;
    tokio::spawn(connection);
    list(&handle, &inbox).await;
    tokio::spawn(async move {
        while let Some((message, _)) = messages.next().await {
            match message.payload {
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
                    if let Some(link) = read_link(link) {
                        inbox.send(Input::Link(LinkEvent::Present(link)));
                    }
                }
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)) => {
                    inbox.send(Input::Link(LinkEvent::Gone {
                        index: link.header.index,
                    }));
                }
                NetlinkPayload::Overrun(_) => list(&handle, &inbox).await,
                _ => {}
            }
        }
    });
    Ok(())
}

/// Reports all existing interfaces.
async fn list(handle: &Handle, inbox: &Inbox) {
    let links: Result<Vec<_>, _> = handle.link().get().execute().try_collect().await;
    match links {
        Ok(links) => {
            let links = links.into_iter().filter_map(read_link).collect();
            inbox.send(Input::Link(LinkEvent::All(links)));
        }
        Err(error) => tracing::warn!(%error, "cannot list interfaces"),
    }
}

fn read_link(message: LinkMessage) -> Option<Link> {
    let flags = message.header.flags;
    let mut link = Link {
        index: message.header.index,
        name: String::new(),
        up: flags.contains(LinkFlags::Up),
        carrier: flags.contains(LinkFlags::LowerUp),
        hw_addr: None,
    };
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::Address(bytes) => link.hw_addr = bytes.try_into().ok().map(MacAddr),
            _ => {}
        }
    }
    (!link.name.is_empty()).then_some(link)
}
