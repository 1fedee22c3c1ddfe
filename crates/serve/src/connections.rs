// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections: each carries one request, which must come soon and may not be long, and their
//! number is limited. A slow client delays only itself: if there are too many connections, one that
//! has not sent its request yet gives way, and one that reads nothing is dropped.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{self, AbortHandle};
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::Site;
use crate::access::Refused;
use crate::budget::Hold;
use crate::headers;
use crate::routes::{self, Answer, Content, Writer};

/// The length of a request's head up to which it is taken, in bytes. Hyper reads into a buffer that
/// grows up to twice as long, and takes what is whole in it.
const LONGEST: usize = 32 << 10;

/// The interval at which `cancel` is checked.
const PAUSE: Duration = Duration::from_millis(100);

/// The time for answers that are under way after that.
const FAREWELL: Duration = Duration::from_secs(5);

/// The size of a piece of an answer that is made while it is sent, in bytes, and the most that
/// wait.
const PIECE: usize = 64 << 10;
const PIECES: usize = 4;

/// Accepts connections until `cancel` is set.
pub async fn accept(listener: TcpListener, site: Arc<Site>, cancel: &AtomicBool) {
    let connections = site.limits.connections;
    let places = Arc::new(Semaphore::new(connections));
    let heads = Arc::new(Heads::default());
    while !cancel.load(Ordering::SeqCst) {
        match timeout(PAUSE, listener.accept()).await {
            Ok(Ok((stream, _))) => {
                let place = place(&places, &heads, cancel).await;
                heads.spawn(stream, &site, place);
            }
            // Too many open files, for instance: those that end make room.
            Ok(Err(_)) => sleep(PAUSE).await,
            Err(_) => {}
        }
    }
    drop(listener);
    _ = timeout(FAREWELL, places.acquire_many(connections as u32)).await;
}

/// A place among the connections. If there is none, the connection that has waited longest without
/// sending its request gives way.
async fn place(
    places: &Arc<Semaphore>,
    heads: &Heads,
    cancel: &AtomicBool,
) -> Option<OwnedSemaphorePermit> {
    while !cancel.load(Ordering::SeqCst) {
        if places.available_permits() == 0 {
            heads.end_oldest();
        }
        let place = timeout(PAUSE, Arc::clone(places).acquire_owned()).await;
        if let Ok(Ok(place)) = place {
            return Some(place);
        }
    }
    None
}

/// The connections that have not sent their request yet, oldest first.
#[derive(Default)]
struct Heads(Mutex<(u64, BTreeMap<u64, AbortHandle>)>);

impl Heads {
    fn spawn(
        self: &Arc<Self>,
        stream: TcpStream,
        site: &Arc<Site>,
        place: Option<OwnedSemaphorePermit>,
    ) {
        let (site, heads) = (Arc::clone(site), Arc::clone(self));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.0 += 1;
        let number = known.0;
        let begun = tokio::spawn(async move {
            let waits = Waits { heads, number };
            let whole = site.limits.whole;
            // That a client has gone, or was too slow, concerns only the client.
            _ = timeout(whole, converse(stream, site, waits)).await;
            drop(place);
        });
        known.1.insert(number, begun.abort_handle());
    }

    fn end_oldest(&self) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, oldest)) = known.1.pop_first() {
            oldest.abort();
        }
    }

    fn forget(&self, number: u64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.1.remove(&number);
    }
}

/// A connection among the [`Heads`], until it has sent its request, or ends.
struct Waits {
    heads: Arc<Heads>,
    number: u64,
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.heads.forget(self.number);
    }
}

async fn converse(stream: TcpStream, site: Arc<Site>, waits: Waits) {
    let limits = site.limits.clone();
    let service = service_fn(|request| {
        waits.heads.forget(waits.number);
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(respond(request, &site).await) }
    });
    _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(LONGEST)
        .keep_alive(false)
        .serve_connection(TokioIo::new(Impatient::new(stream, limits.stall)), service)
        .await;
}

