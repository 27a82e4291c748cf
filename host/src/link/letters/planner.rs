//! Where the messages of letters go: the guests' decisions, and topics for them.

use std::collections::HashMap;
use std::sync::Arc;

use super::round::Run;
use crate::batch::Polled;
use crate::blocking;
use crate::checkpoint::{LaneKey, LetterId};
use crate::cluster::{Client, Connection, Partition, PartitionInfo, TopicInfo};
use crate::config;
use crate::guest::{Chain, Outcome, Pause, Slot, Source};
use crate::link::Error;
use crate::link::dead_letter::Letter;
use crate::link::plan::{Parcel, Router, Tally};
use crate::link::retry::{Retrier, repeat};
use crate::link::topology::{self, SourceTopic, Topics};
use crate::link::usual_destination;

/// Lanes whose guests are kept running.
const CHAINS: usize = 16;

/// Decides where the messages of letters go, as their lanes would now.
pub struct Planner {
    link: Arc<config::Link>,
    guests: Arc<[Arc<Slot>]>,
    retrier: Retrier,
    dry_run: bool,
    topics: Topics,
    /// The default destination topics by the source topic, and how many partitions they have.
    prepared: HashMap<(String, String), (u32, Arc<TopicInfo>)>,
    chains: HashMap<LaneKey, Chain>,
}

/// A run of letters after the guests were asked.
pub struct Planned {
    router: Router,
    batch: Arc<Polled>,
    outcomes: Vec<Outcome>,
    new_letters: HashMap<usize, Letter>,
    /// The letters.
    pub ids: Vec<LetterId>,
    /// Why the link stops after them, if it does.
    pub stopping: Option<Error>,
}

impl Planned {
    /// What is to be sent, and what becomes of the letters.
    pub fn parcels(&self) -> (Vec<Parcel<'_>>, Tally) {
        self.router
            .plan(&self.batch, &self.outcomes, &self.new_letters)
    }
}

impl Planner {
    /// Plans for a link. A dry run creates no topics.
    pub fn new(
        link: &Arc<config::Link>,
        guests: &Arc<[Arc<Slot>]>,
        retrier: &Retrier,
        dry_run: bool,
    ) -> Self {
        Self {
            link: Arc::clone(link),
            guests: Arc::clone(guests),
            retrier: retrier.clone(),
            dry_run,
            topics: Topics::new(retrier.clone(), link.create),
            prepared: HashMap::new(),
            chains: HashMap::new(),
        }
    }

    /// Asks the guests about a run of letters, as its lane would. `client` is for the destination's topics.
    ///
    /// # Errors
    /// [`Error`] when the guests cannot be asked or the destination cannot be prepared.
    pub async fn plan(
        &mut self,
        client: &mut Connection,
        run: Run,
        guests: bool,
    ) -> Result<Planned, Error> {
        let (lane, mut ids, batch) = run.into_parts();
        let batch = Arc::new(batch);
        let link = Arc::clone(&self.link);
        let router = Router {
            default: usual_destination(&link, &lane),
            dead_letters: Partition {
                stream: link.dead_letter.stream.as_str().into(),
                topic: link.dead_letter.topic.as_str().into(),
                id: 0,
            },
            lane,
            on_error: link.on_error,
        };
        let mut outcomes = if guests && !self.guests.is_empty() {
            self.ask_guests(&router.lane, &batch).await?
        } else {
            vec![Outcome::default(); batch.frames().len()]
        };
        // A dry run creates no topics, so it cannot tell whether a guest's route leads anywhere.
        if !self.dry_run {
            let like = self.prepare(client, &router.lane).await?;
            self.topics
                .learn_chosen(client, &outcomes, &router.default, &like)
                .await?;
            router.check_routes(&mut outcomes, &self.topics);
        }
        router.check_sizes(&batch, &mut outcomes);
        let (count, stopping) = router.stop_before(&batch, &outcomes);
        outcomes.truncate(count);
        ids.truncate(count);
        let offsets: Vec<_> = ids.iter().map(|id| id.offset).collect();
        Ok(Planned {
            new_letters: router.letters(&batch, &outcomes, &offsets),
            router,
            batch,
            outcomes,
            ids,
            stopping,
        })
    }

    async fn ask_guests(
        &mut self,
        lane: &LaneKey,
        batch: &Arc<Polled>,
    ) -> Result<Vec<Outcome>, Error> {
        let known = self.chains.remove(lane);
        let source = Source {
            cluster: lane.cluster.clone(),
            partition: lane.source(),
        };
        let (slots, on_error) = (Arc::clone(&self.guests), self.link.on_error);
        let batch = Arc::clone(batch);
        let (chain, outcomes) = blocking(move || {
            let mut chain = match known {
                Some(chain) => chain,
                None => Chain::start(&slots, source, on_error)?,
            };
            let (mut outcomes, mut rest) = (Vec::new(), (*batch).clone());
            loop {
                let judged = chain.apply(&rest);
                if let Some(pause) = judged.pause {
                    let Pause { guest, reason, .. } = pause;
                    return Err(Error::GuestKeepsFailing { guest, reason });
                }
                rest = rest.split_at(judged.outcomes.len()).1;
                outcomes.extend(judged.outcomes);
                if rest.is_empty() {
                    return Ok((chain, outcomes));
                }
            }
        })
        .await?;
        if self.chains.len() >= CHAINS {
            self.chains.clear();
        }
        self.chains.insert(lane.clone(), chain);
        Ok(outcomes)
    }

    /// Sees to it that a lane's default destination exists. Guests' routes that do not exist are created like it: the
    /// source need not be there any more.
    async fn prepare(
        &mut self,
        client: &mut Connection,
        lane: &LaneKey,
    ) -> Result<Arc<TopicInfo>, Error> {
        let key = (lane.stream.clone(), lane.topic.clone());
        if let Some((partitions, info)) = self.prepared.get(&key)
            && lane.partition < *partitions
        {
            return Ok(Arc::clone(info));
        }
        let source = SourceTopic {
            stream: lane.stream.as_str().into(),
            topic: lane.topic.as_str().into(),
            info: Arc::new(TopicInfo::plain(vec![PartitionInfo {
                id: lane.partition,
                current_offset: 0,
                messages: 0,
            }])),
        };
        topology::prepare(client, &self.retrier, &self.link, &source).await?;
        let (stream, topic) = topology::destination(&self.link, &lane.stream, &lane.topic);
        let info = repeat!(self.retrier, client.topic(&stream, &topic).await)?;
        let info = info.map_or(source.info, Arc::new);
        let entry = (topology::partition_count(&info), Arc::clone(&info));
        self.prepared.insert(key, entry);
        Ok(info)
    }
}
