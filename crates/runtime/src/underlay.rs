//! Follows the kernel's routes, addresses and neighbours by rtnetlink, and has the kernel find
//! out where a host is. Whatever changes, all is listed again, a moment later: what is lost for
//! want of room, or comes in another order than it happened, does no harm.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use futures_util::stream::{StreamExt, TryStreamExt};
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

/// What is followed.
const GROUPS: [MulticastGroup; 5] = [
    MulticastGroup::Neigh,
    MulticastGroup::Ipv4Ifaddr,
    MulticastGroup::Ipv6Ifaddr,
    MulticastGroup::Ipv4Route,
    MulticastGroup::Ipv6Route,
];

/// Changes that come so close together are one.
const LULL: Duration = Duration::from_millis(10);

/// So many changes are one, at most: they may come without end.
const TOGETHER_MAX: usize = 256;

/// Routes and neighbours that are looked at, at most: a full table of the Internet has a
/// million, of which tunnels need few.
const ENTRIES_MAX: usize = 16_384;

/// A host that is to be found, and the number of the interface that it is behind.
pub(crate) type Wanted = (u32, IpAddr);

/// Follows until the runtime ends, or nobody asks any more; routes only if `takes_routes`.
pub(crate) async fn follow(
    inbox: Inbox,
    mut wanted: UnboundedReceiver<Wanted>,
    takes_routes: bool,
) {
    let (connection, handle, mut messages) = match new_multicast_connection(&GROUPS) {
        Ok(made) => made,
        Err(error) => return tracing::warn!(%error, "the routes cannot be followed"),
    };
    tokio::spawn(connection);
    list(&handle, &inbox, takes_routes).await;
    loop {
        tokio::select! {
            message = messages.next() => {
                if message.is_none() {
                    return;
                }
                // Those behind it are told with it.
                for _ in 0..TOGETHER_MAX {
                    match tokio::time::timeout(LULL, messages.next()).await {
                        Ok(Some(_)) => {}
                        Ok(None) | Err(_) => break,
                    }
                }
                list(&handle, &inbox, takes_routes).await;
            }
            wanted = wanted.recv() => match wanted {
                Some((index, address)) => look_for(&handle, index, address).await,
                None => return,
            },
        }
    }
}

/// Has the kernel find out where a host is; the answer comes as news of neighbours.
async fn look_for(handle: &Handle, index: u32, address: IpAddr) {
    let request = handle.neighbours().add(index, address);
    let request = request
        .flags(NeighbourFlags::Use)
        .state(NeighbourState::None)
        .replace();
    if let Err(error) = request.execute().await {
        tracing::debug!(%address, %error, "the kernel was not asked for a neighbour");
    }
}

async fn list(handle: &Handle, inbox: &Inbox, takes_routes: bool) {
    match read(handle, takes_routes).await {
        Ok(tables) => inbox.send(Input::Underlay(Box::new(tables))),
        Err(error) => tracing::warn!(%error, "the routes could not be listed"),
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
        let mut asked = RouteMessage::default();
        asked.header.address_family = *family;
        let mut routes = handle.route().get(asked).execute();
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

fn plain(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

/// A route of the main table to other hosts; of several ways, the first.
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
            RouteAttribute::Destination(to) => route.to = plain(to)?,
            RouteAttribute::Gateway(gateway) => route.gateway = plain(gateway),
            RouteAttribute::PrefSource(source) => route.source = plain(source),
            RouteAttribute::Oif(index) => route.index = *index,
            RouteAttribute::Priority(metric) => route.metric = *metric,
            RouteAttribute::MultiPath(hops) => {
                let first = hops.first()?;
                route.index = first.interface_index;
                route.gateway = first.attributes.iter().find_map(|one| match one {
                    RouteAttribute::Gateway(gateway) => plain(gateway),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    (route.index != 0).then_some(route)
}

fn address(message: &AddressMessage) -> Option<KernelAddress> {
    // Of IPv4 the local one is ours, where the other end of a line has the address.
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

/// A neighbour whose station is known.
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
