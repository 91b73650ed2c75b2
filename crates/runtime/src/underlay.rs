//! Follows the kernel's routes, addresses and neighbours by rtnetlink, and starts neighbour
//! resolution in the kernel. After any change, all tables are listed again a moment later, so lost
//! or reordered messages do no harm.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::{Stream, StreamExt, TryStreamExt};
use packet::MacAddr;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::{AddressAttribute, AddressMessage};
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteType,
};
use rtnetlink::{Handle, MulticastGroup, new_multicast_connection};
use tokio::sync::mpsc::UnboundedReceiver;

use super::inbox::{Inbox, Input};
use switch::underlay::{KernelAddress, KernelNeighbour, KernelRoute, KernelTables};

/// The multicast groups of rtnetlink to follow.
const GROUPS: [MulticastGroup; 5] = [
    MulticastGroup::Neigh,
    MulticastGroup::Ipv4Ifaddr,
    MulticastGroup::Ipv6Ifaddr,
    MulticastGroup::Ipv4Route,
    MulticastGroup::Ipv6Route,
];

/// The longest gap between changes that are handled together.
const COALESCE_TIME: Duration = Duration::from_millis(10);

/// The limit of changes that are handled together: they may never stop.
const COALESCE_MAX: usize = 256;

/// The limit of routes and of neighbours: a full Internet table has a million, of which tunnels
/// need few.
const ENTRIES_MAX: usize = 16_384;

/// The pause before a failed listing or connection is repeated.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The time limit of a listing, of which the kernel may lose the end.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// A host to resolve, with the index of the interface that it is behind.
pub(crate) type ResolveRequest = (u32, IpAddr);

/// Follows the tables until the runtime ends or the sender of requests is dropped; routes only if
/// `takes_routes`. If the connection is lost, a new one is made.
pub(crate) async fn follow(
    inbox: Inbox,
    mut requests: UnboundedReceiver<ResolveRequest>,
    takes_routes: bool,
) {
    let mut failures = 0_u64;
    while !requests.is_closed() {
        match new_multicast_connection(&GROUPS) {
            Ok((connection, handle, messages)) => {
                tokio::spawn(connection);
                serve(&handle, messages, &inbox, &mut requests, takes_routes).await;
                if requests.is_closed() {
                    return;
                }
                tracing::error!("lost the netlink connection for routes; connecting again");
            }
            Err(error) => {
                failures += 1;
                // It may be forbidden for ever.
                if failures.is_power_of_two() {
                    tracing::warn!(%error, failures, "cannot follow routes");
                }
            }
        }
        tokio::time::sleep(RETRY_PAUSE).await;
        // Requests of this time are repeated by their frames.
        while requests.try_recv().is_ok() {}
    }
}

/// Follows the tables until the connection is lost or the sender of requests is dropped.
async fn serve<M>(
    handle: &Handle,
    mut messages: impl Stream<Item = M> + Unpin,
    inbox: &Inbox,
    requests: &mut UnboundedReceiver<ResolveRequest>,
    takes_routes: bool,
) {
    let mut is_listed = list(handle, inbox, takes_routes).await;
    loop {
        tokio::select! {
            message = messages.next() => {
                if message.is_none() {
                    return;
                }
                // The changes right behind it are covered by the same listing.
                for _ in 0..COALESCE_MAX {
                    match tokio::time::timeout(COALESCE_TIME, messages.next()).await {
                        Ok(Some(_)) => {}
                        Ok(None) | Err(_) => break,
                    }
                }
                is_listed = list(handle, inbox, takes_routes).await;
            }
            requests = requests.recv() => match requests {
                Some((index, address)) => resolve(handle, index, address).await,
                None => return,
            },
            // A listing fails if the tables change meanwhile.
            () = tokio::time::sleep(RETRY_PAUSE), if !is_listed => {
                is_listed = list(handle, inbox, takes_routes).await;
            }
        }
    }
}

/// Starts neighbour resolution in the kernel; the result is a neighbour message.
async fn resolve(handle: &Handle, index: u32, address: IpAddr) {
    let request = handle.neighbours().add(index, address);
    let request = request
        .flags(NeighbourFlags::Use)
        .state(NeighbourState::None)
        .replace();
    if let Err(error) = request.execute().await {
        tracing::debug!(%address, %error, "cannot request a neighbour from the kernel");
    }
}

/// Reports the tables. Returns false if they cannot be listed.
async fn list(handle: &Handle, inbox: &Inbox, takes_routes: bool) -> bool {
    match tokio::time::timeout(LIST_TIMEOUT, read(handle, takes_routes)).await {
        Ok(Ok(tables)) => {
            warn_of_limit(&tables);
            inbox.send(Input::Underlay(Box::new(tables)));
            true
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot list routes; trying again");
            false
        }
        Err(_) => {
            tracing::warn!("the kernel does not end its list of routes; trying again");
            false
        }
    }
}

