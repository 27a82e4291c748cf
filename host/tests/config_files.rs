//! Every configuration file of the repository loads.

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
