//! Assertions on hosts behind a stateful firewall or a load balancer.

use std::net::{Ipv4Addr, SocketAddr};

use testbed::Failure;

use crate::support::host::{TestHost, copy_stream, pseudo_random_bytes};

/// Asserts that `inside` reaches `outside` by ICMP and TCP, and that `outside` opens no connection.
pub(crate) fn assert_only_replies_pass(
    inside: &TestHost<'_>,
    outside: &TestHost<'_>,
) -> Result<(), Failure> {
    inside.ping(outside.address, 5)?;
    assert!(
        !outside.can_ping(inside.address)?,
        "a new connection from outside passes"
    );
    let file = pseudo_random_bytes(1 << 20);
    let received = inside.transfer(outside, &file)?;
    assert!(received == file, "the file differs");
    Ok(())
}

/// Connects to a service of `server` at an address that may be translated, asserts that files
/// arrive unchanged in both directions, and returns the client's address as the server has it.
pub(crate) fn assert_service_works(
    client: &TestHost<'_>,
    service: (Ipv4Addr, u16),
    server: &TestHost<'_>,
) -> Result<SocketAddr, Failure> {
    let (address, port) = service;
    let listener = server.listen(port)?;
    let stream = client.connect(address, port)?;
    let (accepted, peer) = listener
        .accept()
        .map_err(Failure::to("accept a TCP connection"))?;
    let file = pseudo_random_bytes(1 << 20);
    assert!(copy_stream(&file, &stream, &accepted)? == file);
    assert!(copy_stream(&file, &accepted, &stream)? == file);
    Ok(peer)
}
