//! Follows the interfaces of this network namespace by rtnetlink and notifies the control thread.
//! After the kernel has lost messages (`ENOBUFS`), all interfaces are listed again.

use std::io;
use std::time::Duration;

use futures_util::stream::{Stream, StreamExt, TryStreamExt};
use packet::MacAddr;
use rtnetlink::packet_core::{NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::{Handle, MulticastGroup, new_multicast_connection};

use super::inbox::{Inbox, Input};
use switch::link::{Link, LinkEvent};

/// The pause before a failed listing or connection is repeated.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The time limit of a listing, of which the kernel may lose the end.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of attempts to list interfaces before the connection is replaced.
const LIST_ATTEMPTS: u32 = 5;

/// Follows interfaces until the runtime ends. Returns after the subscription, so that no change
/// after this call is missed. If the connection is lost, a new one is made.
pub(crate) async fn follow(inbox: Inbox) -> io::Result<()> {
    let (connection, handle, messages) = new_multicast_connection(&[MulticastGroup::Link])?;
    tokio::spawn(connection);
    let is_listed = list(&handle, &inbox).await;
    tokio::spawn(async move {
        if is_listed || list_reliably(&handle, &inbox).await {
            serve(&handle, messages, &inbox).await;
        }
        let mut failures = 0_u64;
        loop {
            failures += 1;
            if failures.is_power_of_two() {
                tracing::error!(failures, "lost the netlink connection for interfaces");
            }
            tokio::time::sleep(RETRY_PAUSE).await;
            match new_multicast_connection(&[MulticastGroup::Link]) {
                Ok((connection, handle, messages)) => {
                    tokio::spawn(connection);
                    if list_reliably(&handle, &inbox).await {
                        serve(&handle, messages, &inbox).await;
                    }
                }
                Err(error) => tracing::debug!(%error, "cannot follow interfaces"),
            }
        }
    });
    Ok(())
}

/// Reports the changes until the connection is lost, or interfaces cannot be listed.
async fn serve<A>(
    handle: &Handle,
    mut messages: impl Stream<Item = (NetlinkMessage<RouteNetlinkMessage>, A)> + Unpin,
    inbox: &Inbox,
) {
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
            NetlinkPayload::Overrun(_) => {
                tracing::info!("netlink messages were lost; listing all interfaces");
                if !list_reliably(handle, inbox).await {
                    return;
                }
            }
            _ => {}
        }
    }
}

/// Reports all existing interfaces, in several attempts if necessary: a listing fails if interfaces
/// change meanwhile. Returns false if none succeeded.
async fn list_reliably(handle: &Handle, inbox: &Inbox) -> bool {
    for _ in 0..LIST_ATTEMPTS {
        if list(handle, inbox).await {
            return true;
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
    false
}

/// Reports all existing interfaces. Returns false if they cannot be listed.
async fn list(handle: &Handle, inbox: &Inbox) -> bool {
    let links = handle.link().get().execute().try_collect::<Vec<_>>();
    match tokio::time::timeout(LIST_TIMEOUT, links).await {
        Ok(Ok(links)) => {
            let links = links.into_iter().filter_map(read_link).collect();
            inbox.send(Input::Link(LinkEvent::All(links)));
            true
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot list interfaces; trying again");
            false
        }
        Err(_) => {
            tracing::warn!("the kernel does not end its list of interfaces; trying again");
            false
        }
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

#[cfg(test)]
mod tests {
    use base::sync::thread;
    use futures_util::stream;
    use rtnetlink::new_connection;
    use rtnetlink::packet_core::NetlinkHeader;

    use super::*;

    #[test]
    fn netlink_overrun_is_replaced_by_a_listing_and_a_lost_connection_is_noticed() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            let (connection, handle, _messages) = new_connection().expect("netlink");
            let connection = tokio::spawn(connection);
            let (inbox, mut inputs) = Inbox::new(thread::current());
            let overrun = NetlinkPayload::Overrun(Vec::new());
            let overrun = NetlinkMessage::new(NetlinkHeader::default(), overrun);
            // Returns at the end of the stream, which is that of a lost connection.
            serve(&handle, stream::iter([(overrun, ())]), &inbox).await;
            let all = inputs.try_recv();
            assert!(matches!(all, Ok(Input::Link(LinkEvent::All(_)))));
            connection.abort();
            let _ = connection.await;
            assert!(!list(&handle, &inbox).await);
            assert!(inputs.try_recv().is_err());
        });
    }
}
