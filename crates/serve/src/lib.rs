// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serves a store's runs to a team: pages for people, JSON for programs, over HTTP/1.1.
//!
//! Nothing can be changed through it: the store is opened read-only, and only `GET` and `HEAD` are
//! answered. A page has no script, and no foreign text becomes markup.
#![forbid(unsafe_code)]

mod access;
mod budget;
mod campaigns;
mod connections;
mod headers;
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
use tokio::task;

/// The parser of requests, for the tests that give it damaged ones.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::query::Query;
}

pub use access::{Access, Refused};
use budget::{BASE, Hold, Lanes, Limits};

/// The number of requests processed at once; more wait. Each has a connection to the store.
const AT_ONCE: usize = 4;

/// An error before the first request.
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
        /// The cause.
        source: io::Error,
    },
    /// The system has no threads or timers left.
    #[error("cannot serve")]
    System(#[source] io::Error),
}

/// Options of the server.
pub struct Options {
    /// The store.
    pub place: Place,
    /// The address to listen on; with port 0, a free one.
    pub listen: SocketAddr,
    /// The clients that may ask.
    pub access: Access,
    /// The documents that runs are shown beside.
    pub documents: Vec<Document>,
}

/// Serves until `cancel` is set; `ready` gets the address.
///
/// # Errors
/// If it cannot begin. Later errors become answers to requests.
pub fn serve(
    options: Options,
    cancel: &AtomicBool,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    serve_within(options, Limits::default(), cancel, ready)
}

fn serve_within(
    options: Options,
    limits: Limits,
    cancel: &AtomicBool,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let address = options.listen;
    let site = Arc::new(Site {
        stores: Stores::open(options.place)?,
        lanes: Lanes::new(AT_ONCE, limits.clone()),
        limits,
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

/// The state that answers requests.
struct Site {
    stores: Stores,
    lanes: Lanes,
    limits: Limits,
    access: Access,
    documents: Vec<Document>,
    campaigns: campaigns::Campaigns,
}

/// Connections to one store.
struct Stores {
    place: Place,
    /// Those that others can use the store beside.
    idle: Mutex<Vec<Store>>,
}

impl Stores {
    fn open(place: Place) -> Result<Self, StoreError> {
        let first = Store::open_to_read(&place)?;
        let stores = Self {
            place,
            idle: Mutex::default(),
        };
        stores.give_back(first);
        Ok(stores)
    }

    /// Returns a connection to the current store, and whether that may be another store than before.
    fn take(&self) -> Result<(Store, bool), StoreError> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let had = idle.len();
        idle.retain(|store| store.check_in_place().is_ok());
        let is_other = idle.len() < had;
        let store = idle.pop();
        drop(idle);
        let store = store.map_or_else(|| Store::open_to_read(&self.place), Ok)?;
        let is_other = is_other || !store.is_shared();
        Ok((store, is_other))
    }

    /// Keeps a connection for later, unless it would keep others out, or see nothing of what they
    /// write.
    fn give_back(&self, store: Store) {
        if store.is_shared() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push(store);
        }
    }
}

impl Site {
    /// Returns the answer to a request, with the memory that is reserved for it.
    async fn answer(self: &Arc<Self>, request: routes::Request) -> (routes::Answer, Option<Hold>) {
        let weighed = {
            let request = request.clone();
            self.on_a_thread(BASE, move |_, store| routes::cost(store, &request))
        };
        let cost = match weighed.await {
            Ok(cost) => BASE.saturating_add(cost),
            Err(why) => return (why.answer(&request), None),
        };
        let mut hold = match self.lanes.reserve(cost).await {
            Ok(hold) => hold,
            Err(why) => return (routes::no_room(&request, why, self.limits.request), None),
        };
        // The thread has the reservation: it goes on even if the client has gone.
        let made = {
            let request = request.clone();
            self.on_a_thread(cost, move |site, store| {
                let answer = routes::answer(store, &site.campaigns, &site.documents, &request);
                // What its runs took is free again; but where it is written later they are still
                // there.
                if let routes::Content::Text(text) = &answer.content {
                    hold.shrink_to(text.len() as u64);
                }
                (answer, Some(hold))
            })
        };
        made.await
            .unwrap_or_else(|why| (why.answer(&request), None))
    }

    /// Runs `work` in turn on a thread of its own, because it reads and draws.
    async fn on_a_thread<T: Send + 'static>(
        self: &Arc<Self>,
        cost: u64,
        work: impl FnOnce(&Self, &Store) -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let site = Arc::clone(self);
        let turn = self.lanes.turn(cost).await;
        let done = task::spawn_blocking(move || {
            let _turn = turn;
            let (store, is_other) = site.stores.take().map_err(NotDone::Store)?;
            if is_other {
                site.campaigns.forget();
            }
            let done = work(&site, &store);
            site.stores.give_back(store);
            Ok(done)
        });
        done.await.unwrap_or(Err(NotDone::Broken))
    }
}

/// The reason why there is no answer.
enum NotDone {
    /// There is no store.
    Store(StoreError),
    /// A defect.
    Broken,
}

impl NotDone {
    fn answer(&self, request: &routes::Request) -> routes::Answer {
        match self {
            Self::Store(error) => routes::failed(request, error),
            Self::Broken => routes::broken(request),
        }
    }
}

#[cfg(test)]
mod tests;
