//! One connection: one request in flight, a time limit on every call, and no reuse after a failure.

use std::sync::Arc;
use std::time::Duration;

use iggy::prelude::locking::IggyRwLockFn;
use iggy::prelude::{
    AutoLogin, Client, ClientWrapper, Credentials, IggyClient, IggyError, TcpClient,
    TcpClientConfig, TcpClientReconnectionConfig,
};

use super::Cluster;
use super::error::{Cause, Error, Fault};

/// A connection to a cluster, made when first used. After a failure or a timeout the client is discarded: its
/// request may still be under way, so nothing that it answers later can be trusted.
#[derive(Debug)]
pub struct Connection {
    pub(super) cluster: Arc<Cluster>,
    client: Option<Arc<IggyClient>>,
    pub(super) connects: u64,
}

impl Connection {
    /// A connection that is not made yet.
    pub const fn new(cluster: Arc<Cluster>) -> Self {
        Self {
            cluster,
            client: None,
            connects: 0,
        }
    }

    /// Connects and logs in, unless that is done.
    ///
    /// # Errors
    /// [`Error`] when the cluster cannot be reached or refuses the login.
    pub async fn connect(&mut self) -> Result<(), Error> {
        self.call("connect", |_| async { Ok(()) }).await
    }

    /// Runs one request within the cluster's time limit, connecting first where needed.
    pub(super) async fn call<T, Request>(
        &mut self,
        operation: impl Into<String>,
        request: impl FnOnce(Arc<IggyClient>) -> Request,
    ) -> Result<T, Error>
    where
        Request: Future<Output = Result<T, Cause>>,
    {
        let limit = self.cluster.config.timeout;
        self.call_within(limit, operation, request).await
    }

    /// As [`Connection::call`], with a time limit of its own.
    pub(super) async fn call_within<T, Request>(
        &mut self,
        limit: Duration,
        operation: impl Into<String>,
        request: impl FnOnce(Arc<IggyClient>) -> Request,
    ) -> Result<T, Error>
    where
        Request: Future<Output = Result<T, Cause>>,
    {
        let attempt = async {
            let client = if let Some(client) = &self.client {
                Arc::clone(client)
            } else {
                let connected = connect(&self.cluster).await;
                let client = connected.map_err(|cause| self.refused_again(cause))?;
                let client = Arc::new(client);
                self.connects += 1;
                Arc::clone(self.client.insert(client))
            };
            request(client).await
        };
        let outcome = tokio::time::timeout(limit, attempt)
            .await
            .unwrap_or_else(|_| {
                Err(Cause {
                    fault: Fault::Ambiguous,
                    reason: format!("no answer within {}", humantime::format_duration(limit)),
                })
            });
        outcome.map_err(|cause| {
            if !matches!(cause.fault, Fault::Topology | Fault::Poison) {
                self.client = None;
            }
            Error {
                cluster: self.cluster.name.clone(),
                address: self.cluster.config.address.clone(),
                operation: operation.into(),
                reason: cause.reason,
                fault: cause.fault,
            }
        })
    }

    /// A login that worked before and is refused now: a secret that ran out, and may be renewed any time.
    fn refused_again(&self, cause: Cause) -> Cause {
        if cause.fault != Fault::Operator || self.connects == 0 {
            return cause;
        }
        Cause {
            fault: Fault::Login,
            reason: format!("{}; the secret is read again at the next try", cause.reason),
        }
    }
}

async fn connect(cluster: &Cluster) -> Result<IggyClient, Cause> {
    let config = TcpClientConfig {
        server_address: cluster.config.address.clone(),
        auto_login: AutoLogin::Enabled(credentials(cluster)?),
        // A reconnect inside the SDK would hide which request failed.
        reconnection: TcpClientReconnectionConfig {
            enabled: false,
            ..TcpClientReconnectionConfig::default()
        },
        nodelay: true,
        ..TcpClientConfig::default()
    };
    let client = IggyClient::new(ClientWrapper::Tcp(TcpClient::create(Arc::new(config))?));
    // `IggyClient::connect` would add a heartbeat task that competes for the connection.
    client.client().read().await.connect().await?;
    Ok(client)
}

fn credentials(cluster: &Cluster) -> Result<Credentials, Cause> {
    let config = &cluster.config;
    match (&config.username, &config.password, &config.token) {
        (Some(username), Some(password), None) => Ok(Credentials::UsernamePassword(
            username.clone(),
            password.read()?.expose().to_owned().into(),
        )),
        (None, None, Some(token)) => Ok(Credentials::PersonalAccessToken(
            token.read()?.expose().to_owned().into(),
        )),
        _ => Err(IggyError::InvalidConfiguration.into()),
    }
}
