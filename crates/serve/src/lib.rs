// SPDX-License-Identifier: MIT OR Apache-2.0
//! A store's runs for a team: pages for people, JSON for programs, over HTTP/1.1.
//!
//! Nothing can be changed through it: the store is opened to be read, and only `GET` and `HEAD`
//! are answered. A page has no script, and nothing foreign becomes markup.
#![forbid(unsafe_code)]

mod access;
mod campaigns;
mod connections;
mod pages;
mod query;
mod routes;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use punctual_published::Document;
use punctual_store::{Place, Store, StoreError};
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::task;

pub use access::Access;

/// How many requests are worked on at once; more wait. Each has a connection to the store.
const AT_ONCE: usize = 4;

/// What can go wrong before the first request.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: choose another --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The system has no threads or timers left.
    #[error("cannot serve")]
    System(#[source] io::Error),
}

/// What is served, and to whom.
pub struct Options {
    /// The store.
    pub place: Place,
    /// Where requests come in; with port 0, a free one.
    pub listen: SocketAddr,
    /// Who may ask.
    pub access: Access,
    /// The documents that runs are shown beside.
    pub documents: Vec<Document>,
}

/// Serves until `cancel` says that it is enough; `ready` is told where.
///
/// # Errors
/// Where it cannot begin. What goes wrong later is the answer to a request.
pub fn serve(
    options: Options,
    cancel: &AtomicBool,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let address = options.listen;
    let site = Arc::new(Site {
        stores: Stores::open(options.place)?,
        access: options.access,
        documents: options.documents,
        campaigns: campaigns::Campaigns::default(),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(ServeError::System)?;
    runtime.block_on(async {
        let failed = |source| ServeError::Listen { address, source };
        let listener = tokio::net::TcpListener::bind(address).await;
        let listener = listener.map_err(failed)?;
        ready(listener.local_addr().map_err(failed)?);
        connections::accept(listener, site, cancel).await;
        Ok(())
    })
}

/// What requests are answered with.
struct Site {
    stores: Stores,
    access: Access,
    documents: Vec<Document>,
    campaigns: campaigns::Campaigns,
}

/// Connections to one store.
struct Stores {
    place: Place,
    idle: Mutex<Vec<Store>>,
    turns: Semaphore,
}

impl Stores {
    fn open(place: Place) -> Result<Self, StoreError> {
        let first = Store::open_to_read(&place)?;
        Ok(Self {
            place,
            idle: Mutex::new(vec![first]),
            turns: Semaphore::new(AT_ONCE),
        })
    }

    fn take(&self) -> Result<Store, StoreError> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        idle.map_or_else(|| Store::open_to_read(&self.place), Ok)
    }

    fn give_back(&self, store: Store) {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(store);
    }
}

impl Site {
    /// The answer to a request, made on a thread of its own, because it reads and draws.
    async fn answer(self: &Arc<Self>, request: routes::Request) -> routes::Answer {
        let _turn = self.stores.turns.acquire().await;
        let site = Arc::clone(self);
        let made = task::spawn_blocking(move || {
            let store = match site.stores.take() {
                Ok(store) => store,
                Err(error) => return routes::failed(&request, &error),
            };
            let answer = routes::answer(&store, &site.campaigns, &site.documents, &request);
            site.stores.give_back(store);
            answer
        });
        made.await.unwrap_or_else(|_| routes::broken())
    }
}
