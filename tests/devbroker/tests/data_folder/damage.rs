//! Files that are not as the broker left them.

use std::fs;

use crate::Process;

#[tokio::test]
async fn a_batch_that_was_not_written_to_its_end_is_cut_off() {
    let mut broker = Process::start(&["--save-every", "1"]).await;
    broker.send(0, 1..4).await;
    let file = broker.files()[0].clone();
    let length = fs::metadata(&file).unwrap().len();
    broker.send(0, 4..7).await;
    broker.end("-KILL").await;
    let whole = fs::read(&file).unwrap();
    for torn in [length + 1, length + 15, length + 20, whole.len() as u64 - 1] {
        fs::write(&file, &whole[..usize::try_from(torn).unwrap()]).unwrap();
        broker.start_again().await;
        assert_eq!(broker.places().await, [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(fs::metadata(&file).unwrap().len(), length);
        broker.end("-KILL").await;
    }
    broker.start_again().await;
    assert_eq!(broker.send(0, 8..9).await, 3);
    broker.end_and_start_again("-KILL").await;
    assert_eq!(broker.places().await, [(0, 1), (1, 2), (2, 3), (3, 8)]);
}

#[tokio::test]
async fn any_other_damage_is_an_error_that_names_the_file() {
    let mut broker = Process::start(&["--save-every", "1"]).await;
    broker.send(0, 1..4).await;
    broker.send(0, 4..7).await;
    broker.end("-KILL").await;
    let file = broker.files()[0].clone();
    let metadata = broker.folder.path().join("metadata");
    for damaged in [&file, &metadata] {
        let whole = fs::read(damaged).unwrap();
        let middle = whole.len() / 4;
        for position in [0, 9, middle, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[position] ^= 0x15;
            fs::write(damaged, &bytes).unwrap();
            complains(&broker, &damaged.display().to_string()).await;
        }
        fs::remove_file(damaged).unwrap();
        complains(&broker, &damaged.display().to_string()).await;
        fs::write(damaged, whole).unwrap();
    }
    broker.start_again().await;
    assert_eq!(broker.places().await.len(), 6);
}

async fn complains(broker: &Process, name: &str) {
    let ended = broker.fail_to_start().await;
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{error}");
    assert!(error.contains(name), "{error}");
    assert!(ended.stdout.is_empty());
}
