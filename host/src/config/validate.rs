//! Checks that no single value can answer for: names that must lead somewhere, sizes that must fit.

use std::collections::BTreeSet;

use globset::Glob;

use super::{Cluster, Config, Guest, Link};

/// A request frame of Iggy holds 64 MiB; the rest is room for its headers.
const LARGEST_BATCH: u64 = 60 * 1024 * 1024;

/// Every problem of a well-formed configuration, each with its remedy.
pub fn problems(config: &Config) -> Vec<String> {
    let mut problems = Vec::new();
    if config.gateway.name.is_empty() || config.gateway.name.len() > 200 {
        problems.push("gateway.name must have 1 to 200 bytes".to_owned());
    }
    if config.gateway.checkpoint_interval.is_zero() || config.gateway.mirror_interval.is_zero() {
        problems.push(
            "gateway.checkpoint_interval and gateway.mirror_interval must be above 0".to_owned(),
        );
    }
    if config.gateway.watch_interval.is_zero() {
        problems.push("gateway.watch_interval must be above 0".to_owned());
    }
    for (name, guest) in &config.guests {
        problems.extend(guest_problems(name, guest));
    }
    if let Some(admin) = &config.admin
        && !admin.address.ip().is_loopback()
    {
        problems.push(format!(
            "admin.address {} can be reached from elsewhere, and nobody has to log in: use a loopback address",
            admin.address
        ));
    }
    for (name, cluster) in &config.clusters {
        problems.extend(cluster_problem(name, cluster));
    }
    if config.links.is_empty() {
        problems.push("there is no link: add a [[links]] section".to_owned());
    }
    let mut seen = BTreeSet::new();
    for link in &config.links {
        if !seen.insert(link.name.as_str()) {
            problems.push(format!(
                "two links are called `{}`: give each its own name",
                link.name
            ));
        }
        link_problems(config, link, &mut problems);
    }
    problems
}

/// Every problem of a guest's section.
pub fn guest_problems(name: &str, guest: &Guest) -> Vec<String> {
    let mut problems = Vec::new();
    let limits = &guest.limits;
    if limits.time.is_zero() || limits.start.is_zero() {
        problems.push(format!(
            "guest `{name}`: limits.time and limits.start must be above 0"
        ));
    }
    let breaker = &guest.breaker;
    if breaker.faults == 0 || breaker.pause.is_zero() || breaker.max_pause < breaker.pause {
        problems.push(format!(
            "guest `{name}`: breaker.faults and breaker.pause must be above 0, and breaker.max_pause no less than \
             breaker.pause"
        ));
    }
    for variable in guest.grants.environment.iter().flatten() {
        if variable.is_empty() || variable.contains(['=', '\0']) {
            problems.push(format!(
                "guest `{name}`: grants.environment holds {variable:?}, which is no name of a variable"
            ));
        }
    }
    for path in guest.grants.folders.iter().flat_map(|list| list.keys()) {
        if !path.starts_with('/') {
            problems.push(format!(
                "guest `{name}`: grants.folders gives the folder `{path}`; a guest's path starts with `/`"
            ));
        }
    }
    if let Some(key) = no_json(&guest.config) {
        problems.push(format!(
            "guest `{name}`: config.{key} is inf or nan, which JSON cannot tell the guest"
        ));
    }
    problems
}

/// The first key of a table whose number JSON does not have.
fn no_json(table: &toml::Table) -> Option<String> {
    fn within(value: &toml::Value) -> Option<String> {
        match value {
            toml::Value::Float(number) if !number.is_finite() => Some(String::new()),
            toml::Value::Array(list) => list.iter().find_map(within),
            toml::Value::Table(table) => no_json(table).map(|key| format!(".{key}")),
            _ => None,
        }
    }
    table
        .iter()
        .find_map(|(key, value)| within(value).map(|rest| format!("{key}{rest}")))
}

fn cluster_problem(name: &str, cluster: &Cluster) -> Option<String> {
    match (&cluster.username, &cluster.password, &cluster.token) {
        (Some(_), Some(_), None) | (None, None, Some(_)) => None,
        _ => Some(format!(
            "cluster `{name}` needs either `username` and `password`, or `token`"
        )),
    }
}

fn link_problems(config: &Config, link: &Link, problems: &mut Vec<String>) {
    let name = &link.name;
    if name.is_empty() || name.contains(char::is_control) {
        problems.push("a link needs a `name` without control characters".to_owned());
    }
    for cluster in [&link.source.cluster, &link.destination.cluster] {
        if !config.clusters.contains_key(cluster) {
            problems.push(unknown("cluster", cluster, name, config.clusters.keys()));
        }
    }
    for guest in &link.guests {
        if !config.guests.contains_key(guest) {
            problems.push(unknown("guest", guest, name, config.guests.keys()));
        }
    }
    if link.source.streams.is_empty() || link.source.topics.is_empty() {
        problems.push(format!(
            "link `{name}` selects nothing: name at least one stream and one topic"
        ));
    }
    let patterns = [
        &link.source.streams,
        &link.source.topics,
        &link.source.exclude,
    ];
    for pattern in patterns.into_iter().flatten() {
        if let Err(error) = Glob::new(pattern) {
            problems.push(format!("link `{name}`: `{pattern}` is no glob: {error}"));
        }
    }
    for template in [&link.destination.stream, &link.destination.topic] {
        if let Some(placeholder) = unknown_placeholder(template) {
            problems.push(format!(
                "link `{name}`: `{template}` holds {placeholder}; known are {{stream}}, {{topic}} and {{cluster}}"
            ));
        }
    }
    if !(1..=1_000_000).contains(&link.batch.messages) {
        problems.push(format!(
            "link `{name}`: batch.messages must be 1 to 1,000,000"
        ));
    }
    if !(1..=LARGEST_BATCH).contains(&link.batch.bytes.as_u64()) {
        problems.push(format!(
            "link `{name}`: batch.bytes must be above 0 and at most 60 MiB, which fits Iggy's 64 MiB frames"
        ));
    }
    if link.retry.initial.is_zero() || link.retry.initial > link.retry.max {
        problems.push(format!(
            "link `{name}`: retry.initial must be above 0 and at most retry.max"
        ));
    }
    if loops(link) {
        problems.push(format!(
            "link `{name}` would read what it writes: give the destination another cluster, stream or topic"
        ));
    }
}

fn unknown<'a>(
    kind: &str,
    name: &str,
    link: &str,
    known: impl Iterator<Item = &'a String>,
) -> String {
    let nearest = known.max_by(|left, right| {
        strsim::jaro_winkler(name, left).total_cmp(&strsim::jaro_winkler(name, right))
    });
    let remedy = match nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("add [{kind}s.{name}]"),
    };
    format!("link `{link}` names the {kind} `{name}`, which is not configured: {remedy}")
}

fn unknown_placeholder(template: &str) -> Option<String> {
    let bare = ["{stream}", "{topic}", "{cluster}"]
        .iter()
        .fold(template.to_owned(), |text, known| text.replace(known, ""));
    let start = bare.find(['{', '}'])?;
    let end = bare[start..]
        .find('}')
        .map_or(bare.len(), |end| start + end + 1);
    Some(format!("`{}`", &bare[start..end]))
}

fn loops(link: &Link) -> bool {
    link.source.cluster == link.destination.cluster
        && link.destination.stream == "{stream}"
        && link.destination.topic == "{topic}"
}
