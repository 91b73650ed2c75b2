//! `/metrics` for Prometheus, by HTTP. Each scrape is one connection; the number of concurrent
//! connections and their duration are limited. The listening address is the only access control.

mod exposition;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::inbox::{Inbox, Input};
use crate::accept_pause::AcceptPause;

/// The path of the metrics.
const PATH: &str = "/metrics";

/// The limit of concurrent scrapes; others wait.
const CLIENTS_MAX: usize = 8;

/// The time limit for the request header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// The time limit for one connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// The buffer for a request, in bytes; the minimum that hyper accepts.
const REQUEST_LEN_MAX: usize = 8192;

/// Binds a listener to `address`.
pub(crate) async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Serves clients until the runtime ends.
pub(crate) async fn serve(listener: TcpListener, inbox: Inbox) {
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    let mut pause = AcceptPause::new("metrics");
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let Some((stream, _)) = pause.check(listener.accept().await).await else {
            continue;
        };
        let inbox = inbox.clone();
        tokio::spawn(async move {
            if timeout(CONNECTION_TIMEOUT, serve_client(stream, inbox))
                .await
                .is_err()
            {
                tracing::debug!("metrics client timed out");
            }
            drop(place);
        });
    }
}

async fn serve_client(stream: TcpStream, inbox: Inbox) {
    let service = service_fn(move |request| {
        let inbox = inbox.clone();
        async move { Ok::<_, Infallible>(respond(&request, &inbox).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(REQUEST_LEN_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "metrics client disconnected");
    }
}

async fn respond(request: &Request<Incoming>, inbox: &Inbox) -> Response<Full<Bytes>> {
    let refused = |status: StatusCode, why: &'static str| {
        let mut response = Response::new(Full::from(why));
        *response.status_mut() = status;
        response
    };
    if request.uri().path() != PATH {
        return refused(StatusCode::NOT_FOUND, "not found: use /metrics\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = refused(
            StatusCode::METHOD_NOT_ALLOWED,
            "method not allowed: use GET\n",
        );
        let allowed = "GET, HEAD".parse().expect("it is plain text");
        response.headers_mut().insert(ALLOW, allowed);
        return response;
    }
    let Some(text) = scrape(inbox).await else {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "the switch is ending\n");
    };
    let mut response = Response::new(Full::from(text));
    let kind = exposition::CONTENT_TYPE.parse().expect("it is plain text");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Returns the metrics as text; none if the switch ends.
async fn scrape(inbox: &Inbox) -> Option<String> {
    let (answer, wait) = oneshot::channel();
    inbox.send(Input::Telemetry(answer));
    let snapshot = wait.await.ok()?;
    let text = tokio::task::spawn_blocking(move || exposition::text(snapshot.finish()));
    text.await.ok()
}
