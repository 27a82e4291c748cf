//! Which topics a link copies, and where they go.

use std::collections::HashMap;
use std::sync::Arc;

use globset::{Glob, GlobSet, GlobSetBuilder};

use super::Error;
use super::retry::{Retrier, repeat};
use crate::cluster::{Client, Cluster, Connection, Fault, Partition, TopicInfo};
use crate::config::link;
use crate::guest::Outcome;

/// A topic that a link copies.
#[derive(Debug, Clone)]
pub struct SourceTopic {
    /// Stream name.
    pub stream: Arc<str>,
    /// Topic name.
    pub topic: Arc<str>,
    /// As the source describes it.
    pub info: Arc<TopicInfo>,
}

/// The topics that the configuration selects, in the order of their names.
///
/// # Errors
/// [`Error`] when a topic that is named does not exist, when nothing matches, or when the cluster fails.
pub async fn discover(
    connection: &mut Connection,
    retrier: &Retrier,
    source: &link::Source,
) -> Result<Vec<SourceTopic>, Error> {
    let cluster = &source.cluster;
    let streams = repeat!(retrier, connection.streams().await)?;
    let streams = select("stream", &source.streams, streams, cluster)?;
    let exclude = globs(&source.exclude)?;
    let mut found = Vec::new();
    for stream in streams {
        let topics = repeat!(retrier, connection.topics(&stream).await)?.unwrap_or_default();
        for topic in select(
            "topic",
            &source.topics,
            topics,
            &format!("{cluster}:{stream}"),
        )? {
            if exclude.is_match(&topic) {
                continue;
            }
            let info = repeat!(retrier, connection.topic(&stream, &topic).await)?;
            if let Some(info) = info {
                found.push(SourceTopic {
                    stream: stream.as_str().into(),
                    topic: topic.into(),
                    info: Arc::new(info),
                });
            }
        }
    }
    if found.is_empty() {
        return Err(Error::Topology(format!(
            "no topic of cluster `{cluster}` matches streams {:?}, topics {:?}, exclude {:?}: create one or \
             correct the link's source",
            source.streams, source.topics, source.exclude
        )));
    }
    Ok(found)
}

/// The names that match a pattern. A pattern that is a plain name must match.
fn select(
    kind: &str,
    patterns: &[String],
    mut names: Vec<String>,
    place: &str,
) -> Result<Vec<String>, Error> {
    let plain = patterns
        .iter()
        .filter(|pattern| !pattern.contains(['*', '?', '[', '{', '\\']));
    for name in plain {
        if !names.contains(name) {
            return Err(Error::Topology(format!(
                "{kind} `{name}` does not exist in {place}: create it or correct the link's source"
            )));
        }
    }
    let matching = globs(patterns)?;
    names.retain(|name| matching.is_match(name));
    names.sort_unstable();
    Ok(names)
}

fn globs(patterns: &[String]) -> Result<GlobSet, Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = Glob::new(pattern).map_err(|error| Error::Topology(error.to_string()))?;
        set.add(glob);
    }
    set.build()
        .map_err(|error| Error::Topology(error.to_string()))
}

/// Refuses a link that would read what it writes: its own copies or dead letters.
///
/// # Errors
/// [`Error::Topology`] with the topic.
pub fn refuse_loop(
    link: &link::Link,
    (source, target): (&Cluster, &Cluster),
    topics: &[SourceTopic],
) -> Result<(), Error> {
    if source.config.address != target.config.address {
        return Ok(());
    }
    let (streams, exclude) = (globs(&link.source.streams)?, globs(&link.source.exclude)?);
    let selected = globs(&link.source.topics)?;
    let letters = &link.dead_letter;
    let written = topics
        .iter()
        .map(|topic| destination(link, &topic.stream, &topic.topic))
        .chain([(
            letters.stream.as_str().into(),
            letters.topic.as_str().into(),
        )]);
    for (stream, topic) in written {
        let reads = streams.is_match(&*stream) && selected.is_match(&*topic);
        if reads && !exclude.is_match(&*topic) {
            return Err(Error::Topology(format!(
                "link `{}` would read what it writes: {stream}/{topic} at {} is selected by its source; exclude it, \
                 or choose another destination",
                link.name, source.config.address
            )));
        }
    }
    Ok(())
}

/// The destination names of a source topic, by the link's templates.
pub fn destination(link: &link::Link, stream: &str, topic: &str) -> (Arc<str>, Arc<str>) {
    let fill = |template: &str| -> Arc<str> {
        template
            .replace("{stream}", stream)
            .replace("{topic}", topic)
            .replace("{cluster}", &link.source.cluster)
            .into()
    };
    (
        fill(&link.destination.stream),
        fill(&link.destination.topic),
    )
}

