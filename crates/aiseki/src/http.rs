//! HTTP: what is seen from outside. The only code that knows axum.

mod admin;
mod client;
mod error;
mod events;
mod extract;
pub(crate) mod fuzz;
mod matching;
mod ops;
mod page;
mod reports;
mod rooms;
mod serve;
mod session;
mod state;
mod talk;
mod topics;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, Version, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use ipnet::IpNet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::util::option_layer;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use self::serve::{App, Listener, serve};

use self::error::{Code, Problem};
use self::session::SecuritySchemes;
use crate::bans::Bans;
use crate::clock::Stopwatch;
use crate::config::Secret;
use crate::conversations::ConversationStore;
use crate::matching::Matching;
use crate::metrics::Metrics;
use crate::operators::Operators;
use crate::port::Unavailable;
use crate::push::Push;
use crate::reports::ReportStore;
use crate::rooms::Rooms;
use crate::sessions::Sessions;
use crate::topics::Topics;

/// What the routes are made of.
pub struct Services {
    /// Seating people.
    pub matching: Matching,
    /// What operators do.
    pub operators: Operators,
    /// What people can talk about.
    pub topics: Arc<Topics>,
    /// Who may not join.
    pub bans: Arc<Bans>,
    /// Who is asking.
    pub sessions: Sessions,
    /// The record of rooms.
    pub conversations: Arc<dyn ConversationStore>,
    /// What people reported.
    pub reports: Arc<dyn ReportStore>,
    /// Rooms to talk in, where there are any.
    pub rooms: Option<Rooms>,
    /// Who is connected.
    pub push: Arc<Push>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What was decided about the outside.
    pub outside: Outside,
    /// Cancelled when the server begins to end.
    pub draining: CancellationToken,
    /// Sockets that are open: they outlive the requests that opened them.
    pub sockets: TaskTracker,
}

/// What an operator decided about the way in.
pub struct Outside {
    /// Where all routes stand: `/`, or such as `/talk`.
    pub base_path: String,
    /// The token of operators; without one there are no admin routes.
    pub admin_token: Option<Secret>,
    /// Peers whose forwarding headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Other origins whose pages may call.
    pub allowed_origins: Vec<String>,
    /// The longest that a long poll is held open.
    pub max_wait: Duration,
    /// The sizes of room that people can ask for.
    pub room_types: Vec<u8>,
}

type Shared = State<Arc<Services>>;

/// The description of the interface, from the code that serves it.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "aiseki",
        description = "People choose a topic and how many they want to be, and wait. aiseki seats \
                       them together in small rooms, first come, first served."
    ),
    modifiers(&SecuritySchemes),
    tags(
        (name = "matching", description = "The three calls by which people are seated"),
        (name = "rooms", description = "Rooms and seats"),
        (name = "operators", description = "Topics, bans, queues, rooms and reports; needs the admin token"),
        (name = "operations", description = "Health and metrics")
    )
)]
struct Description;

/// The OpenAPI description of every route.
pub fn openapi() -> utoipa::openapi::OpenApi {
    described_routes().merge(operators_routes()).into_openapi()
}

fn described_routes() -> OpenApiRouter<Arc<Services>> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(session::create_session))
        .routes(routes!(topics::list_topics))
        .routes(routes!(matching::join, matching::poll, matching::cancel))
        .routes(routes!(events::stream))
        .routes(routes!(events::socket))
        .routes(routes!(rooms::get_room))
        .routes(routes!(rooms::leave_room))
        .routes(routes!(reports::report))
        .routes(routes!(reports::block))
        .routes(routes!(talk::socket))
        .routes(routes!(ops::healthz))
        .routes(routes!(ops::readyz))
        .routes(routes!(ops::metrics))
        .routes(routes!(ops::openapi))
}

fn operators_routes() -> OpenApiRouter<Arc<Services>> {
    OpenApiRouter::new()
        .routes(routes!(admin::topics::list_topics, admin::topics::add_topic))
        .routes(routes!(admin::topics::change_topic))
        .routes(routes!(admin::bans::list_bans, admin::bans::add_ban))
        .routes(routes!(admin::bans::remove_ban))
        .routes(routes!(admin::queues::list_queues))
        .routes(routes!(admin::rooms::list_rooms))
        .routes(routes!(admin::rooms::close_room))
        .routes(routes!(admin::reports::list_reports))
        .routes(routes!(admin::reports::get_report))
        .routes(routes!(admin::reports::judge_report))
}

