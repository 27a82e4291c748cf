//! Whether a component is still what its inputs say.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// All that a component is made from. A component is built again when any of it changes.
#[derive(Debug)]
pub struct Inputs {
    hasher: DefaultHasher,
}

impl Inputs {
    /// How it is built: commands and versions, in any form.
    pub fn new(how: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        how.hash(&mut hasher);
        Self { hasher }
    }

    /// Adds the files of a folder and of those in it, without documentation and what tools leave there.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn folder(mut self, folder: &Path) -> Result<Self> {
        let mut files = Vec::new();
        list(folder, &mut files)
            .with_context(|| format!("cannot read the folder {}", folder.display()))?;
        files.sort();
        for file in files {
            file.hash(&mut self.hasher);
            let content =
                std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            content.hash(&mut self.hasher);
        }
        Ok(self)
    }

    /// Runs `build` unless the component is there and was built from the same inputs.
    ///
    /// # Errors
    /// When the build fails.
    pub fn unless_built(
        self,
        component: &Path,
        build: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<()> {
        let stamp = component.with_extension("inputs");
        let inputs = format!("{:016x}", self.hasher.finish());
        let same = std::fs::read_to_string(&stamp).is_ok_and(|before| before == inputs);
        if same && component.exists() {
            return Ok(());
        }
        let bytes = build()?;
        write(component, &bytes)?;
        write(&stamp, inputs.as_bytes())
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let left_by_tools = name.starts_with('.') || name.starts_with("__");
        let no_input = matches!(&*name, "node_modules" | "target")
            || name.ends_with(".md")
            || name.ends_with(".wasm");
        if left_by_tools || no_input {
            continue;
        }
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_built_again_when_an_input_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, component) = (folder.path().join("source"), folder.path().join("a.wasm"));
        std::fs::create_dir(&source).expect("created");
        std::fs::write(source.join("guest.js"), "1").expect("written");
        let builds = std::cell::Cell::new(0);
        let build = |how: &str| {
            builds.set(0);
            let inputs = Inputs::new(how).folder(&source).expect("readable");
            let built = inputs.unless_built(&component, || {
                builds.set(1);
                Ok(vec![1])
            });
            built.expect("built");
            builds.get()
        };
        assert_eq!(build("a"), 1);
        assert_eq!(build("a"), 0);
        assert_eq!(build("b"), 1);
        std::fs::create_dir(source.join("node_modules")).expect("created");
        std::fs::write(source.join("node_modules/more.js"), "2").expect("written");
        assert_eq!(build("b"), 0, "not an input");
        std::fs::write(source.join("guest.js"), "2").expect("written");
        assert_eq!(build("b"), 1);
        std::fs::remove_file(&component).expect("removed");
        assert_eq!(build("b"), 1);
    }

    #[test]
    fn a_build_that_fails_is_tried_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let component = folder.path().join("a.wasm");
        let failed = Inputs::new(1).unless_built(&component, || anyhow::bail!("no"));
        failed.expect_err("failed");
        assert!(!component.exists());
        Inputs::new(1)
            .unless_built(&component, || Ok(vec![1]))
            .expect("built");
        assert!(component.exists());
    }
}
