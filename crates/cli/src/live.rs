// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--live`: shows a measurement while it goes on, on a terminal of its own.
//!
//! Its input is what the bench sees of the [status page](punctual_model::status_page), so that it
//! takes nothing from the measuring threads; the record has everything that it misses.

mod state;
mod view;

use std::io::{self, Stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use punctual_bench::system::{Event, RunEnding};
use punctual_model::record::Mark;
use punctual_model::run::State as RunState;
use punctual_model::{Plan, Run};
use punctual_runner::Observer;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::KeyModifiers;
use ratatui::crossterm::event::{self, Event as Input, KeyCode, KeyEvent, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use crate::interrupt;
use crate::output::say;
use crate::progress::{failure, waiting};
use state::State;

/// The interval between drawings.
const LOOK: Duration = Duration::from_millis(200);

/// Shows runs in progress, on the terminal that standard error is.
pub struct Live {
    state: Arc<Mutex<State>>,
    is_over: Arc<AtomicBool>,
    drawer: Mutex<Option<JoinHandle<()>>>,
}

impl Live {
    /// Takes the terminal. `cancel` is the flag of [`interrupt`].
    ///
    /// # Errors
    /// If the terminal cannot be taken.
    pub fn begin(cancel: &'static AtomicBool) -> Result<Self> {
        let screen = Screen::take().context("cannot draw on this terminal")?;
        let state = Arc::new(Mutex::new(State::default()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (shown, over) = (Arc::clone(&state), Arc::clone(&is_over));
        let drawer = thread::spawn(move || draw(screen, &shown, &over, cancel));
        Ok(Self {
            state,
            is_over,
            drawer: Mutex::new(Some(drawer)),
        })
    }

    /// Gives the terminal back, and prints there what is to stay.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        let drawer = lock(&self.drawer).take();
        // One that has panicked has said so.
        _ = drawer.map(JoinHandle::join);
        for line in lock(&self.state).messages.drain(..) {
            say!("{line}");
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end();
    }
}

impl Observer for Live {
    fn begun(&self, run: &Run, plan: &Plan) {
        lock(&self.state).begin(run, plan);
    }

    fn event(&self, run: &Run, event: &Event) {
        lock(&self.state).take(&run.id, event);
    }

    fn marks(&self, run: &Run, step: u32) -> Vec<Mark> {
        lock(&self.state).marks(&run.id, step)
    }

    fn ended(&self, run: &Run, ending: &RunEnding) {
        let mut state = lock(&self.state);
        state.end(run);
        if run.state == RunState::Failed {
            state.messages.push(failure(run, ending));
        }
    }

    fn kept(&self, run: &Run, _plan: &Plan) {
        let (id, name) = (&run.id, &run.subject.name);
        let said = format!("{name} (seed {}): {id} is taken from the store", run.seed);
        lock(&self.state).messages.push(said);
    }

    fn elsewhere(&self, id: &str, run: &Run) {
        let said = waiting(id, run);
        let mut state = lock(&self.state);
        if !state.messages.contains(&said) {
            state.messages.push(said);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws, and handles keys, until it is over.
fn draw(mut screen: Screen, state: &Mutex<State>, is_over: &AtomicBool, cancel: &AtomicBool) {
    while !is_over.load(Ordering::SeqCst) {
        // A signal stops the runs, too.
        lock(state).is_stopping = cancel.load(Ordering::SeqCst);
        let drawn = screen.0.draw(|frame| view::draw(&lock(state), frame));
        // A terminal that has gone: there is nobody to draw for.
        if drawn.is_err() {
            break;
        }
        let heard = event::poll(LOOK).and_then(|is_there| is_there.then(event::read).transpose());
        match heard {
            Ok(Some(Input::Key(key))) if key.kind == KeyEventKind::Press => {
                heed(key, &mut lock(state));
            }
            // Nothing; or another size: the next picture is as large as the terminal.
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

fn heed(key: KeyEvent, state: &mut State) {
    let is_ctrl_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => interrupt::ask(),
        _ if is_ctrl_c => interrupt::ask(),
        KeyCode::Char('m') => state.mark(),
        KeyCode::Up | KeyCode::Char('k') => state.choose(-1),
        KeyCode::Down | KeyCode::Char('j') => state.choose(1),
        KeyCode::Tab | KeyCode::Right => state.choose_run(1),
        KeyCode::BackTab | KeyCode::Left => state.choose_run(-1),
        _ => {}
    }
}

/// The terminal, while it is drawn on.
struct Screen(Terminal<CrosstermBackend<Stderr>>);

/// True while the terminal is drawn on: it is given back once.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

impl Screen {
    fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::SeqCst);
        interrupt::before_end(Self::give_back);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            Self::give_back();
            before(info);
        }));
        let opened = execute!(io::stderr(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stderr())));
        if opened.is_err() {
            Self::give_back();
        }
        opened.map(Self)
    }

    fn give_back() {
        if IS_TAKEN.swap(false, Ordering::SeqCst) {
            // Where the terminal has gone there is nothing to be given back.
            _ = disable_raw_mode();
            _ = leave(&mut io::stderr());
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        Self::give_back();
    }
}

/// Restores what the terminal showed before, and its cursor, which each picture hides.
fn leave(terminal: &mut impl io::Write) -> io::Result<()> {
    execute!(terminal, LeaveAlternateScreen, Show)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_ends_at_once_has_a_cursor_again() {
        let mut written = Vec::new();
        leave(&mut written).unwrap();
        assert_eq!(written, b"\x1b[?1049l\x1b[?25h");
    }
}
