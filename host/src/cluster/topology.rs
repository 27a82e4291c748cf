//! Streams, topics and partitions: looking them up and creating them.

use iggy::prelude::{
    Identifier, IggyError, PartitionClient, StreamClient, TopicClient, TopicCreateOptions,
};
use iggy_common::{TopicDetails, TopicRuntimeOptions};

use super::Connection;
use super::error::{Cause, Error};

/// A topic as its cluster describes it.
#[derive(Debug)]
pub struct TopicInfo {
    /// Its partitions, in the order of their ids.
    pub partitions: Vec<PartitionInfo>,
    details: TopicDetails,
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
    pub async fn topic(&mut self, stream: &str, topic: &str) -> Result<Option<TopicInfo>, Error> {
        self.call(format!("get topic {stream}/{topic}"), |client| async move {
            let details = client.get_topic(&named(stream)?, &named(topic)?).await?;
            Ok(details.map(TopicInfo::from))
        })
        .await
    }

    /// Creates a stream unless it exists.
    ///
    /// # Errors
    /// [`Error`] when the call fails.
    async fn create_stream(&mut self, stream: &str) -> Result<(), Error> {
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
    ///
    /// # Errors
    /// [`Error`] when the call fails.
    async fn create_topic(
        &mut self,
        stream: &str,
        topic: &str,
        partitions: u32,
        like: Option<&TopicInfo>,
    ) -> Result<(), Error> {
        let options = like.map_or_else(TopicCreateOptions::default, TopicInfo::create_options);
        let options = TopicCreateOptions {
            partitions_count: Some(partitions),
            ..options
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

    /// Creates a topic, and its stream, unless they exist; returns the topic as it is then.
    ///
    /// # Errors
    /// [`Error`] when a call fails.
    pub async fn create_like(
        &mut self,
        stream: &str,
        topic: &str,
        partitions: u32,
        like: Option<&TopicInfo>,
    ) -> Result<Option<TopicInfo>, Error> {
        self.create_stream(stream).await?;
        self.create_topic(stream, topic, partitions, like).await?;
        self.topic(stream, topic).await
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
    /// The options that make another topic like this one.
    fn create_options(&self) -> TopicCreateOptions {
        let runtime = TopicRuntimeOptions::from_resource_options(&self.details.options);
        TopicCreateOptions {
            compression_algorithm: Some(self.details.compression_algorithm),
            message_expiry: Some(self.details.message_expiry),
            max_topic_size: Some(self.details.max_topic_size),
            segment_size: runtime.segment_size,
            durability: runtime.durability,
            consumer_offset_durability: runtime.consumer_offset_durability,
            messages_required_to_save: runtime.messages_required_to_save,
            size_of_messages_required_to_save: runtime.size_of_messages_required_to_save,
            preallocate_segments: runtime.preallocate_segments,
            ..TopicCreateOptions::default()
        }
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
            details,
        }
    }
}

fn named(name: &str) -> Result<Identifier, Cause> {
    Ok(Identifier::named(name)?)
}
