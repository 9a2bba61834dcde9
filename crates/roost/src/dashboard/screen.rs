//! Terminal that shows a run, and its keys. The terminal is restored on drop.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::watch;

use super::draw::draw;
use super::model::Model;

/// Longest wait for a key before checking whether the run has ended.
const KEYS_EVERY: Duration = Duration::from_millis(100);

/// Terminal that shows a model.
pub(super) struct Screen {
    shown: Arc<Mutex<Shown>>,
    over: Arc<AtomicBool>,
    keys: Option<JoinHandle<()>>,
}

struct Shown {
    model: Model,
    terminal: DefaultTerminal,
}

impl Shown {
    fn draw(&mut self) -> io::Result<()> {
        let Self { model, terminal } = self;
        terminal.draw(|frame| draw(model, frame)).map(|_| ())
    }
}

impl Screen {
    /// Takes over the terminal and draws. The stop keys set `stop` to true.
    ///
    /// # Errors
    /// If there is no terminal, which is then unchanged.
    pub(super) fn open(model: Model, stop: watch::Sender<bool>) -> io::Result<Self> {
        // The terminal is also restored after a panic.
        let terminal = ratatui::try_init().inspect_err(|_| ratatui::restore())?;
        let shown = Arc::new(Mutex::new(Shown { model, terminal }));
        let over = Arc::new(AtomicBool::new(false));
        let mut screen = Self { shown, over, keys: None };
        screen.change(|_| {})?;
        let (shown, over) = (Arc::clone(&screen.shown), Arc::clone(&screen.over));
        let keys = std::thread::Builder::new().name("keys".to_owned());
        screen.keys = Some(keys.spawn(move || listen(&shown, &over, &stop))?);
        Ok(screen)
    }

    /// Changes the model and draws it.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub(super) fn change(&self, change: impl FnOnce(&mut Model)) -> io::Result<()> {
        let mut shown = lock(&self.shown);
        change(&mut shown.model);
        shown.draw()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Relaxed suffices, because the flag publishes no other data. Wait until the drawing thread ends, then restore
        // the terminal.
        self.over.store(true, Ordering::Relaxed);
        if let Some(keys) = self.keys.take() {
            drop(keys.join());
        }
        drop(lock(&self.shown).terminal.show_cursor());
        ratatui::restore();
    }
}

/// Handles keys until the run is over or the input fails.
fn listen(shown: &Mutex<Shown>, over: &AtomicBool, stop: &watch::Sender<bool>) {
    while !over.load(Ordering::Relaxed) {
        let event = match event::poll(KEYS_EVERY) {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let Ok(event) = event else { return };
        let mut shown = lock(shown);
        match event {
            Event::Key(key) if is_stop(&key) => {
                shown.model.is_stopping = true;
                stop.send_replace(true);
            }
            Event::Resize(..) => {}
            _ => continue,
        }
        if shown.draw().is_err() {
            return;
        }
    }
}

/// Whether a key stops the run. In the terminal's raw mode, Ctrl-C is an ordinary key.
fn is_stop(key: &KeyEvent) -> bool {
    let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL);
    let is_one = match key.code {
        KeyCode::Char('c' | 'C') => is_interrupt,
        KeyCode::Char('q' | 'Q') => true,
        _ => false,
    };
    is_one && key.kind == KeyEventKind::Press
}

/// Locks the state, even if a thread has panicked while it held the lock.
fn lock(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_and_ctrl_c_stop_a_run() {
        let check = |code, modifiers, expect| {
            assert_eq!(is_stop(&KeyEvent::new(code, modifiers)), expect, "{code:?} {modifiers:?}");
        };
        check(KeyCode::Char('q'), KeyModifiers::NONE, true);
        check(KeyCode::Char('Q'), KeyModifiers::SHIFT, true);
        check(KeyCode::Char('c'), KeyModifiers::CONTROL, true);
        check(KeyCode::Char('c'), KeyModifiers::NONE, false);
        check(KeyCode::Enter, KeyModifiers::CONTROL, false);
        let let_go =
            KeyEvent::new_with_kind(KeyCode::Char('q'), KeyModifiers::NONE, KeyEventKind::Release);
        assert!(!is_stop(&let_go));
    }
}
