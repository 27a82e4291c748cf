//! Finding values by path in JSON text, without building anything from it.

use std::borrow::Cow;
use std::ops::Range;

/// Deepest nesting of the arrays on a path.
const DEEPEST: usize = 64;

/// The places of the values at `paths` in `text`, in order and apart. Arrays on a path are looked through, and a
/// key that an object repeats is found each time. `text` is valid JSON.
///
/// # Errors
/// When arrays are nested deeper than anyone can mean.
pub fn find(text: &str, paths: &[Vec<String>]) -> Result<Vec<Range<usize>>, String> {
    let mut scanner = Scanner {
        text,
        at: 0,
        found: Vec::new(),
    };
    let paths: Vec<&[String]> = paths.iter().map(Vec::as_slice).collect();
    scanner.value(&paths, 0)?;
    Ok(scanner.found)
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    found: Vec<Range<usize>>,
}

impl<'a> Scanner<'a> {
    /// Goes past one value, with `paths` leading on from it.
    fn value(&mut self, paths: &[&[String]], depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!(
                "arrays are nested deeper than {DEEPEST} on the path to a field"
            ));
        }
        match self.peek() {
            b'{' if !paths.is_empty() => {
                self.at += 1;
                while self.more(b'}') {
                    let key = self.key();
                    // The colon.
                    self.peek();
                    self.at += 1;
                    self.member(&key, paths, depth)?;
                }
            }
            b'[' if !paths.is_empty() => {
                self.at += 1;
                while self.more(b']') {
                    self.value(paths, depth + 1)?;
                }
            }
            _ => self.skip(),
        }
        Ok(())
    }

    /// Goes past the value of an object's member.
    fn member(&mut self, key: &str, paths: &[&[String]], depth: usize) -> Result<(), String> {
        let mut further = Vec::new();
        for path in paths {
            match path.split_first() {
                Some((first, rest)) if first == key => further.push(rest),
                _ => {}
            }
        }
        if further.iter().any(|rest| rest.is_empty()) {
            self.peek();
            let start = self.at;
            self.skip();
            self.found.push(start..self.at);
            return Ok(());
        }
        self.value(&further, depth)
    }

    /// Whether an object or an array goes on; goes past the comma, or past the end.
    fn more(&mut self, end: u8) -> bool {
        match self.peek() {
            b',' => self.at += 1,
            byte if byte == end => {
                self.at += 1;
                return false;
            }
            _ => {}
        }
        true
    }

    fn key(&mut self) -> Cow<'a, str> {
        self.peek();
        let start = self.at;
        self.string();
        let raw = &self.text[start..self.at];
        if raw.contains('\\') {
            // Half a surrogate pair is legal in JSON and is no text: it equals no configured key.
            Cow::Owned(serde_json::from_str(raw).unwrap_or_default())
        } else {
            Cow::Borrowed(&raw[1..raw.len() - 1])
        }
    }

    /// The next byte that is not white space; stays before it. 0 at the end.
    fn peek(&mut self) -> u8 {
        let rest = &self.text.as_bytes()[self.at..];
        let space = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
        self.at += space.count();
        self.byte().unwrap_or(0)
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes past a string.
    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.byte() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                return;
            }
        }
    }

    /// Goes past one value of any kind.
    fn skip(&mut self) {
        let mut open = 0_usize;
        self.peek();
        while let Some(byte) = self.byte() {
            match byte {
                b'"' => self.string(),
                b'{' | b'[' => {
                    open += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    open -= 1;
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                byte if byte.is_ascii_whitespace() => self.at += 1,
                _ => self.scalar(),
            }
            if open == 0 {
                return;
            }
        }
    }

    /// Goes past a number, `true`, `false` or `null`.
    fn scalar(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b",:{}[]\"".contains(byte);
        self.at += rest.iter().position(ends).unwrap_or(rest.len());
    }
}
