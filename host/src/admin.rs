//! The admin listener: what the gateway does, over HTTP.

mod metrics;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::link::{self, Board, LaneReport};

/// The admin address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on admin.address {address}: {source}; choose another, or stop what uses it")]
pub struct ListenError {
    address: SocketAddr,
    source: std::io::Error,
}

/// Listens on `address` until the handle is dropped.
///
/// - `GET /healthz`: 200 while the process runs.
/// - `GET /status`: every link with its lanes, as JSON.
/// - `GET /metrics`: the same in numbers, as Prometheus text.
///
/// # Errors
/// [`ListenError`] when the address cannot be used.
pub async fn start(
    address: SocketAddr,
    board: Arc<Board>,
    stop: CancellationToken,
) -> Result<AbortOnDropHandle<()>, ListenError> {
    let fail = |source| ListenError { address, source };
    let listener = TcpListener::bind(address).await.map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    tracing::info!(address = %bound, "admin API listens");
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .with_state(board);
    let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(error) = served.await {
            tracing::error!("the admin API ended: {error}");
        }
    })))
}

/// A link and its lanes.
#[derive(Debug, Serialize)]
struct LinkStatus {
    link: String,
    #[serde(flatten)]
    state: link::State,
    alerts: Vec<link::Alert>,
    lanes: Vec<LaneReport>,
}

async fn status(State(board): State<Arc<Board>>) -> impl IntoResponse {
    let links = board.links().into_iter().map(|link| LinkStatus {
        state: link.state(),
        alerts: link.alerts(),
        lanes: link::reports(&board, &link.link),
        link: link.link.clone(),
    });
    Json(links.collect::<Vec<_>>())
}

async fn metrics(State(board): State<Arc<Board>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], metrics::text(&board))
}
