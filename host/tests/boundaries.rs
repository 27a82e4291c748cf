//! Only `cluster` names SDK clients, and only `guest` names wasmtime.

use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The files, relative to `src`, with a line of code that names one of `words`.
fn naming(words: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 20, "only {} files found", files.len());
    let names = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("readable");
        text.lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .any(|line| words.iter().any(|word| line.contains(word)))
    };
    files
        .into_iter()
        .filter(names)
        .map(|path| {
            path.strip_prefix(&root)
                .expect("below")
                .display()
                .to_string()
        })
        .collect()
}

#[test]
fn only_cluster_names_sdk_clients() {
    let found = naming(&["iggy::", "iggy_common::"]);
    assert!(!found.is_empty());
    for file in found {
        assert!(file.starts_with("cluster"), "{file} names the SDK");
    }
}

#[test]
fn only_guest_names_wasmtime() {
    let found = naming(&["wasmtime::"]);
    assert!(!found.is_empty());
    for file in found {
        assert!(file.starts_with("guest"), "{file} names wasmtime");
    }
}
