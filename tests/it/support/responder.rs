//! A small HTTP server on a host, which answers each request with its own name and the client's
//! address.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use testbed::Failure;

use crate::support::host::TestHost;

/// Longest wait for a connection or for its bytes. A dropped packet is sent again after a second.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// A running server, which ends when this is dropped.
pub(crate) struct HttpResponder<'h, 'g> {
    host: &'h TestHost<'g>,
    port: u16,
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<'h, 'g> HttpResponder<'h, 'g> {
    /// Starts the server on a host.
    pub(crate) fn start(host: &'h TestHost<'g>, port: u16, name: &str) -> Result<Self, Failure> {
        let listener = host.listen(port)?;
        let is_ending = Arc::new(AtomicBool::new(false));
        let (name, ends) = (name.to_owned(), Arc::clone(&is_ending));
        Ok(Self {
            host,
            port,
            is_ending,
            thread: Some(thread::spawn(move || serve(&listener, &name, &ends))),
        })
    }
}

/// Answers requests until the server ends.
fn serve(listener: &TcpListener, name: &str, is_ending: &AtomicBool) {
    for stream in listener.incoming() {
        if is_ending.load(Ordering::Relaxed) {
            return;
        }
        // A client may have given up.
        if let Ok(mut stream) = stream {
            let _ = answer(&mut stream, name);
        }
    }
}

/// Reads a request and answers it.
fn answer(stream: &mut TcpStream, name: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_LIMIT))?;
    let mut request = [0; 256];
    if stream.read(&mut request)? > 0 {
        let client = stream.peer_addr()?.ip();
        write!(stream, "HTTP/1.0 200 OK\r\n\r\n{name} {client}")?;
    }
    Ok(())
}

impl Drop for HttpResponder<'_, '_> {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port);
        // The connection wakes the server.
        let woken = self
            .host
            .namespace
            .run(|| TcpStream::connect_timeout(&address.into(), REQUEST_LIMIT));
        if let (Ok(Ok(_)), Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

/// Requests a page from a server, and returns the server's name and this client's address
/// there; `None` if the connection is refused, or takes longer than `limit`.
pub(crate) fn http_get_within(
    host: &TestHost<'_>,
    server: Ipv4Addr,
    port: u16,
    limit: Duration,
) -> Result<Option<String>, Failure> {
    let address = SocketAddrV4::new(server, port).into();
    let request = || {
        let mut stream = TcpStream::connect_timeout(&address, limit)?;
        stream.set_read_timeout(Some(limit))?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        Ok::<_, std::io::Error>(page)
    };
    let page = host.namespace.run(request)?.ok();
    Ok(page.and_then(|page| Some(page.split_once("\r\n\r\n")?.1.to_owned())))
}

/// Requests a page from a server, which must answer.
pub(crate) fn http_get(
    host: &TestHost<'_>,
    server: Ipv4Addr,
    port: u16,
) -> Result<String, Failure> {
    let name = http_get_within(host, server, port, REQUEST_LIMIT)?;
    name.ok_or_else(|| Failure::Timeout {
        what: format!("the page of {server}:{port}"),
        limit: REQUEST_LIMIT,
    })
}