/// A connection that ends if the client reads nothing of what is written for `stall`.
struct Impatient {
    stream: TcpStream,
    stall: Duration,
    until: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl Impatient {
    fn new(stream: TcpStream, stall: Duration) -> Self {
        Self {
            stream,
            stall,
            until: Box::pin(sleep(stall)),
            is_waiting: false,
        }
    }

    /// The result of a writing poll; an error if the time is over.
    fn heed<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.is_waiting = false;
            return poll;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.until.as_mut().reset(Instant::now() + self.stall);
        }
        ready!(self.until.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.heed(context, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.heed(context, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        self.heed(context, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// An answer's bytes on their way.
enum Sent {
    /// The whole answer, until it is taken.
    Whole(Option<Bytes>),
    /// As they are made.
    Pieces(mpsc::Receiver<io::Result<Bytes>>),
}

impl Body for Sent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let next = match self.get_mut() {
            Self::Whole(bytes) => bytes.take().map(Ok),
            Self::Pieces(pieces) => ready!(pieces.poll_recv(context)),
        };
        Poll::Ready(next.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Pieces(_) => SizeHint::new(),
        }
    }
}

/// A text whose memory is reserved until the last byte of it is sent.
struct Held {
    text: String,
    _hold: Option<Hold>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// Passes on what is written, in pieces, as fast as they are taken.
struct Pieces {
    sender: mpsc::Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
}

impl Pieces {
    fn send(&mut self) -> io::Result<()> {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        let sent = self.sender.blocking_send(Ok(piece.into()));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = PIECE - self.piece.len().min(PIECE);
        let taken = bytes.len().min(room);
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() >= PIECE {
            self.send()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes an answer while it is sent, on a thread of its own.
fn stream(write: Writer, hold: Option<Hold>) -> Sent {
    let (sender, receiver) = mpsc::channel(PIECES);
    task::spawn_blocking(move || {
        let _hold = hold;
        let mut pieces = Pieces {
            sender: sender.clone(),
            piece: Vec::with_capacity(PIECE),
        };
        if let Err(error) = write(&mut pieces).and_then(|()| pieces.send()) {
            // The client sees that the answer is not whole, if it is still there.
            _ = sender.blocking_send(Err(error));
        }
    });
    Sent::Pieces(receiver)
}

async fn respond(request: Request<Incoming>, site: &Arc<Site>) -> Response<Sent> {
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
    let (answer, hold) = match allowed {
        Err(Refused::Host) => (routes::wrong_host(&asked), None),
        Err(Refused::Token) => (routes::wrong_token(&asked), None),
        Ok(()) if is_head || request.method() == Method::GET => site.answer(asked).await,
        Ok(()) => (routes::wrong_method(&asked), None),
    };
    let tag = answer.tag();
    let is_known = text(header::IF_NONE_MATCH).is_some_and(|known| {
        let mut known = known
            .split(',')
            .map(|tag| tag.trim().trim_start_matches("W/"));
        let is_of = |tag: &String| known.any(|known| known == tag);
        answer.status == 200 && tag.as_ref().is_some_and(is_of)
    });
    response(answer, hold, tag.as_deref(), (is_head, is_known))
}

fn response(
    answer: Answer,
    hold: Option<Hold>,
    tag: Option<&str>,
    (is_head, is_known): (bool, bool),
) -> Response<Sent> {
    let status = StatusCode::from_u16(if is_known { 304 } else { answer.status });
    let mut response = Response::new(Sent::Whole(None));
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, answer.kind);
    for (name, value) in headers::of_each_answer() {
        set(name, value);
    }
    if let Some(seconds) = answer.refresh_s {
        set(header::REFRESH, &seconds.to_string());
    }
    match (answer.status, tag) {
        (200, Some(tag)) => set(header::ETAG, tag),
        (401, _) => set(
            header::WWW_AUTHENTICATE,
            "Basic realm=\"Punctual\", charset=\"UTF-8\"",
        ),
        (405, _) => set(header::ALLOW, "GET, HEAD"),
        (503, _) => set(header::RETRY_AFTER, "10"),
        _ => {}
    }
    match answer.content {
        Content::Text(text) if is_head => set(header::CONTENT_LENGTH, &text.len().to_string()),
        Content::Text(text) if !is_known => {
            let bytes = Bytes::from_owner(Held { text, _hold: hold });
            *response.body_mut() = Sent::Whole(Some(bytes));
        }
        Content::Written(write) if !is_head => *response.body_mut() = stream(write, hold),
        Content::Text(_) | Content::Written(_) => {}
    }
    response
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[test]
    fn who_reads_nothing_is_let_go() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let _silent = TcpStream::connect(listener.local_addr().unwrap()).await;
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = Impatient::new(stream, Duration::from_millis(50));
            let piece = vec![0; PIECE];
            // What the sockets hold is taken; then nothing more, until patience ends.
            let refused = loop {
                let write =
                    |context: &mut Context<'_>| Pin::new(&mut stream).poll_write(context, &piece);
                if let Err(error) = poll_fn(write).await {
                    break error;
                }
            };
            assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        });
    }
}
