//! Reading a configuration file.

use std::path::{Path, PathBuf};

use super::overrides::{self, OverrideError};
use super::{Config, Secret, validate};

/// A configuration that cannot be used. All of these are the operator's to mend.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read.
    #[error("cannot read the configuration {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file is not TOML, or a key or value is wrong.
    #[error("the configuration {path} is not valid: {reason}", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, key and reason.
        reason: String,
    },
    /// An environment variable does not fit.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// Each value is well-formed, but they do not fit together.
    #[error("the configuration {path} is not valid:{}", list(problems), path = path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Every problem found.
        problems: Vec<String>,
    },
}

fn list(problems: &[String]) -> String {
    let separator = "\n  - ";
    format!("{separator}{}", problems.join(separator))
}

/// Reads `path`, applies `SLUICE_*` overrides from `environment` and checks the result. Relative paths in the
/// file become relative to its folder.
///
/// # Errors
/// [`Error`], naming the file, the key and the remedy.
pub fn load(
    path: &Path,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<Config, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let parse_error = |error: &toml::de::Error| Error::Parse {
        path: path.to_owned(),
        reason: with_suggestion(error),
    };
    let table: toml::Table = toml::from_str(&text).map_err(|error| parse_error(&error))?;
    let (table, overridden) = overrides::apply(table, environment)?;
    // Parsing from the text keeps line numbers in errors, so the table is used only when it differs.
    let parsed = if overridden {
        table.try_into()
    } else {
        toml::from_str(&text)
    };
    let mut config: Config = parsed.map_err(|error| parse_error(&error))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    resolve_paths(&mut config, folder);
    let problems = validate::problems(&config);
    if problems.is_empty() {
        Ok(config)
    } else {
        Err(Error::Invalid {
            path: path.to_owned(),
            problems,
        })
    }
}

fn resolve_paths(config: &mut Config, folder: &Path) {
    let resolve = |path: &mut PathBuf| *path = folder.join(&*path);
    resolve(&mut config.gateway.state_dir);
    for guest in config.guests.values_mut() {
        resolve(&mut guest.component);
        if let Some(samples) = &mut guest.samples {
            resolve(&mut samples.input);
            samples.expect.iter_mut().for_each(resolve);
        }
        let folders = guest.grants.folders.iter_mut();
        folders.flat_map(|list| list.values_mut()).for_each(resolve);
    }
    for cluster in config.clusters.values_mut() {
        for secret in [&mut cluster.password, &mut cluster.token]
            .into_iter()
            .flatten()
        {
            if let Secret::File(path) = secret {
                resolve(path);
            }
        }
    }
}

/// The parser lists the keys it knows; the nearest one is usually the one that was meant.
fn with_suggestion(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let message = error.message();
    let mut quoted = message.split('`').skip(1).step_by(2);
    let nearest = message
        .starts_with("unknown ")
        .then(|| quoted.next())
        .flatten()
        .and_then(|unknown| {
            quoted.max_by(|left, right| {
                strsim::jaro_winkler(unknown, left).total_cmp(&strsim::jaro_winkler(unknown, right))
            })
        });
    match nearest {
        Some(nearest) => format!("{}\ndid you mean `{nearest}`?", text.trim_end()),
        None => text.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = r#"
        [gateway]
        name = "eu-to-us"
        [clusters.eu]
        address = "127.0.0.1:8090"
        username = "iggy"
        password = { env = "EU_PASSWORD" }
        [clusters.us]
        address = "127.0.0.1:8091"
        token = { file = "us.token" }
        [guests.keep]
        component = "guests/keep.wasm"
        config = { fields = ["card"] }
        limits = { memory = "32 MiB", time = "50 ms" }
        [[links]]
        name = "orders"
        source = { cluster = "eu", streams = ["shop"], topics = ["orders*"] }
        destination = { cluster = "us", topic = "eu.{topic}" }
        guests = ["keep"]
        retry = { initial = "10 ms", attempts = "unlimited" }
    "#;

    fn load_text(text: &str, environment: &[(&str, &str)]) -> Result<Config, Error> {
        let folder = tempfile::tempdir().expect("temp dir");
        let path = folder.path().join("sluice.toml");
        std::fs::write(&path, text).expect("write");
        let environment = environment
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        load(&path, environment)
    }

    fn refusal(text: &str) -> String {
        load_text(text, &[])
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn a_minimal_configuration_has_defaults_and_absolute_paths() {
        let config = load_text(MINIMAL, &[]).expect("valid");
        assert!(config.guests["keep"].component.is_absolute());
        assert!(config.gateway.state_dir.ends_with("state"));
        assert_eq!(config.links[0].batch.messages, 1000);
        assert_eq!(config.guests["keep"].limits.memory.as_u64(), 32 << 20);
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_the_nearest_key() {
        let message = refusal(&MINIMAL.replace("destination =", "destnation ="));
        assert!(message.contains("unknown field `destnation`"), "{message}");
        assert!(message.contains("did you mean `destination`?"), "{message}");
        assert!(message.contains("line 18"), "{message}");
    }

    #[test]
    fn names_that_lead_nowhere_are_all_reported() {
        let message = refusal(
            &MINIMAL
                .replace("cluster = \"us\"", "cluster = \"uk\"")
                .replace("guests = [\"keep\"]", "guests = [\"keeep\"]"),
        );
        assert!(message.contains("cluster `uk`"), "{message}");
        assert!(message.contains("guest `keeep`"), "{message}");
        assert!(message.contains("did you mean `keep`?"), "{message}");
    }

    #[test]
    fn environment_overrides_follow_the_key_path() {
        let config = load_text(
            MINIMAL,
            &[
                ("SLUICE_CLUSTERS_EU_ADDRESS", "127.0.0.1:9000"),
                ("SLUICE_GATEWAY_STATE_DIR", "elsewhere"),
                ("SLUICE_LINKS_ORDERS_RETRY_INITIAL", "7 ms"),
                ("PATH", "/bin"),
            ],
        )
        .expect("valid");
        assert_eq!(config.clusters["eu"].address, "127.0.0.1:9000");
        assert!(config.gateway.state_dir.ends_with("elsewhere"));
        assert_eq!(
            config.links[0].retry.initial,
            std::time::Duration::from_millis(7)
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = load(Path::new("/no/such/sluice.toml"), std::iter::empty()).expect_err("gone");
        assert!(error.to_string().contains("/no/such/sluice.toml"));
    }
}
