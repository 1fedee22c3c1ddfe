// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stands between a client and a `PostgreSQL` server, and cuts their connection at the very moment
//! at which only the server knows whether a transaction was committed.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::server::USER;

/// The message with which a client commits: a simple query, of the protocol's version 3.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

/// The part of a commit that gets lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The server never receives it.
    Request,
    /// The client never learns that it was done.
    Answer,
}

/// A server's other port, whose connections can be cut.
#[derive(Debug)]
pub struct Cutter {
    port: u16,
    next: Arc<Mutex<Option<Cut>>>,
    was_cut: Receiver<()>,
    go_on: Sender<()>,
}

impl Cutter {
    /// A port in front of another on the loopback. It carries one connection at a time.
    ///
    /// # Panics
    /// If no port is available.
    pub fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its number").port();
        let next = Arc::new(Mutex::new(None));
        let (cutting, was_cut) = channel();
        let (go_on, told) = channel();
        let armed = Arc::clone(&next);
        thread::spawn(move || {
            for client in listener.incoming() {
                let server = TcpStream::connect(("127.0.0.1", server));
                let is_cut = client.and_then(|client| carry(client, server?, &armed));
                if is_cut.unwrap_or(false) && (cutting.send(()).is_err() || told.recv().is_err()) {
                    return;
                }
            }
        });
        Self {
            port,
            next,
            was_cut,
            go_on,
        }
    }

    /// The URL of a database, through this port.
    pub fn url(&self, name: &str) -> String {
        format!("postgres://{USER}@localhost:{}/{name}", self.port)
    }

    /// Cuts the connection at its next commit; accepts no other until told to [go on](Self::go_on).
    pub fn cut(&self, cut: Cut) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(cut);
    }

    /// Waits until the connection is cut.
    ///
    /// # Panics
    /// If it never is.
    pub fn wait(&self) {
        self.was_cut.recv().expect("a connection to cut");
    }

    /// Accepts connections again.
    ///
    /// # Panics
    /// If it cannot.
    pub fn go_on(&self) {
        self.go_on.send(()).expect("it waits");
    }
}

/// Carries a connection's bytes to its end; returns true if it was cut.
fn carry(
    mut client: TcpStream,
    mut server: TcpStream,
    next: &Mutex<Option<Cut>>,
) -> io::Result<bool> {
    let mut answers = server.try_clone()?;
    let mut back = client.try_clone()?;
    let answering = thread::spawn(move || {
        _ = io::copy(&mut answers, &mut back);
        _ = back.shutdown(Shutdown::Both);
    });
    let mut bytes = vec![0; 1 << 16];
    let is_cut = loop {
        let count = client.read(&mut bytes).unwrap_or(0);
        let sent = &bytes[..count];
        if sent.is_empty() {
            break false;
        }
        let taken = sent.ends_with(COMMIT).then(|| {
            let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
            next.take()
        });
        match taken.flatten() {
            None => server.write_all(sent)?,
            Some(Cut::Request) => break true,
            Some(Cut::Answer) => {
                // Nothing that is said from now on is heard.
                client.shutdown(Shutdown::Both)?;
                server.write_all(sent)?;
                server.shutdown(Shutdown::Write)?;
                _ = answering.join();
                return Ok(true);
            }
        }
    };
    _ = client.shutdown(Shutdown::Both);
    _ = server.shutdown(Shutdown::Both);
    _ = answering.join();
    Ok(is_cut)
}
