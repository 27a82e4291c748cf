//! Faults on demand. They are counted, not random: a test says which request meets which fate.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use iggy_binary_protocol::consensus::EvictionReason;
use tokio::sync::watch;

/// What happens to a request instead of, or besides, being executed and answered.
#[derive(Debug, Clone)]
pub enum Action {
    /// It is executed; the connection closes before the reply.
    LoseReply,
    /// The connection closes; it is not executed.
    CloseBefore,
    /// It is executed; the connection closes in the middle of the reply.
    CutReply,
    /// The connection closes when half of the request is read; it is not executed.
    CutRequest,
    /// It is not executed; the answer is this error code of `IggyError`.
    Refuse(u32),
    /// It is executed; the answer is this error code of `IggyError`.
    RefuseAfter(u32),
    /// It is executed; there is no reply, and the connection stays open.
    Silence,
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
    /// The session ends with this reason; it is not executed.
    Evict(EvictionReason),
}

/// Which requests an [`Action`] is for.
#[derive(Debug, Clone)]
pub struct Rule {
    code: Option<u32>,
    topic: Option<(String, u32)>,
    skip: u64,
    times: u64,
    action: Action,
}

impl Rule {
    /// The next request.
    pub const fn next(action: Action) -> Self {
        Self {
            code: None,
            topic: None,
            skip: 0,
            times: 1,
            action,
        }
    }

    /// Only requests with this command code.
    #[must_use]
    pub const fn code(mut self, code: u32) -> Self {
        self.code = Some(code);
        self
    }

    /// Only sends to and polls of this partition of a topic.
    #[must_use]
    pub fn partition(mut self, topic: &str, partition: u32) -> Self {
        self.topic = Some((topic.to_owned(), partition));
        self
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
}

/// The faults that a broker is to show. Rules are looked at in the order in which they were added; the first that
/// matches applies.
#[derive(Debug, Default)]
pub struct Faults {
    rules: Mutex<Vec<Rule>>,
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

    /// How many requests the rules still wait for.
    pub fn pending(&self) -> u64 {
        self.lock().iter().map(|rule| rule.times).sum()
    }

    /// Whether the request whose header was just read is to be cut. A cut goes by the command code alone.
    pub(crate) fn take_cut(&self, code: u32) -> bool {
        self.take_where(code, None, |action| matches!(action, Action::CutRequest))
            .is_some()
    }

    pub(crate) fn take(&self, code: u32, topic: Option<&(String, u32)>) -> Option<Action> {
        self.take_where(code, topic, |action| !matches!(action, Action::CutRequest))
    }

    fn take_where(
        &self,
        code: u32,
        topic: Option<&(String, u32)>,
        accepts: impl Fn(&Action) -> bool,
    ) -> Option<Action> {
        let mut rules = self.lock();
        let mut taken = None;
        for rule in rules.iter_mut() {
            let wanted = accepts(&rule.action)
                && rule.code.is_none_or(|wanted| wanted == code)
                && rule
                    .topic
                    .as_ref()
                    .is_none_or(|wanted| Some(wanted) == topic);
            if !wanted {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
                continue;
            }
            rule.times -= 1;
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
