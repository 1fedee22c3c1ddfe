// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why something could not be measured, set or read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason why something could not be measured, set or read; its text is for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Reason {
    /// A device file cannot be opened.
    NoDevice {
        /// Its path: `/dev/pulse`.
        device: String,
        /// The kernel module that creates it.
        module: String,
        /// The kernel's message.
        error: String,
        /// The reason why there is no such module, if it is known.
        because: Option<String>,
    },
    /// The kernel refuses something that a measuring thread needs.
    Refused {
        /// The request: `SCHED_FIFO 80`.
        what: String,
        /// The kernel's message.
        error: String,
        /// Advice on what to do; may be empty.
        hint: String,
    },
    /// Memory cannot be locked, so that a page fault could be taken for a latency.
    NoMemoryLock {
        /// The kernel's message.
        error: String,
    },
    /// A program is not installed, or cannot be started.
    NotFound {
        /// The program.
        program: String,
        /// The kernel's message.
        error: String,
    },
    /// A file cannot be read, or lacks what was looked for in it.
    Unreadable {
        /// Its path.
        path: String,
        /// The fault.
        error: String,
    },
    /// The load did not run beside the probe as it should have: the subject was not loaded.
    NotLoaded {
        /// The worker's command.
        worker: String,
        /// The way in which it failed to run.
        why: NotLoaded,
        /// Further details; may be empty.
        detail: String,
    },
    /// Any other reason.
    #[serde(untagged)]
    Other(String),
}

/// The way in which a load failed to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NotLoaded {
    /// A worker cannot run: its command fails.
    Failed,
    /// A worker was not at work when its time to start was over.
    NotUp,
    /// A worker did nothing while samples were taken.
    Starved,
    /// A worker had stopped before the last sample.
    Stopped,
}

impl fmt::Display for NotLoaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failed => "cannot run",
            Self::NotUp => "did not come up",
            Self::Starved => "did nothing while samples were taken",
            Self::Stopped => "had stopped before the last sample",
        })
    }
}

impl Reason {
    /// Creates the reason for a worker of a load that did not run.
    pub fn not_loaded(worker: &str, why: NotLoaded, detail: impl fmt::Display) -> Self {
        let (worker, detail) = (worker.into(), detail.to_string());
        Self::NotLoaded {
            worker,
            why,
            detail,
        }
    }

    /// Creates the reason for a device file that cannot be opened.
    pub fn no_device(device: &str, module: &str, error: impl fmt::Display) -> Self {
        Self::NoDevice {
            device: device.into(),
            module: module.into(),
            error: error.to_string(),
            because: None,
        }
    }

    /// Creates the reason for a file that cannot be read.
    pub fn unreadable(path: &str, error: impl fmt::Display) -> Self {
        let (path, error) = (path.into(), error.to_string());
        Self::Unreadable { path, error }
    }

    /// Returns the kernel module that is missing.
    pub fn missing_module(&self) -> Option<&str> {
        match self {
            Self::NoDevice { module, .. } => Some(module),
            _ => None,
        }
    }

    /// Adds the reason why there is no such module.
    #[must_use]
    pub fn because(mut self, why: &str) -> Self {
        if let Self::NoDevice { because, .. } = &mut self {
            *because = Some(why.into());
        }
        self
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDevice {
                device,
                module,
                error,
                because,
            } => {
                write!(f, "no {device}: {error} (module {module})")?;
                because.iter().try_for_each(|why| write!(f, ": {why}"))
            }
            Self::Refused { what, error, hint } => {
                write!(f, "{what} is refused ({error})")?;
                match hint.as_str() {
                    "" => Ok(()),
                    hint => write!(f, ": {hint}"),
                }
            }
            Self::NoMemoryLock { error } => write!(
                f,
                "locking memory is refused ({error}): run as root, or raise RLIMIT_MEMLOCK \
                 (ulimit -l unlimited)"
            ),
            Self::NotFound { program, error } => write!(f, "{program}: {error}"),
            Self::Unreadable { path, error } => write!(f, "{path}: {error}"),
            Self::NotLoaded {
                worker,
                why,
                detail,
            } => {
                write!(f, "load \"{worker}\" {why}")?;
                match detail.as_str() {
                    "" => Ok(()),
                    detail => write!(f, ": {detail}"),
                }
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Reason {}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self::Other(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_module_is_known_by_its_kind_and_not_by_its_text() {
        let absent = Reason::no_device("/dev/pulse", "pulse", "No such file");
        assert_eq!(absent.missing_module(), Some("pulse"));
        let said = absent.clone().because("no compiler");
        assert_eq!(
            said.to_string(),
            "no /dev/pulse: No such file (module pulse): no compiler"
        );
        let text = Reason::from(absent.to_string());
        assert_eq!(text.missing_module(), None);
        assert_eq!(text.clone().because("x"), text);
    }

    #[test]
    fn a_reason_of_no_kind_is_its_text() {
        let text = serde_json::to_string(&Reason::from("the guest is slow")).unwrap();
        assert_eq!(text, "\"the guest is slow\"");
        let all = [
            Reason::from("x"),
            Reason::no_device("/dev/stall", "stall", "No such file"),
            Reason::unreadable("/proc/iomem", "hidden"),
        ];
        for reason in all {
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(serde_json::from_str::<Reason>(&json).unwrap(), reason);
            let mut cbor = Vec::new();
            ciborium::into_writer(&reason, &mut cbor).unwrap();
            assert_eq!(ciborium::from_reader::<Reason, _>(&*cbor).unwrap(), reason);
        }
    }
}
