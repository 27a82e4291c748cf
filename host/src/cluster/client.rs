//! What a lane asks of a cluster: the seam at which tests put clusters of their own.

use bytes::Bytes;

use super::error::Error;
use super::{Connection, Partition, PollFrom, TopicInfo};
use crate::batch::Polled;

/// The calls of a lane. After an error nothing is known of what the call did.
pub trait Client: Send + 'static {
    /// Name of the cluster in the configuration.
    fn cluster(&self) -> &str;

    /// How often it was connected: between two equal numbers no call failed.
    fn connects(&self) -> u64;

    /// Up to `count` messages of `partition`. Nothing is committed at the cluster.
    fn poll(
        &mut self,
        partition: &Partition,
        from: PollFrom,
        count: u32,
    ) -> impl Future<Output = Result<Polled, Error>> + Send;

    /// Sends an encoded batch (see [`crate::batch::encode_send`]) to `partition`. Returns the offset of its first
    /// message where the cluster tells it.
    fn send(
        &mut self,
        partition: &Partition,
        body: Bytes,
    ) -> impl Future<Output = Result<Option<u64>, Error>> + Send;

    /// A topic; none when it or its stream does not exist.
    fn topic(
        &mut self,
        stream: &str,
        topic: &str,
    ) -> impl Future<Output = Result<Option<TopicInfo>, Error>> + Send;

    /// Creates a topic, and its stream, unless they exist; returns the topic as it is then.
    fn create_like(
        &mut self,
        stream: &str,
        topic: &str,
        partitions: u32,
        like: Option<&TopicInfo>,
    ) -> impl Future<Output = Result<Option<TopicInfo>, Error>> + Send;

    /// The offset that `consumer` stored on a partition.
    fn stored_offset(
        &mut self,
        consumer: &str,
        partition: &Partition,
    ) -> impl Future<Output = Result<Option<u64>, Error>> + Send;

    /// Stores an offset of `consumer` on a partition, which must hold or have held that offset.
    fn store_offset(
        &mut self,
        consumer: &str,
        partition: &Partition,
        offset: u64,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Forgets what `consumer` stored on a partition, if it did.
    fn forget_offset(
        &mut self,
        consumer: &str,
        partition: &Partition,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

impl Client for Connection {
    fn cluster(&self) -> &str {
        &self.cluster.name
    }

    fn connects(&self) -> u64 {
        self.connects
    }

    async fn poll(
        &mut self,
        partition: &Partition,
        from: PollFrom,
        count: u32,
    ) -> Result<Polled, Error> {
        self.poll_messages(partition, from, count).await
    }

    async fn send(&mut self, partition: &Partition, body: Bytes) -> Result<Option<u64>, Error> {
        self.send_messages(partition, body).await
    }

    async fn topic(&mut self, stream: &str, topic: &str) -> Result<Option<TopicInfo>, Error> {
        self.get_topic(stream, topic).await
    }

    async fn create_like(
        &mut self,
        stream: &str,
        topic: &str,
        partitions: u32,
        like: Option<&TopicInfo>,
    ) -> Result<Option<TopicInfo>, Error> {
        self.create_stream(stream).await?;
        self.create_topic(stream, topic, partitions, like).await?;
        self.get_topic(stream, topic).await
    }

    async fn stored_offset(
        &mut self,
        consumer: &str,
        partition: &Partition,
    ) -> Result<Option<u64>, Error> {
        self.get_consumer_offset(consumer, partition).await
    }

    async fn store_offset(
        &mut self,
        consumer: &str,
        partition: &Partition,
        offset: u64,
    ) -> Result<(), Error> {
        self.store_consumer_offset(consumer, partition, offset)
            .await
    }

    async fn forget_offset(&mut self, consumer: &str, partition: &Partition) -> Result<(), Error> {
        self.delete_consumer_offset(consumer, partition).await
    }
}
