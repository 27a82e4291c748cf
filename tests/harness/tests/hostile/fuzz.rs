//! Guests that answer what a payload tells them to: any bytes at all.

use std::sync::{LazyLock, Mutex, PoisonError};

use proptest::prelude::*;
use sluice::batch::headers;
use sluice::guest::{Chain, Fate, Outcome, Stage};

use super::frame::World;
use super::{batch, chain, engine};

/// Where the guests put the payload: their answer starts here.
const ANSWER: u32 = 1024;

/// Bytes of an answer.
const SIZE: usize = 512;

const KEYS: &str = r#"
limits = { memory = "16 MiB", time = "30 s" }
breaker = { faults = 1000000 }
"#;

/// The payload is the verdict.
const MESSAGE: &str = "(func $realloc (type $realloc) (i32.const 1024))
(func $handle (type $handle) (local.get 8))";

/// The payload is the verdicts. Lists of numbers go elsewhere; they are the ones that are aligned to more than a byte.
const BATCH: &str = "(func $realloc (type $realloc)
  (if (i32.gt_u (local.get 2) (i32.const 1))
    (then (return (i32.const 16384))))
  (i32.const 1024))
(func $handle (type $handle) (local.get 10))";

fn started(world: World, fields: &str) -> Mutex<Chain> {
    let engine = engine().expect("an engine");
    Mutex::new(chain(&engine, world, fields, KEYS).expect("it starts"))
}

static MESSAGES: LazyLock<Mutex<Chain>> = LazyLock::new(|| started(World::Transform, MESSAGE));
static BATCHES: LazyLock<Mutex<Chain>> = LazyLock::new(|| started(World::TransformBatch, BATCH));

/// Numbers that lead somewhere: cases, lengths, positions in the answer, and some that lead nowhere.
fn word() -> impl Strategy<Value = u32> {
    let positions = 0..u32::try_from(SIZE / 4).expect("small");
    prop_oneof![
        8 => 0_u32..2,
        2 => 0_u32..16,
        4 => positions.prop_map(|at| ANSWER + at * 4),
        2 => 0_u32..300,
        1 => any::<u32>(),
        1 => Just(u32::MAX),
    ]
}

fn answer() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::collection::vec(word(), SIZE / 4)
        .prop_map(|words| words.into_iter().flat_map(u32::to_le_bytes).collect());
    let bytes = prop::collection::vec(any::<u8>(), SIZE);
    prop_oneof![9 => words, 1 => bytes]
}

/// Puts `numbers` into an answer from byte `at` on.
fn put(answer: &mut [u8], at: usize, numbers: &[u32]) {
    for (place, number) in answer[at..].chunks_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
}

/// Where an answer has routes and changes of headers that are most often well-formed.
const ROUTES: usize = 96;
const CHANGES: usize = 160;

/// The first numbers of a verdict: a case, and lists that lie within the answer.
fn head() -> impl Strategy<Value = Vec<u32>> {
    let list = |at: usize| {
        let at = ANSWER + u32::try_from(at).expect("small");
        let places = prop_oneof![4 => Just(at), 1 => (8_u32..40).prop_map(|at| ANSWER + at * 8)];
        (places, 0_u32..3).prop_map(|(at, count)| [at, count])
    };
    let case = prop_oneof![0_u32..5, Just(3)];
    // The case `route` has but one list.
    let lists = (list(ROUTES), list(CHANGES), list(300));
    (case, lists, 0_u32..2).prop_map(|(case, (routes, changes, payload), some)| {
        [&[case], &routes[..], &changes, &[some], &payload].concat()
    })
}

/// A text or a list of bytes.
fn span() -> impl Strategy<Value = [u32; 2]> {
    (ANSWER + 300..ANSWER + 400, 0_u32..6).prop_map(|(at, length)| [at, length])
}

fn routes() -> impl Strategy<Value = Vec<u32>> {
    let route = (0_u32..2, span(), 0_u32..2, span(), 0_u32..2, any::<u32>()).prop_map(
        |(stream, its_name, topic, its_name_too, partition, id)| {
            let [at, length] = its_name;
            let [topic_at, topic_length] = its_name_too;
            vec![
                stream,
                at,
                length,
                topic,
                topic_at,
                topic_length,
                partition,
                id,
            ]
        },
    );
    prop::collection::vec(route, 2).prop_map(|routes| routes.concat())
}

fn changes() -> impl Strategy<Value = Vec<u32>> {
    let field = || {
        (0_u32..16, span()).prop_map(|(kind, [at, length])| {
            let other = [kind, 0, at, length, length, 0];
            let plain = [kind, 0, at, length, 0, 0];
            if kind == 15 { other } else { plain }
        })
    };
    let change = (0_u32..3, field(), field())
        .prop_map(|(case, first, second)| [&[case, 0], &first[..], &second].concat());
    prop::collection::vec(change, 2).prop_map(|changes| changes.concat())
}

/// An answer with routes and changes in their places.
fn with_lists() -> impl Strategy<Value = Vec<u8>> {
    (answer(), routes(), changes()).prop_map(|(mut bytes, routes, changes)| {
        put(&mut bytes, ROUTES, &routes);
        put(&mut bytes, CHANGES, &changes);
        bytes
    })
}

