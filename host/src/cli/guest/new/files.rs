//! The files of new projects. They are compiled in, so that the binary is all that it takes.

use super::Language;

/// Path in the project, and text.
type File = (&'static str, &'static str);

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../../../../guests/templates/", $path))
    };
}

macro_rules! guests {
    ($path:literal) => {
        include_str!(concat!("../../../../../guests/", $path))
    };
}

/// Of every project.
const COMMON: [File; 5] = [
    ("README.md", template!("common/README.md")),
    (".gitignore", template!("common/gitignore")),
    (
        "samples/messages.jsonl",
        template!("common/samples/messages.jsonl"),
    ),
    (
        "samples/expected.jsonl",
        template!("common/samples/expected.jsonl"),
    ),
    (
        "wit/sluice-guest.wit",
        include_str!("../../../../../wit/sluice-guest.wit"),
    ),
];

const RUST: [File; 4] = [
    ("Cargo.toml", template!("rust/Cargo.toml.template")),
    ("src/lib.rs", template!("rust/src/lib.rs")),
    (
        "sluice-guest/Cargo.toml",
        template!("rust/sdk.toml.template"),
    ),
    ("sluice-guest/README.md", guests!("sdk/README.md")),
];

/// The SDK, which the project has a copy of.
const SDK: [File; 9] = [
    ("sluice-guest/src/adapter.rs", guests!("sdk/src/adapter.rs")),
    ("sluice-guest/src/config.rs", guests!("sdk/src/config.rs")),
    ("sluice-guest/src/field.rs", guests!("sdk/src/field.rs")),
    ("sluice-guest/src/lib.rs", guests!("sdk/src/lib.rs")),
    ("sluice-guest/src/log.rs", guests!("sdk/src/log.rs")),
    ("sluice-guest/src/message.rs", guests!("sdk/src/message.rs")),
    ("sluice-guest/src/metrics.rs", guests!("sdk/src/metrics.rs")),
    ("sluice-guest/src/testing.rs", guests!("sdk/src/testing.rs")),
    ("sluice-guest/src/verdict.rs", guests!("sdk/src/verdict.rs")),
];

const JAVASCRIPT: [File; 4] = [
    ("guest.js", template!("javascript/guest.js")),
    ("guest.test.js", template!("javascript/guest.test.js")),
    (
        "package.json",
        template!("javascript/package.json.template"),
    ),
    ("package-lock.json", guests!("js-enrich/package-lock.json")),
];

const PYTHON: [File; 4] = [
    ("requirements.txt", guests!("py-router/requirements.txt")),
    ("src/app.py", template!("python/src/app.py")),
    ("src/rules.py", template!("python/src/rules.py")),
    (
        "tests/test_rules.py",
        template!("python/tests/test_rules.py"),
    ),
];

const C: [File; 9] = [
    ("guest.c", template!("c/guest.c")),
    ("rules.c", template!("c/rules.c")),
    ("rules.h", template!("c/rules.h")),
    ("rules_test.c", template!("c/rules_test.c")),
    ("runtime.c", guests!("c-mask/runtime.c")),
    ("include/stdlib.h", guests!("c-mask/include/stdlib.h")),
    ("include/string.h", guests!("c-mask/include/string.h")),
    (
        "bindings/transform.c",
        guests!("c-mask/bindings/transform.c"),
    ),
    (
        "bindings/transform.h",
        guests!("c-mask/bindings/transform.h"),
    ),
];

/// Every file of a project.
pub fn of(language: Language) -> Vec<(String, String)> {
    let own: Vec<&File> = match language {
        Language::Rust => RUST.iter().chain(&SDK).collect(),
        Language::Js => JAVASCRIPT.iter().collect(),
        Language::Python => PYTHON.iter().collect(),
        Language::C => C.iter().collect(),
    };
    let files = COMMON.iter().chain(own);
    files
        .map(|(path, text)| {
            let text = match *path {
                // The contract lies nearer than in the workspace of the SDK.
                "sluice-guest/src/lib.rs" => text.replace("\"../../wit\"", "\"../wit\""),
                // As npm wrote it for a package of another name.
                "package-lock.json" => text.replace("guest-js-enrich", "{{name}}"),
                _ => (*text).to_owned(),
            };
            ((*path).to_owned(), text)
        })
        .collect()
}
