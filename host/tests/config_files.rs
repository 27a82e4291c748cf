//! Every configuration file of the repository loads, and so does the one in the README.

use std::path::Path;

#[test]
fn every_file_in_config_is_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config");
    let mut checked = 0;
    for entry in std::fs::read_dir(&folder).expect("the folder exists") {
        let path = entry.expect("readable").path();
        let loaded = sluice::config::load(&path, std::iter::empty());
        assert!(loaded.is_ok(), "{}: {:?}", path.display(), loaded.err());
        checked += 1;
    }
    assert!(checked >= 3, "only {checked} files in {}", folder.display());
}

#[test]
fn the_configuration_in_the_readme_is_valid() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let text = std::fs::read_to_string(readme).expect("readable");
    let block = text.split("```toml\n").nth(1).expect("a block of TOML");
    let config = block.split("```").next().expect("its end");
    assert_eq!(config.lines().count(), 12);
    let folder = tempfile::tempdir().expect("temp dir");
    let path = folder.path().join("sluice.toml");
    std::fs::write(&path, config).expect("write");
    let loaded = sluice::config::load(&path, std::iter::empty());
    assert!(loaded.is_ok(), "{:?}", loaded.err());
}
