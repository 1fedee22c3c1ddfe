// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a run did not get to its end.

use std::error::Error;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use punctual_model::frame::FrameError;

/// Why a run did not get to its end, on whatever bench.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Somebody asked for the end.
    #[error("interrupted")]
    Interrupted,
    /// The subject has said nothing for so many seconds that it spent.
    #[error(
        "the subject has said nothing for {0} s of its time: it hangs, or its step takes longer than that"
    )]
    Silent(u64),
    /// The subject has not run at all for so many seconds.
    #[error("the subject has not run for {0} s: was it stopped?")]
    Stopped(u64),
    /// The subject's kernel has failed, as its console shows.
    #[error("{0}")]
    Guest(&'static str),
    /// The subject's process has ended, and the plan had not been carried out.
    #[error("the subject has ended before its work was done ({0})")]
    Ended(String),
    /// The record stream is damaged.
    #[error("the record stream is damaged: {0}")]
    Stream(#[from] FrameError),
    /// The subject says more than any run needs.
    #[error(
        "the subject has written more than {} MiB to its {port}: it was ended, what came before is kept",
        .limit >> 20
    )]
    TooMuch {
        /// What it wrote to.
        port: &'static str,
        /// How many bytes it may write.
        limit: u64,
    },
    /// The subject has sent more records than any run has.
    #[error("the subject has sent more than {0} records: it was ended, what came before is kept")]
    TooManyRecords(u32),
    /// The target does not accept its plan.
    #[error("the target refuses the plan: {0}")]
    Refused(String),
    /// The bench has failed: its own error.
    #[error(transparent)]
    Bench(Box<dyn Error + Send + Sync>),
}

impl RunError {
    /// The bench has failed.
    pub fn bench(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Bench(Box::new(error))
    }

    /// Whether it is the subject that has failed, and neither the bench nor who asked.
    pub fn is_of_guest(&self) -> bool {
        match self {
            Self::Silent(_)
            | Self::Guest(_)
            | Self::Ended(_)
            | Self::Stream(_)
            | Self::TooMuch { .. }
            | Self::TooManyRecords(_) => true,
            Self::Interrupted | Self::Stopped(_) | Self::Refused(_) | Self::Bench(_) => false,
        }
    }

    /// The bench's own error, if it is one of this type.
    pub fn of_bench<T: Error + 'static>(&self) -> Option<&T> {
        match self {
            Self::Bench(error) => error.downcast_ref(),
            _ => None,
        }
    }
}

/// A file of the subject cannot be read.
impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::bench(error)
    }
}

/// How a process ended, in words.
pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