/// Every route with everything around it.
pub fn router(services: Arc<Services>) -> Router {
    // Without a token for operators their routes do not exist, whatever the method.
    let (routes, _) = match services.outside.admin_token {
        Some(_) => described_routes().merge(operators_routes()),
        None => described_routes(),
    }
    .split_for_parts();
    let routes = routes
        .method_not_allowed_fallback(|| async { Problem::new(Code::MethodNotAllowed) })
        .fallback(|| async { Problem::new(Code::NotFound) });
    let routes = match services.outside.base_path.as_str() {
        "/" => routes,
        base => {
            Router::new().nest(base, routes).fallback(|| async { Problem::new(Code::NotFound) })
        }
    };
    let page = page::routes(&services.outside.base_path, services.outside.admin_token.is_some());
    routes
        .layer(middleware::from_fn_with_state(Arc::clone(&services), session::refuse_cross_site))
        .layer(option_layer(cors(&services.outside.allowed_origins)))
        .merge(page)
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            Problem::new(Code::Internal).into_response()
        }))
        .layer(middleware::from_fn(one_host))
        .layer(middleware::from_fn_with_state(Arc::clone(&services), observe))
        .with_state(services)
}

/// What is served while the stores are away at the start: the process lives, and everything else is
/// not available yet.
pub fn starting_router(base_path: &str) -> Router {
    let routes = Router::new()
        .route("/healthz", get(ops::healthz))
        .route("/readyz", get(ops::starting))
        .fallback(|| async { Problem::from(Unavailable) });
    let routes = match base_path {
        "/" => routes,
        base => {
            Router::new().nest(base, routes).fallback(|| async { Problem::new(Code::NotFound) })
        }
    };
    routes.layer(middleware::from_fn(guarded))
}

/// What every answer says to caches and browsers, also before the stores are there.
fn guard(response: &mut Response) {
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        HeaderName::from_static("referrer-policy"),
        HeaderValue::from_static("no-referrer"),
    );
}

async fn guarded(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    guard(&mut response);
    response
}

/// Refuses what RFC 9112 calls invalid: whoever reads another host than a proxy in front did may be
/// led astray by that.
async fn one_host(request: Request, next: Next) -> Response {
    let hosts = request.headers().get_all(header::HOST).iter().count();
    match request.version() {
        Version::HTTP_11 if hosts != 1 => Problem::new(Code::InvalidRequest).into_response(),
        _ => next.run(request).await,
    }
}

/// A handler that does nothing, wherever it is asked.
pub fn empty_router() -> Router {
    Router::new().fallback(|| async {})
}

/// Lets pages of other origins call, when there are any that may.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    let origins: Vec<HeaderValue> =
        origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
    if origins.is_empty() {
        return None;
    }
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE])
        .allow_credentials(true)
        .expose_headers([header::RETRY_AFTER])
        .max_age(Duration::from_mins(10));
    Some(layer)
}

/// Counts the request, and says of every answer that it is nobody else's to keep.
async fn observe(State(services): Shared, request: Request, next: Next) -> Response {
    let watch = Stopwatch::start();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    guard(&mut response);
    // A path or a method that we do not know is the client's text, and could be anything.
    let route = route.as_ref().map_or("unknown", MatchedPath::as_str);
    let method = match method {
        Method::GET
        | Method::POST
        | Method::PUT
        | Method::DELETE
        | Method::HEAD
        | Method::OPTIONS => method.as_str().to_owned(),
        _ => "other".to_owned(),
    };
    services.metrics.request(&method, route, response.status().as_u16(), watch.elapsed());
    response
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_names_of_members_are_described_as_text() {
        // A map by number has text for its names once it is JSON.
        let description = serde_json::to_value(super::openapi()).unwrap().to_string();
        assert!(!description.contains("propertyNames\":{\"type\":\"integer"));
    }
}
