// SPDX-License-Identifier: MIT OR Apache-2.0
//! A place that is held: acquired, made ready, and given back in the end.
//!
//! Punctual notes each of its acquisitions in its cache, by the time at which labgrid says that the
//! place was changed. So it recognises its own acquisition after it was killed, and gives back no
//! place that the user has acquired.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_kernels::checksum;
use punctual_kernels::paths::Lock;

use super::client::Shown;
use super::{Client, Error, Place, Preparation};
use crate::ssh;

/// News about a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It was acquired.
    Acquired,
    /// It was acquired by the user, and stays acquired.
    HeldBefore,
    /// It was acquired and left behind by an earlier run.
    TakenOver,
    /// It is left as it was found: something may be measured there that must not lose its power.
    NotPrepared,
    /// Its power is being switched off and on.
    PowerCycling,
    /// It is being brought to a state.
    BringingTo(String),
    /// It is booting.
    Booting,
    /// It stays acquired: the measurement there goes on.
    Kept,
    /// It could not be given back, for this reason.
    NotReleased(String),
}

impl Notice {
    /// Returns true if the notice is shown even where no progress is wanted, because something is
    /// left to be done.
    pub fn is_due(&self) -> bool {
        matches!(self, Self::Kept | Self::NotReleased(_))
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquired => write!(f, "acquired"),
            Self::HeldBefore => write!(f, "was acquired before, and stays so"),
            Self::TakenOver => write!(f, "was left acquired by an earlier run, and is taken over"),
            Self::NotPrepared => write!(
                f,
                "is neither switched nor booted: --resume fetches what is measured there"
            ),
            Self::PowerCycling => write!(f, "switching its power off and on"),
            Self::BringingTo(state) => write!(f, "bringing it to the state {state}"),
            Self::Booting => write!(f, "waiting until ssh answers"),
            Self::Kept => write!(
                f,
                "stays acquired, as what it measures goes on there: the same command with \
                 --resume fetches that, and gives it back"
            ),
            Self::NotReleased(said) => write!(
                f,
                "could not be given back: {said}: `labgrid-client release` does that"
            ),
        }
    }
}

/// Receives news about a place.
pub type Tell = Box<dyn Fn(&str, &Notice) + Send + Sync>;

/// A place that is held; given back when this is dropped, if it was not held before.
pub struct Held {
    client: Client,
    note: Note,
    tell: Tell,
    /// True if Punctual acquired it.
    is_own: bool,
    /// True if something may be measured there that `--resume` fetches.
    may_measure: bool,
    /// True if an earlier run left it behind and its results have not been fetched yet.
    has_left: AtomicBool,
    /// True if something is measured there that nobody fetches now.
    goes_on: AtomicBool,
}

impl Held {
    /// Takes the place, or returns an error that says who holds it. Notes are kept in `cache`,
    /// Punctual's own directory. If `resume` is true, a place that is already held is not prepared.
    pub fn take(place: &Place, cache: &Path, resume: bool, tell: Tell) -> Result<Self, Error> {
        let mut client = Client {
            place: place.name.clone(),
            directory: place.directory.clone(),
            environment: None,
        };
        let shown = client.show()?;
        client.place.clone_from(&shown.name);
        let note = Note::open(cache, &client.place)?;
        let mut held = Self {
            client,
            note,
            tell,
            is_own: false,
            may_measure: resume && shown.holder.is_some(),
            has_left: AtomicBool::new(false),
            goes_on: AtomicBool::new(false),
        };
        let notice = held.acquire(&shown)?;
        held.tell(&notice);
        Ok(held)
    }

    fn acquire(&mut self, shown: &Shown) -> Result<Notice, Error> {
        let Some(holder) = &shown.holder else {
            self.client.acquire()?;
            self.is_own = true;
            self.note.write(&self.client.show()?.changed)?;
            return Ok(Notice::Acquired);
        };
        if self.note.read().as_ref() == Some(&shown.changed) {
            self.is_own = true;
            // An earlier run may still measure there, whatever this one was asked for.
            self.has_left = AtomicBool::new(true);
            return Ok(Notice::TakenOver);
        }
        self.client.may_use()?.map_err(|said| Error::HeldByOther {
            place: self.client.place.clone(),
            holder: holder.clone(),
            said,
        })?;
        Ok(Notice::HeldBefore)
    }

