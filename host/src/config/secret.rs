//! Secrets come from the environment or from a file, and are never printed.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

/// Where a secret is kept. It is read at every login, so a renewed secret is picked up.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Secret {
    /// Name of an environment variable.
    Env(String),
    /// A file; line ends at its end are not part of the secret.
    File(PathBuf),
}

/// A secret's text. `Debug` hides it.
#[derive(Clone)]
pub struct SecretText(String);

impl SecretText {
    /// The text itself, for handing to the client library.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(secret)")
    }
}

/// A secret that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is not set or is not UTF-8.
    #[error("environment variable {0} is not set: set it to the secret before starting sluice")]
    Variable(String),
    /// The file could not be read.
    #[error("secret file {path}: {source}: create it or correct the path", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Nothing in it.
    #[error("the secret from {0} is empty: put the secret there")]
    Empty(String),
}

impl Secret {
    /// Reads the secret.
    ///
    /// # Errors
    /// [`SecretError`] when it is missing, unreadable or empty.
    pub fn read(&self) -> Result<SecretText, SecretError> {
        let (text, place) = match self {
            Self::Env(name) => (
                std::env::var(name).map_err(|_| SecretError::Variable(name.clone()))?,
                format!("environment variable {name}"),
            ),
            Self::File(path) => (
                std::fs::read_to_string(path).map_err(|source| SecretError::File {
                    path: path.clone(),
                    source,
                })?,
                format!("file {}", path.display()),
            ),
        };
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            return Err(SecretError::Empty(place));
        }
        Ok(SecretText(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_secret_loses_only_its_line_end() {
        let file = tempfile::NamedTempFile::new().expect("temp file");
        std::fs::write(file.path(), " p@ss:w/ord \r\n").expect("write");
        let secret = Secret::File(file.path().to_owned()).read().expect("read");
        assert_eq!(secret.expose(), " p@ss:w/ord ");
        assert_eq!(format!("{secret:?}"), "(secret)");
    }

    #[test]
    fn missing_variable_is_named() {
        let error = Secret::Env("SLUICE_NO_SUCH_SECRET".to_owned())
            .read()
            .expect_err("unset");
        assert!(error.to_string().contains("SLUICE_NO_SUCH_SECRET"));
    }
}