/// Logs once that a table is longer than its limit.
fn warn_of_limit(tables: &KernelTables) {
    static IS_LOGGED: AtomicBool = AtomicBool::new(false);
    let is_full = [tables.routes.len(), tables.neighbours.len()].contains(&ENTRIES_MAX);
    if is_full && !IS_LOGGED.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            "tunnels use the first {ENTRIES_MAX} routes and neighbours of the system only"
        );
    }
}

async fn read(handle: &Handle, takes_routes: bool) -> io::Result<KernelTables> {
    let failed = |error: rtnetlink::Error| io::Error::other(error.to_string());
    let mut tables = KernelTables::default();
    let families: &[_] = match takes_routes {
        true => &[AddressFamily::Inet, AddressFamily::Inet6],
        false => &[],
    };
    for family in families {
        let mut request = RouteMessage::default();
        request.header.address_family = *family;
        let mut routes = handle.route().get(request).execute();
        while let Some(message) = routes.try_next().await.map_err(failed)? {
            if tables.routes.len() < ENTRIES_MAX {
                tables.routes.extend(route(&message));
            }
        }
    }
    let mut addresses = handle.address().get().execute();
    while let Some(message) = addresses.try_next().await.map_err(failed)? {
        tables.addresses.extend(address(&message));
    }
    let mut neighbours = handle.neighbours().get().execute();
    while let Some(message) = neighbours.try_next().await.map_err(failed)? {
        if tables.neighbours.len() < ENTRIES_MAX {
            tables.neighbours.extend(neighbour(&message));
        }
    }
    Ok(tables)
}

fn to_ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

/// Parses a unicast route of the main table; of a multipath route, the first next hop.
fn route(message: &RouteMessage) -> Option<KernelRoute> {
    let header = &message.header;
    let table = message.attributes.iter().find_map(|one| match one {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    let main = u32::from(RouteHeader::RT_TABLE_MAIN);
    if header.kind != RouteType::Unicast || table.unwrap_or_else(|| header.table.into()) != main {
        return None;
    }
    let mut route = KernelRoute {
        to: match header.address_family {
            AddressFamily::Inet => Ipv4Addr::UNSPECIFIED.into(),
            _ => Ipv6Addr::UNSPECIFIED.into(),
        },
        len: header.destination_prefix_length,
        gateway: None,
        source: None,
        index: 0,
        metric: 0,
    };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(to) => route.to = to_ip(to)?,
            RouteAttribute::Gateway(gateway) => route.gateway = to_ip(gateway),
            RouteAttribute::PrefSource(source) => route.source = to_ip(source),
            RouteAttribute::Oif(index) => route.index = *index,
            RouteAttribute::Priority(metric) => route.metric = *metric,
            RouteAttribute::MultiPath(hops) => {
                let first = hops.first()?;
                route.index = first.interface_index;
                route.gateway = first.attributes.iter().find_map(|one| match one {
                    RouteAttribute::Gateway(gateway) => to_ip(gateway),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    (route.index != 0).then_some(route)
}

fn address(message: &AddressMessage) -> Option<KernelAddress> {
    // On a point-to-point link, the IPv4 address attribute is the peer's and the local one is ours.
    let mut found = None;
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(local) => found = Some(*local),
            AddressAttribute::Address(address) => found = found.or(Some(*address)),
            _ => {}
        }
    }
    Some(KernelAddress {
        index: message.header.index,
        address: found?,
    })
}

/// Parses a neighbour whose MAC address is known.
fn neighbour(message: &NeighbourMessage) -> Option<KernelNeighbour> {
    match message.header.state {
        NeighbourState::Incomplete | NeighbourState::Failed | NeighbourState::None => return None,
        _ => {}
    }
    let (mut host, mut mac) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => {
                host = Some((*address).into());
            }
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => {
                host = Some((*address).into());
            }
            NeighbourAttribute::LinkLayerAddress(bytes) => {
                mac = bytes.as_slice().try_into().ok().map(MacAddr);
            }
            _ => {}
        }
    }
    Some(KernelNeighbour {
        index: message.header.ifindex,
        address: host?,
        mac: mac?,
    })
}

#[cfg(test)]
mod tests {
    use std::iter;

    use base::sync::thread;
    use futures_util::stream;
    use rtnetlink::new_connection;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn kernel_tables_are_listed_again_after_any_message_and_a_failure_is_noticed() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            let (connection, handle, _messages) = new_connection().expect("netlink");
            let connection = tokio::spawn(connection);
            let (inbox, mut inputs) = Inbox::new(thread::current());
            let (_requests_in, mut requests) = unbounded_channel();
            // One message of any kind, and the end of a lost connection.
            serve(&handle, stream::iter([()]), &inbox, &mut requests, true).await;
            let listings = iter::from_fn(|| inputs.try_recv().ok());
            let listings = listings.filter(|input| matches!(input, Input::Underlay(_)));
            assert_eq!(listings.count(), 2);
            connection.abort();
            let _ = connection.await;
            assert!(!list(&handle, &inbox, true).await);
            assert!(inputs.try_recv().is_err());
        });
    }
}
