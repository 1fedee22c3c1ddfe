// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections, and what a request may cost: each carries one request, which must come soon and
//! may not be long, and the number of connections is limited. Whoever is slow is slow alone.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::Site;
use crate::access::Refused;
use crate::pages;
use crate::routes::{self, Answer};

/// How many connections there are at most; others wait to be accepted.
const CONNECTIONS: usize = 256;

/// How long a request's head may take to arrive.
const HEAD: Duration = Duration::from_secs(10);

/// How long a request may take from its first byte to the last one of its answer.
const WHOLE: Duration = Duration::from_secs(300);

/// How long a request's head may be, in bytes.
const LONGEST: usize = 32 << 10;

/// How often is asked whether it is enough.
const PAUSE: Duration = Duration::from_millis(100);

/// How long answers that are under way may take then.
const FAREWELL: Duration = Duration::from_secs(5);

/// Takes connections until `cancel` says that it is enough.
pub async fn accept(listener: TcpListener, site: Arc<Site>, cancel: &AtomicBool) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    while !cancel.load(Ordering::SeqCst) {
        let Ok(place) = timeout(PAUSE, Arc::clone(&places).acquire_owned()).await else {
            continue;
        };
        match timeout(PAUSE, listener.accept()).await {
            Ok(Ok((stream, _))) => {
                let site = Arc::clone(&site);
                tokio::spawn(async move {
                    // That a client has gone, or was too slow, concerns only the client.
                    _ = timeout(WHOLE, converse(stream, site)).await;
                    drop(place);
                });
            }
            // Too many open files, for instance: those that end make room.
            Ok(Err(_)) => sleep(PAUSE).await,
            Err(_) => {}
        }
    }
    drop(listener);
    _ = timeout(FAREWELL, places.acquire_many(CONNECTIONS as u32)).await;
}

async fn converse(stream: TcpStream, site: Arc<Site>) {
    let service = service_fn(|request| {
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(respond(request, &site).await) }
    });
    _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(LONGEST)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn respond(request: Request<Incoming>, site: &Arc<Site>) -> Response<Full<Bytes>> {
    let text = |name| {
        let value: Option<&HeaderValue> = request.headers().get(name);
        value.and_then(|value| value.to_str().ok())
    };
    let asked = routes::Request {
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
    };
    let is_head = request.method() == Method::HEAD;
    let allowed = site
        .access
        .check(text(header::HOST), text(header::AUTHORIZATION));
    let answer = match allowed {
        Err(Refused::Host) => routes::wrong_host(&asked),
        Err(Refused::Token) => routes::wrong_token(&asked),
        Ok(()) if is_head || request.method() == Method::GET => site.answer(asked).await,
        Ok(()) => routes::wrong_method(&asked),
    };
    let is_known = text(header::IF_NONE_MATCH).is_some_and(|known| {
        let mut known = known
            .split(',')
            .map(|tag| tag.trim().trim_start_matches("W/"));
        answer.status == 200 && known.any(|tag| tag == answer.tag())
    });
    response(answer, is_head, is_known)
}

fn response(answer: Answer, is_head: bool, is_known: bool) -> Response<Full<Bytes>> {
    let status = StatusCode::from_u16(if is_known { 304 } else { answer.status });
    let mut response = Response::new(Full::default());
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, answer.kind);
    set(header::CONTENT_SECURITY_POLICY, pages::policy());
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::X_FRAME_OPTIONS, "DENY");
    set(header::REFERRER_POLICY, "no-referrer");
    // Kept, but asked for again each time: runs go on, and are removed.
    set(header::CACHE_CONTROL, "private, no-cache");
    if let Some(seconds) = answer.refresh_s {
        set(header::REFRESH, &seconds.to_string());
    }
    match answer.status {
        200 => set(header::ETAG, &answer.tag()),
        401 => set(
            header::WWW_AUTHENTICATE,
            "Basic realm=\"Punctual\", charset=\"UTF-8\"",
        ),
        405 => set(header::ALLOW, "GET, HEAD"),
        _ => {}
    }
    if is_head {
        set(header::CONTENT_LENGTH, &answer.body.len().to_string());
    } else if !is_known {
        *response.body_mut() = Full::new(Bytes::from(answer.body));
    }
    response
}
