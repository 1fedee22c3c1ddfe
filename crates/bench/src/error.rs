// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons why a run did not get to its end.

use std::error::Error;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use punctual_model::frame::FrameError;

/// The reason why a run did not get to its end, on any bench.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Somebody asked the run to end.
    #[error("interrupted")]
    Interrupted,
    /// The subject said nothing while it spent this many seconds.
    #[error(
        "the subject has said nothing for {0} s of its time: it hangs, or its step takes longer than that"
    )]
    Silent(u64),
    /// The subject has not run at all for this many seconds.
    #[error("the subject has not run for {0} s: was it stopped?")]
    Stopped(u64),
    /// The subject's kernel has failed, as its console shows.
    #[error("{0}")]
    Guest(&'static str),
    /// The subject's process ended before it had carried out the plan.
    #[error("the subject has ended before its work was done ({0})")]
    Ended(String),
    /// The record stream is damaged.
    #[error("the record stream is damaged: {0}")]
    Stream(#[from] FrameError),
    /// The subject wrote more than any run needs.
    #[error(
        "the subject has written more than {} MiB to its {port}: it was ended, what came before is kept",
        .limit >> 20
    )]
    TooMuch {
        /// The port to which it wrote.
        port: &'static str,
        /// The number of bytes that it may write.
        limit: u64,
    },
    /// The subject has sent more records than any run has.
    #[error("the subject has sent more than {0} records: it was ended, what came before is kept")]
    TooManyRecords(u32),
    /// The target does not accept its plan.
    #[error("the target refuses the plan: {0}")]
    Refused(String),
    /// The bench failed: this is its own error.
    #[error(transparent)]
    Bench(Box<dyn Error + Send + Sync>),
}

impl RunError {
    /// An error of the bench.
    pub fn bench(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Bench(Box::new(error))
    }

    /// Returns true if the subject failed, rather than the bench or whoever asked.
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

    /// The bench's own error, if it is of this type.
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

/// Describes in words how a process ended.
pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
