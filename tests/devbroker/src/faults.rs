//! Faults on demand. They are counted, not random: a test says which request meets which fate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use iggy_binary_protocol::codes::{GET_CLUSTER_METADATA_CODE, LOGIN_REGISTER_CODE, PING_CODE};
use iggy_binary_protocol::consensus::EvictionReason;
use iggy_common::IggyError;
use tokio::sync::watch;

use crate::requests::place::Place;

/// What happens to a request instead of, or besides, being executed and answered.
#[derive(Debug, Clone)]
pub enum Action {
    /// It is executed; the connection closes before the reply.
    LoseReply,
    /// The connection closes; it is not executed.
    CloseBefore,
    /// It is executed; the connection closes in the middle of the reply.
    CutReply,
    /// The connection closes when half of the request is read; it is not executed. Such a rule goes by the command
    /// code alone.
    CutRequest,
    /// It is not executed; the answer is this error code of `IggyError`.
    Refuse(u32),
    /// It is executed; the answer is this error code of `IggyError`.
    RefuseAfter(u32),
    /// It is executed; there is no reply, and the connection stays open.
    Silence,
    /// It is not executed; there is no reply, and the connection stays open.
    Ignore,
    /// It is executed; the reply waits for the gate.
    HoldReply(Gate),
    /// It waits for the gate and is executed then, also when the client has gone.
    HoldExecution(Gate),
    /// It is executed; the reply waits this long.
    Delay(Duration),
    /// It is executed; the reply to a send tells no offsets, as the server may do.
    LoseConfirmation,
    /// A poll is answered empty although there are messages, as the server does after a read fault.
    EmptyPoll,
    /// The session ends with this reason; it is not executed. A login is refused so, with `InvalidCredentials` or
    /// `InvalidToken`.
    Evict(EvictionReason),
}

/// Which requests an [`Action`] is for.
#[derive(Debug, Clone)]
pub struct Rule {
    code: Option<u32>,
    place: Place,
    skip: u64,
    times: u64,
    action: Action,
}

/// So many requests are all requests.
const ALWAYS: u64 = u64::MAX;

impl Rule {
    /// The next request.
    pub const fn next(action: Action) -> Self {
        Self {
            code: None,
            place: Place {
                stream: None,
                topic: None,
                partition: None,
            },
            skip: 0,
            times: 1,
            action,
        }
    }

    /// Only requests with this command code. Logins, with a password or a token, have that of `LOGIN_REGISTER_CODE`.
    #[must_use]
    pub const fn code(mut self, code: u32) -> Self {
        self.code = Some(code);
        self
    }

    /// Only requests about this stream or something in it, however they name it.
    #[must_use]
    pub fn stream(mut self, stream: &str) -> Self {
        self.place.stream = Some(stream.to_owned());
        self
    }

    /// Only requests about a topic of this name or something in it.
    #[must_use]
    pub fn topic(mut self, topic: &str) -> Self {
        self.place.topic = Some(topic.to_owned());
        self
    }

    /// Only sends, polls and requests for stored offsets of this partition of a topic.
    #[must_use]
    pub fn partition(mut self, topic: &str, partition: u32) -> Self {
        self.place.partition = Some(partition);
        self.topic(topic)
    }

    /// Lets the first `count` of these requests pass.
    #[must_use]
    pub const fn after(mut self, count: u64) -> Self {
        self.skip = count;
        self
    }

    /// For `count` requests instead of one.
    #[must_use]
    pub const fn times(mut self, count: u64) -> Self {
        self.times = count;
        self
    }

    /// For every request until [`Faults::clear`].
    #[must_use]
    pub const fn always(self) -> Self {
        self.times(ALWAYS)
    }

    fn is_about(&self, place: &Place) -> bool {
        let Place {
            stream,
            topic,
            partition,
        } = &self.place;
        (stream.is_none() || *stream == place.stream)
            && (topic.is_none() || *topic == place.topic)
            && (partition.is_none() || *partition == place.partition)
    }
}

/// The faults that a broker is to show. Rules are looked at in the order in which they were added; the first that
/// matches applies.
#[derive(Debug, Default)]
pub struct Faults {
    rules: Mutex<Vec<Rule>>,
    leaderless: AtomicBool,
}

impl Faults {
    /// Adds a rule.
    pub fn add(&self, rule: Rule) {
        self.lock().push(rule);
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// How many requests the rules still wait for. Rules that always hold wait for none.
    pub fn pending(&self) -> u64 {
        let rules = self.lock();
        let counted = rules.iter().filter(|rule| rule.times != ALWAYS);
        counted.map(|rule| rule.times).sum()
    }

    /// From now on there is no leader: every request but pings, logins and the one for the cluster's nodes is
    /// answered `TransientNotAccepted` and not executed. Connections and sessions stay. Rules wait meanwhile.
    pub fn lose_leader(&self) {
        self.leaderless.store(true, Ordering::SeqCst);
    }

    /// There is a leader again, the same node.
    pub fn elect_leader(&self) {
        self.leaderless.store(false, Ordering::SeqCst);
    }

    /// Whether no request meets a fault.
    pub(crate) fn is_idle(&self) -> bool {
        !self.leaderless.load(Ordering::SeqCst) && self.lock().is_empty()
    }

    /// Whether the request whose header was just read is to be cut. Only its command code is known by then.
    pub(crate) fn take_cut(&self, code: u32) -> bool {
        self.take_where(code, &Place::default(), |action| {
            matches!(action, Action::CutRequest)
        })
        .is_some()
    }

    pub(crate) fn take(&self, code: u32, place: &Place) -> Option<Action> {
        let needs_leader = !matches!(
            code,
            PING_CODE | LOGIN_REGISTER_CODE | GET_CLUSTER_METADATA_CODE
        );
        if needs_leader && self.leaderless.load(Ordering::SeqCst) {
            return Some(Action::Refuse(IggyError::TransientNotAccepted.as_code()));
        }
        self.take_where(code, place, |action| !matches!(action, Action::CutRequest))
    }

    fn take_where(
        &self,
        code: u32,
        place: &Place,
        accepts: impl Fn(&Action) -> bool,
    ) -> Option<Action> {
        let mut rules = self.lock();
        let mut taken = None;
        for rule in rules.iter_mut() {
            let wanted = accepts(&rule.action)
                && rule.code.is_none_or(|wanted| wanted == code)
                && rule.is_about(place);
            if !wanted {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
                continue;
            }
            if rule.times != ALWAYS {
                rule.times -= 1;
            }
            taken = Some(rule.action.clone());
            break;
        }
        rules.retain(|rule| rule.times > 0);
        taken
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds requests back until a test opens it.
#[derive(Debug, Clone)]
pub struct Gate {
    open: Arc<watch::Sender<bool>>,
    waiting: Arc<watch::Sender<u64>>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            open: Arc::new(watch::Sender::new(false)),
            waiting: Arc::new(watch::Sender::new(0)),
        }
    }
}

impl Gate {
    /// Lets every request go on, now and later.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until `count` requests have come to the gate.
    pub async fn reached_by(&self, count: u64) {
        let mut waiting = self.waiting.subscribe();
        // The sender lives as long as this gate does.
        let _ = waiting.wait_for(|waiting| *waiting >= count).await;
    }

    pub(crate) async fn pass(&self) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        let mut open = self.open.subscribe();
        let _ = open.wait_for(|open| *open).await;
    }
}