    /// Prepares the place. Does not wait until it answers.
    pub fn prepare(
        &mut self,
        preparation: &Preparation,
        cancel: &AtomicBool,
    ) -> Result<(), ssh::Error> {
        self.client.environment.clone_from(&preparation.environment);
        if !preparation.boots() {
            return Ok(());
        }
        if self.may_measure {
            self.tell(&Notice::NotPrepared);
            return Ok(());
        }
        if preparation.power_cycle {
            self.tell(&Notice::PowerCycling);
            self.client.power_cycle()?;
        }
        if let Some(state) = &preparation.state {
            self.tell(&Notice::BringingTo(state.clone()));
            self.client.bring_to(state, cancel)?;
        }
        self.tell(&Notice::Booting);
        Ok(())
    }

    /// The client for this place.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Keeps the place acquired: something is measured there that nobody fetches now.
    pub fn keep(&self) {
        self.goes_on.store(true, Ordering::SeqCst);
    }

    /// Notes that the results an earlier run left there have been fetched, or are not wanted.
    pub fn fetched(&self) {
        self.has_left.store(false, Ordering::SeqCst);
    }

    fn tell(&self, notice: &Notice) {
        (self.tell)(&self.client.place, notice);
    }

    fn release(&self) -> Result<(), String> {
        let released = self.client.release().map_err(|error| error.to_string())?;
        released?;
        self.note.remove().map_err(|error| error.to_string())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.is_own {
            return;
        }
        if self.goes_on.load(Ordering::SeqCst) || self.has_left.load(Ordering::SeqCst) {
            self.tell(&Notice::Kept);
        } else if let Err(said) = self.release() {
            self.tell(&Notice::NotReleased(said));
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("client", &self.client)
            .field("is_own", &self.is_own)
            .finish_non_exhaustive()
    }
}

/// The note about a place on this machine; one process at a time holds it.
struct Note {
    path: PathBuf,
    _lock: Lock,
}

impl Note {
    fn open(cache: &Path, place: &str) -> Result<Self, Error> {
        // Places of the same name may be those of two coordinators.
        let coordinator = std::env::var("LG_COORDINATOR").unwrap_or_default();
        let name = checksum::of_bytes(format!("{coordinator} {place}").as_bytes());
        let path = cache.join("places").join(&name[..16]);
        let lock = Lock::try_acquire(&path.with_extension("lock")).map_err(at(&path))?;
        let place = place.to_owned();
        let lock = lock.ok_or(Error::InUse { place })?;
        Ok(Self { path, _lock: lock })
    }

    fn write(&self, text: &str) -> Result<(), Error> {
        fs::write(&self.path, text).map_err(at(&self.path))
    }

    /// Removes the note, if there is one: it is missing if the acquisition failed half-way.
    fn remove(&self) -> Result<(), Error> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(&self.path)(error)),
            _ => Ok(()),
        }
    }

    /// The text of the note, if there is one.
    fn read(&self) -> Option<String> {
        fs::read_to_string(&self.path).ok()
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |error| Error::Io { path, error }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_note_is_one_processs_at_a_time_and_stays() {
        let cache = tempfile::tempdir().unwrap();
        let note = Note::open(cache.path(), "rack1").unwrap();
        assert_eq!(note.read(), None);
        note.write("then").unwrap();
        let second = Note::open(cache.path(), "rack1");
        assert!(matches!(second, Err(Error::InUse { .. })));
        assert!(Note::open(cache.path(), "rack2").is_ok());
        drop(note);
        // A process that another test has just forked has the lock, too, until it executes.
        let note = loop {
            match Note::open(cache.path(), "rack1") {
                Err(Error::InUse { .. }) => thread::sleep(Duration::from_millis(1)),
                note => break note.unwrap(),
            }
        };
        assert_eq!(note.read().as_deref(), Some("then"));
        note.remove().unwrap();
        assert_eq!(note.read(), None);
    }

    #[test]
    fn a_place_is_given_back_although_no_note_was_written() {
        let cache = tempfile::tempdir().unwrap();
        let note = Note::open(cache.path(), "rack1").unwrap();
        note.remove().unwrap();
    }
}
