//! Streams, topics and partitions: looking them up and creating them.

use iggy::prelude::{
    Identifier, IggyError, PartitionClient, StreamClient, TopicClient, TopicCreateOptions,
};
use iggy_common::{TopicDetails, TopicRuntimeOptions};

use super::Connection;
use super::error::{Cause, Error};

/// A topic as its cluster describes it.
#[derive(Debug, Clone)]
pub struct TopicInfo {
    /// Its partitions, in the order of their ids.
    pub partitions: Vec<PartitionInfo>,
    /// The options that make another topic like this one.
    options: TopicCreateOptions,
}

/// A partition as its cluster describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionInfo {
    /// Partition id, from 0.
    pub id: u32,
    /// Highest offset that it ever held; 0 also when it never held a message.
    pub current_offset: u64,
    /// Messages that it holds now.
    pub messages: u64,
}

impl Connection {
    /// Names of all streams.
    ///
    /// # Errors
    /// [`Error`] when the call fails.
    pub async fn streams(&mut self) -> Result<Vec<String>, Error> {
        self.call("list streams", |client| async move {
            let streams = client.get_streams().await?;
            Ok(streams.into_iter().map(|stream| stream.name).collect())
        })
        .await
    }

    /// Names of all topics of a stream; none when the stream does not exist.
    ///
    /// # Errors
    /// [`Error`] when the call fails.
    pub async fn topics(&mut self, stream: &str) -> Result<Option<Vec<String>>, Error> {
        self.call(format!("list topics of {stream}"), |client| async move {
            let details = client.get_stream(&named(stream)?).await?;
            Ok(details.map(|stream| stream.topics.into_iter().map(|topic| topic.name).collect()))
        })
        .await
    }

    /// A topic; none when it or its stream does not exist.
    ///
    /// # Errors
    /// [`Error`] when the call fails.
    pub async fn get_topic(
        &mut self,
        stream: &str,
        topic: &str,
    ) -> Result<Option<TopicInfo>, Error> {
        self.call(format!("get topic {stream}/{topic}"), |client| async move {
            let details = client.get_topic(&named(stream)?, &named(topic)?).await?;
            Ok(details.map(TopicInfo::from))
        })
        .await
    }

    /// Creates a stream unless it exists.
    pub(super) async fn create_stream(&mut self, stream: &str) -> Result<(), Error> {
        self.call(format!("create stream {stream}"), |client| async move {
            if client.get_stream(&named(stream)?).await?.is_some() {
                return Ok(());
            }
            match client.create_stream(stream).await {
                Ok(_) | Err(IggyError::StreamNameAlreadyExists(_)) => Ok(()),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    /// Creates a topic with `partitions` partitions, and with the options of `like` where one is given, unless
    /// a topic of that name exists.
    pub(super) async fn create_topic(
        &mut self,
        stream: &str,
        topic: &str,
        partitions: u32,
        like: Option<&TopicInfo>,
    ) -> Result<(), Error> {
        let options = TopicCreateOptions {
            partitions_count: Some(partitions),
            ..like.map(|like| like.options.clone()).unwrap_or_default()
        };
        self.call(
            format!("create topic {stream}/{topic}"),
            |client| async move {
                match client.create_topic(&named(stream)?, topic, &options).await {
                    Ok(_) | Err(IggyError::TopicNameAlreadyExists(..)) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            },
        )
        .await
    }

    /// Appends `count` partitions to a topic.
    ///
    /// # Errors
    /// [`Error`] when the call fails.
    pub async fn create_partitions(
        &mut self,
        stream: &str,
        topic: &str,
        count: u32,
    ) -> Result<(), Error> {
        self.call(
            format!("add {count} partitions to {stream}/{topic}"),
            |client| async move {
                client
                    .create_partitions(&named(stream)?, &named(topic)?, count)
                    .await?;
                Ok(())
            },
        )
        .await
    }
}

impl TopicInfo {
    /// A topic with these partitions and the cluster's own options.
    pub fn plain(partitions: Vec<PartitionInfo>) -> Self {
        Self {
            partitions,
            options: TopicCreateOptions::default(),
        }
    }

    /// One of its partitions.
    pub fn partition(&self, id: u32) -> Option<&PartitionInfo> {
        self.partitions.iter().find(|partition| partition.id == id)
    }
}

fn create_options(details: &TopicDetails) -> TopicCreateOptions {
    let runtime = TopicRuntimeOptions::from_resource_options(&details.options);
    TopicCreateOptions {
        compression_algorithm: Some(details.compression_algorithm),
        message_expiry: Some(details.message_expiry),
        max_topic_size: Some(details.max_topic_size),
        segment_size: runtime.segment_size,
        durability: runtime.durability,
        consumer_offset_durability: runtime.consumer_offset_durability,
        messages_required_to_save: runtime.messages_required_to_save,
        size_of_messages_required_to_save: runtime.size_of_messages_required_to_save,
        preallocate_segments: runtime.preallocate_segments,
        ..TopicCreateOptions::default()
    }
}

impl From<TopicDetails> for TopicInfo {
    fn from(details: TopicDetails) -> Self {
        let mut partitions: Vec<_> = details
            .partitions
            .iter()
            .map(|partition| PartitionInfo {
                id: partition.id,
                current_offset: partition.current_offset,
                messages: partition.messages_count,
            })
            .collect();
        partitions.sort_by_key(|partition| partition.id);
        Self {
            partitions,
            options: create_options(&details),
        }
    }
}

fn named(name: &str) -> Result<Identifier, Cause> {
    Ok(Identifier::named(name)?)
}