/// Sees to it that the destination of a source topic exists and has a partition for each of the source's.
///
/// # Errors
/// [`Error`] when it does not, and the link may not create it; or when the cluster fails.
pub async fn prepare(
    connection: &mut Connection,
    retrier: &Retrier,
    link: &link::Link,
    source: &SourceTopic,
) -> Result<(), Error> {
    let (stream, topic) = destination(link, &source.stream, &source.topic);
    let needed = partition_count(&source.info);
    let wanted = Wanted {
        stream: &stream,
        topic: &topic,
        partitions: needed,
        like: Some(&source.info),
    };
    let mut present = Topics::new(retrier.clone(), link.create)
        .partitions(connection, wanted)
        .await?;
    if present < needed && !link.create {
        return Err(Error::Topology(format!(
            "topic {stream}/{topic} of cluster `{}` has {present} partitions, but {}/{} has {needed}: add \
             partitions, or set create = true on link `{}`",
            link.destination.cluster, source.stream, source.topic, link.name
        )));
    }
    let mut pauses = retrier.pauses();
    while present < needed {
        let missing = needed - present;
        if let Err(error) = connection.create_partitions(&stream, &topic, missing).await {
            pauses.after(error).await?;
        }
        // Looked up again also after a failure, whose partitions may have been added all the same.
        let info = repeat!(retrier, connection.get_topic(&stream, &topic).await)?;
        let before = std::mem::replace(&mut present, info.as_ref().map_or(0, partition_count));
        if present > before {
            tracing::info!(%stream, %topic, added = present - before, "added partitions at the destination");
        }
    }
    Ok(())
}

/// Number of partitions, which have the ids from 0 on.
pub fn partition_count(info: &TopicInfo) -> u32 {
    info.partitions.last().map_or(0, |last| last.id + 1)
}

/// A topic that should exist at the destination.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Stream name.
    pub stream: &'a Arc<str>,
    /// Topic name.
    pub topic: &'a Arc<str>,
    /// Partitions that it gets if it is created.
    pub partitions: u32,
    /// The topic whose options it gets if it is created.
    pub like: Option<&'a TopicInfo>,
}

/// What is known of the destination's topics.
#[derive(Debug)]
pub struct Topics {
    retrier: Retrier,
    create: bool,
    known: HashMap<(Arc<str>, Arc<str>), u32>,
}

impl Topics {
    /// Nothing is known yet. Missing topics are created if `create` says so.
    pub fn new(retrier: Retrier, create: bool) -> Self {
        Self {
            retrier,
            create,
            known: HashMap::new(),
        }
    }

    /// How many partitions a topic has, as far as it is known.
    pub fn known(&self, partition: &Partition) -> Option<u32> {
        let key = (Arc::clone(&partition.stream), Arc::clone(&partition.topic));
        self.known.get(&key).copied()
    }

    /// Looks up the topics that guests chose and that are not known yet, creating them like `like`.
    ///
    /// # Errors
    /// As [`Topics::partitions`].
    pub async fn learn_chosen<C: Client>(
        &mut self,
        client: &mut C,
        outcomes: &[Outcome],
        default: &Partition,
        like: &TopicInfo,
    ) -> Result<(), Error> {
        for outcome in outcomes {
            for choice in outcome.routes.as_deref().unwrap_or_default() {
                let wanted = Wanted {
                    stream: choice.stream.as_ref().unwrap_or(&default.stream),
                    topic: choice.topic.as_ref().unwrap_or(&default.topic),
                    partitions: partition_count(like),
                    like: Some(like),
                };
                let Err(error) = self.partitions(client, wanted).await else {
                    continue;
                };
                let hopeless = match &error {
                    Error::Topology(_) => true,
                    Error::Cluster(error) => error.fault == Fault::Poison,
                    _ => false,
                };
                if !hopeless {
                    return Err(error);
                }
                // A name that a guest made up must not stop the link; the messages routed there fail.
                tracing::warn!("{error}");
                let key = (Arc::clone(wanted.stream), Arc::clone(wanted.topic));
                self.known.insert(key, 0);
            }
        }
        Ok(())
    }

    /// How many partitions a topic has. A missing one is created if that is allowed.
    ///
    /// # Errors
    /// [`Error`] when it is missing and may not be created, or when the cluster fails.
    pub async fn partitions<C: Client>(
        &mut self,
        client: &mut C,
        wanted: Wanted<'_>,
    ) -> Result<u32, Error> {
        let Wanted {
            stream,
            topic,
            partitions,
            like,
        } = wanted;
        let key = (Arc::clone(stream), Arc::clone(topic));
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let mut info = repeat!(self.retrier, client.topic(stream, topic).await)?;
        if info.is_none() && self.create {
            info = repeat!(
                self.retrier,
                client.create_like(stream, topic, partitions, like).await
            )?;
            tracing::info!(%stream, %topic, partitions, "created a topic at the destination");
        }
        let Some(info) = info else {
            let cluster = client.cluster();
            return Err(Error::Topology(format!(
                "topic {stream}/{topic} does not exist at cluster `{cluster}`: create it, or set create = true"
            )));
        };
        let count = partition_count(&info);
        self.known.insert(key, count);
        Ok(count)
    }
}
