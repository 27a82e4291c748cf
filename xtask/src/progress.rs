//! Progress: bars on a terminal, plain lines elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// Numbered steps on stderr.
#[derive(Debug)]
pub struct Steps {
    all: usize,
    current: usize,
    colour: bool,
}

impl Steps {
    /// Nothing shown yet; `all` steps to come.
    pub fn new(all: usize) -> Self {
        Self {
            all,
            current: 0,
            colour: std::io::stderr().is_terminal(),
        }
    }

    /// Announces the next step.
    pub fn next(&mut self, text: &str) {
        self.current += 1;
        let (bold, plain) = if self.colour {
            ("\x1b[1m", "\x1b[0m")
        } else {
            ("", "")
        };
        eprintln!("{bold}[{}/{}]{plain} {text}", self.current, self.all);
    }

    /// A detail of the current step.
    pub fn note(&self, text: &str) {
        let (dim, plain) = if self.colour {
            ("\x1b[2m", "\x1b[0m")
        } else {
            ("", "")
        };
        eprintln!("      {dim}{text}{plain}");
    }

    /// A bar up to `length`, hidden where there is no terminal.
    pub fn bar(&self, length: u64) -> ProgressBar {
        if !self.colour {
            return ProgressBar::hidden();
        }
        let style =
            ProgressStyle::with_template("      {bar:40} {human_pos}/{human_len} {per_sec} {eta}");
        ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }
}