fn verdict() -> impl Strategy<Value = Vec<u8>> {
    (with_lists(), head()).prop_map(|(mut bytes, head)| {
        put(&mut bytes, 0, &head);
        bytes
    })
}

/// Verdicts for one message: choice 0 of a table of one or two verdicts.
fn verdicts() -> impl Strategy<Value = Vec<u8>> {
    let heads = prop::collection::vec(head(), 1..3);
    (with_lists(), heads).prop_map(|(mut bytes, heads)| {
        // The choices lie in the last four bytes, the table after the first four numbers.
        let entries = u32::try_from(heads.len()).expect("few");
        let end = ANSWER + u32::try_from(SIZE).expect("small");
        put(&mut bytes, 0, &[end - 4, 1, ANSWER + 16, entries]);
        for (entry, head) in heads.iter().enumerate() {
            put(&mut bytes, 16 + entry * 32, head);
        }
        put(&mut bytes, SIZE - 4, &[0]);
        bytes
    })
}

fn judge(chain: &Mutex<Chain>, answer: &[u8], others: &[u8]) -> Vec<Outcome> {
    let mut chain = chain.lock().unwrap_or_else(PoisonError::into_inner);
    let mut outcomes = Vec::new();
    // One by one: a packed batch would take the first answer for all.
    for payload in [others, answer, others] {
        let mut judged = chain.apply(&batch(&[payload], &[]));
        assert_eq!(judged.outcomes.len(), 1);
        assert!(judged.pause.is_none(), "{:?}", judged.pause);
        outcomes.append(&mut judged.outcomes);
    }
    outcomes
}

fn forwarded(outcome: &Outcome) -> bool {
    matches!(outcome.fate, Fate::Deliver) && outcome.edit.is_none() && outcome.routes.is_none()
}

/// What a lane may rely on, whatever the guest answered.
fn assert_sound(outcome: &Outcome) {
    if let Fate::Fail(failure) = &outcome.fate {
        assert_ne!(failure.stage, Stage::Timeout);
        assert!(failure.reason.len() <= 1024);
        return;
    }
    if let Some(routes) = &outcome.routes {
        assert!((1..=64).contains(&routes.len()));
        for route in routes.iter() {
            for name in [&route.stream, &route.topic].into_iter().flatten() {
                assert!((1..=255).contains(&name.len()));
            }
        }
    }
    if let Some(bytes) = outcome.edit.as_ref().and_then(|edit| edit.headers.as_ref()) {
        let parsed = headers::parse(bytes).expect("rewritten headers parse");
        for (key, value) in parsed {
            for field in [key, value] {
                assert_ne!(field.kind, 0);
                assert!((1..=255).contains(&field.bytes.len()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_verdict_is_carried_out_or_refused(answer in prop_oneof![verdict(), answer()]) {
        let outcomes = judge(&MESSAGES, &answer, &[0; SIZE]);
        assert_sound(&outcomes[1]);
        prop_assert!(forwarded(&outcomes[0]) && forwarded(&outcomes[2]), "{outcomes:?}");
    }

    #[test]
    fn any_packed_verdicts_are_carried_out_or_refused(answer in prop_oneof![verdicts(), answer()]) {
        let mut forward = [0; SIZE];
        put(&mut forward, 0, &[ANSWER + 64, 1, ANSWER + 64, 1]);
        let outcomes = judge(&BATCHES, &answer, &forward);
        assert_sound(&outcomes[1]);
        prop_assert!(forwarded(&outcomes[0]) && forwarded(&outcomes[2]), "{outcomes:?}");
    }
}

/// The fuzzing above is worth something only while it gets as far as the verdicts that change messages.
#[test]
fn every_kind_of_verdict_comes_up() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    for (chain, answers) in [
        (&MESSAGES, verdict().boxed()),
        (&BATCHES, verdicts().boxed()),
    ] {
        let mut seen = std::collections::BTreeMap::<&str, u32>::new();
        let mut runner = TestRunner::deterministic();
        for _ in 0..4000 {
            let tree = answers.new_tree(&mut runner).expect("an answer");
            let mut chain = chain.lock().unwrap_or_else(PoisonError::into_inner);
            let judged = chain.apply(&batch(&[tree.current().as_slice()], &[]));
            let outcome = &judged.outcomes[0];
            let kind = match &outcome.fate {
                Fate::Fail(failure) => failure.stage.name(),
                Fate::Drop => "drop",
                Fate::Deliver
                    if outcome
                        .edit
                        .as_ref()
                        .is_some_and(|edit| edit.headers.is_some()) =>
                {
                    "headers"
                }
                Fate::Deliver
                    if outcome
                        .edit
                        .as_ref()
                        .is_some_and(|edit| edit.payload.is_some()) =>
                {
                    "payload"
                }
                Fate::Deliver if outcome.routes.is_some() => "route",
                Fate::Deliver => "forward",
            };
            *seen.entry(kind).or_default() += 1;
            drop(chain);
        }
        println!("{seen:?}");
        for kind in [
            "drop", "forward", "headers", "payload", "reject", "route", "trap", "verdict",
        ] {
            assert!(
                seen.get(kind).is_some_and(|count| *count > 50),
                "{kind}: {seen:?}"
            );
        }
    }
}
