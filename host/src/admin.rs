//! The admin listener: what the gateway does, over HTTP.

mod metrics;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::gateway::{GuestReloadError, Guests, ReloadError, Reloader};
use crate::guest::GuestStatus;
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
/// - `GET /status`: every link with its lanes, and every guest, as JSON.
/// - `POST /reload`: takes up the configuration file anew; tells as JSON what changed.
/// - `POST /guests/{name}/reload`: loads the guest's file anew; tells as JSON what came of it.
/// - `GET /metrics`: the same in numbers, as Prometheus text.
///
/// # Errors
/// [`ListenError`] when the address cannot be used.
pub async fn start(
    address: SocketAddr,
    shown: Shown,
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
        .route("/reload", post(reload))
        .route("/guests/{name}/reload", post(reload_guest))
        .with_state(shown);
    let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(error) = served.await {
            tracing::error!("the admin API ended: {error}");
        }
    })))
}

/// What the listener shows.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Links and lanes.
    pub board: Arc<Board>,
    /// Guests.
    pub guests: Arc<Guests>,
    /// Takes up the configuration anew.
    pub reloader: Reloader,
}

#[derive(Debug, Serialize)]
struct Status {
    links: Vec<LinkStatus>,
    guests: Vec<GuestStatus>,
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

async fn status(State(shown): State<Shown>) -> impl IntoResponse {
    let links = shown.board.links().into_iter().map(|link| LinkStatus {
        state: link.state(),
        alerts: link.alerts(),
        lanes: link::reports(&shown.board, &link.link),
        link: link.link.clone(),
    });
    Json(Status {
        links: links.collect(),
        guests: shown
            .guests
            .slots()
            .iter()
            .map(|slot| slot.status())
            .collect(),
    })
}

async fn metrics(State(shown): State<Shown>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let guests = shown.guests.slots();
    ([(CONTENT_TYPE, kind)], metrics::text(&shown.board, guests))
}

async fn reload(State(shown): State<Shown>) -> Response {
    match shown.reloader.reload().await {
        Ok(changes) => Json(changes).into_response(),
        Err(error) => {
            let code = match error {
                ReloadError::Stopping => StatusCode::SERVICE_UNAVAILABLE,
                ReloadError::Config(_) | ReloadError::Fixed(_) | ReloadError::Guest(_) => {
                    StatusCode::UNPROCESSABLE_ENTITY
                }
            };
            refusal(code, &error)
        }
    }
}

async fn reload_guest(State(shown): State<Shown>, Path(name): Path<String>) -> Response {
    match shown.guests.reload(&name).await {
        Ok(reloaded) => Json(reloaded).into_response(),
        Err(error) => {
            let code = match error {
                GuestReloadError::Unknown(_) => StatusCode::NOT_FOUND,
                GuestReloadError::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
            };
            refusal(code, &error)
        }
    }
}

fn refusal(code: StatusCode, error: &dyn std::error::Error) -> Response {
    let body = serde_json::json!({ "error": error.to_string() });
    (code, Json(body)).into_response()
}
