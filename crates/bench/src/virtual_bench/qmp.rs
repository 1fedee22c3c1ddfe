// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client for QEMU's machine protocol, as far as the virtual bench needs it.
//!
//! See QEMU's `docs/interop/qmp-spec.rst`: one JSON object per line, each command answered by one
//! `return` or `error`, events in between.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The time to wait for an answer. QEMU answers each command used here at once; on a machine so
/// busy that QEMU hardly runs, the answer still comes within this time.
const PATIENCE: Duration = Duration::from_secs(600);

/// The reason why QEMU's machine protocol failed.
#[derive(Debug, thiserror::Error)]
pub enum QmpError {
    /// QEMU has closed the connection.
    #[error("QEMU has ended the conversation")]
    Closed,
    /// QEMU did not answer.
    #[error("QEMU has not answered `{command}` for {waited_s} s")]
    Silent {
        /// The command.
        command: String,
        /// The time waited, in seconds.
        waited_s: u64,
    },
    /// QEMU refused a command.
    #[error("QEMU refused `{command}`: {reason}")]
    Refused {
        /// The command.
        command: String,
        /// The reason that QEMU gave.
        reason: String,
    },
}

/// A conversation with one QEMU.
pub struct Qmp {
    to: Box<dyn Write + Send>,
    from: Receiver<Value>,
    events: VecDeque<String>,
}

impl Qmp {
    /// Begins the conversation: waits for QEMU's greeting and enters command mode.
    pub fn begin(
        to: impl Write + Send + 'static,
        from: impl Read + Send + 'static,
    ) -> Result<Self, QmpError> {
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(from).lines().map_while(Result::ok);
            for value in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let mut qmp = Self {
            to: Box::new(to),
            from: receiver,
            events: VecDeque::new(),
        };
        qmp.next("greeting")?;
        qmp.execute("qmp_capabilities", &json!({}))?;
        Ok(qmp)
    }

    /// Executes a command and returns QEMU's return value.
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value, QmpError> {
        let mut line = json!({"execute": command, "arguments": arguments}).to_string();
        line.push('\n');
        self.to
            .write_all(line.as_bytes())
            .and_then(|()| self.to.flush())
            .map_err(|_| QmpError::Closed)?;
        loop {
            let mut answer = self.next(command)?;
            if let Some(reason) = answer.get("error") {
                return Err(QmpError::Refused {
                    command: command.to_owned(),
                    reason: reason["desc"].as_str().unwrap_or_default().to_owned(),
                });
            }
            if let Some(result) = answer.get_mut("return") {
                return Ok(result.take());
            }
            self.note_event(&answer);
        }
    }

    /// The name of the next event that has come; `None` if none has.
    pub fn event(&mut self) -> Option<String> {
        while let Ok(message) = self.from.try_recv() {
            self.note_event(&message);
        }
        self.events.pop_front()
    }

    fn next(&self, awaited: &str) -> Result<Value, QmpError> {
        self.from
            .recv_timeout(PATIENCE)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => QmpError::Silent {
                    command: awaited.to_owned(),
                    waited_s: PATIENCE.as_secs(),
                },
                RecvTimeoutError::Disconnected => QmpError::Closed,
            })
    }

    fn note_event(&mut self, message: &Value) {
        if let Some(name) = message["event"].as_str() {
            self.events.push_back(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    const GREETING: &str = "{\"QMP\": {}}\n{\"return\": {}}\n";

    fn talk(lines: &str) -> Result<Qmp, QmpError> {
        Qmp::begin(Vec::new(), Cursor::new(format!("{GREETING}{lines}")))
    }

    #[test]
    fn events_that_come_before_an_answer_are_kept() {
        let mut qmp =
            talk("{\"event\": \"STOP\"}\n{\"return\": {\"status\": \"paused\"}}\n").unwrap();
        let status = qmp.execute("query-status", &json!({})).unwrap();
        assert_eq!(status["status"], "paused");
        assert_eq!(qmp.event().as_deref(), Some("STOP"));
        assert_eq!(qmp.event(), None);
    }

    #[test]
    fn a_refusal_says_what_was_refused_and_why() {
        let mut qmp =
            talk("{\"error\": {\"class\": \"GenericError\", \"desc\": \"no disk\"}}\n").unwrap();
        let error = qmp.execute("migrate", &json!({})).unwrap_err().to_string();
        assert_eq!(error, "QEMU refused `migrate`: no disk");
    }

    #[test]
    fn a_qemu_that_has_gone_is_noticed() {
        let mut qmp = talk("").unwrap();
        assert!(matches!(
            qmp.execute("cont", &json!({})),
            Err(QmpError::Closed)
        ));
        assert!(matches!(
            Qmp::begin(Vec::new(), Cursor::new("")),
            Err(QmpError::Closed)
        ));
    }
}
