//! `/metrics` for Prometheus, by HTTP: each scrape is a connection of its own, a few are served
//! at once, and none for long. Who may ask is settled by the address that it listens at.

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

/// Where it is served.
const PATH: &str = "/metrics";

/// Scrapes at once; others wait their turn.
const CLIENTS_MAX: usize = 8;

/// How long a client may take to say what it wants.
const HEADER_PATIENCE: Duration = Duration::from_secs(5);

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of a request that are kept; hyper takes no less.
const REQUEST_LEN_MAX: usize = 8192;

/// Of how long to wait after a connection could not be taken: most likely files are short.
const RESPITE: Duration = Duration::from_millis(100);

/// Listens at `address`.
pub(crate) async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Serves clients, for ever.
pub(crate) async fn serve(listener: TcpListener, inbox: Inbox) {
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "a client of the metrics could not be taken");
                tokio::time::sleep(RESPITE).await;
                continue;
            }
        };
        let inbox = inbox.clone();
        tokio::spawn(async move {
            if timeout(PATIENCE, serve_client(stream, inbox))
                .await
                .is_err()
            {
                tracing::debug!("a client of the metrics was too slow");
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
        .header_read_timeout(HEADER_PATIENCE)
        .max_buf_size(REQUEST_LEN_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a client of the metrics was left");
    }
}

async fn respond(request: &Request<Incoming>, inbox: &Inbox) -> Response<Full<Bytes>> {
    let refused = |status: StatusCode, why: &'static str| {
        let mut response = Response::new(Full::from(why));
        *response.status_mut() = status;
        response
    };
    if request.uri().path() != PATH {
        return refused(StatusCode::NOT_FOUND, "what there is is /metrics\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = refused(StatusCode::METHOD_NOT_ALLOWED, "ask by GET\n");
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

/// What the switch tells; none if it ends.
async fn scrape(inbox: &Inbox) -> Option<String> {
    let (answer, wait) = oneshot::channel();
    inbox.send(Input::Telemetry(answer));
    let gathered = wait.await.ok()?;
    let told = tokio::task::spawn_blocking(move || exposition::text(gathered.finish()));
    told.await.ok()
}
