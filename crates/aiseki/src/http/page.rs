//! The page that people see: files that are part of the program, compressed once and kept.
//!
//! Modules name each other by relative addresses, so that nothing has to be built: all files stand
//! below one address that holds a digest of them all, which is why that address never changes its
//! content and browsers keep it for ever. Only the two documents, which name it, are asked for again.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::Services;
use super::error::{Code, Problem};

/// Each named file below `web`, as part of the program.
macro_rules! embedded {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../../web/", $name)))),*]
    };
}

const FILES: &[(&str, &str)] = embedded![
    "client/backoff.js"
    "client/errors.js"
    "client/http.js"
    "client/index.js"
    "client/operator.js"
    "client/person.js"
    "client/room.js"
    "client/transports.js"
    "client/watch.js"
    "console.html"
    "console/charts.js"
    "console/console.css"
    "console/main.js"
    "console/metrics.js"
    "console/people.js"
    "console/reports.js"
    "console/sections.js"
    "i18n/en.js"
    "i18n/ja.js"
    "index.html"
    "page/alerts.js"
    "page/app.js"
    "page/controller.js"
    "page/dialogs.js"
    "page/icon.svg"
    "page/ended.js"
    "page/language.js"
    "page/main.js"
    "page/notices.js"
    "page/page.css"
    "page/room.css"
    "page/room.js"
    "page/table.js"
    "page/topics.js"
    "page/view.js"
    "page/waiting.js"
    "vendor/hooks.js"
    "vendor/htm.js"
    "vendor/preact.js"
];

/// What stands in the documents where the address of the files goes.
const ADDRESS_MARK: &str = "{files}";
/// Nothing but our own files, and nobody frames us: a message that got into the page as markup could
/// neither run nor ask anybody for anything.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
/// Content that never changes at its address.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// Content that is kept and asked for again each time.
const ASK_AGAIN: &str = "no-cache";

static PAGE: LazyLock<Page> = LazyLock::new(Page::from_files);

struct Page {
    /// Of all files together.
    digest: String,
    files: HashMap<String, File>,
}

struct File {
    content_type: &'static str,
    /// Of its content, in quotes.
    tag: String,
    plain: Bytes,
    gzip: Bytes,
}

impl Page {
    fn from_files() -> Self {
        let served: Vec<_> =
            FILES.iter().map(|(name, text)| (*name, as_served(name, text))).collect();
        let mut all = Sha256::new();
        for (name, content) in &served {
            all.update(name);
            all.update(content.len().to_be_bytes());
            all.update(content.as_bytes());
        }
        let digest = hex(&all.finalize()[..8]);
        let address = format!("files/{digest}");
        let file = |(name, content): (&str, Cow<'static, str>)| {
            let content = match content {
                text if is_document(name) => text.replace(ADDRESS_MARK, &address).into(),
                Cow::Borrowed(text) => Bytes::from_static(text.as_bytes()),
                Cow::Owned(text) => text.into(),
            };
            (name.to_owned(), File::new(name, content))
        };
        Self { files: served.into_iter().map(file).collect(), digest }
    }
}

/// What browsers get of a file: scripts and styles without the lines that hold nothing but a comment,
/// which are a fifth of the page once it is compressed.
fn as_served(name: &str, text: &'static str) -> Cow<'static, str> {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    let commented = matches!(ending, Some("js" | "css"));
    if commented && !name.starts_with("vendor/") {
        without_comments(text).into()
    } else {
        text.into()
    }
}

/// Leaves out whole lines only, so that no text that looks like a comment inside a line is touched.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut is_inside = false;
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        let opens = content.starts_with("/*");
        let closes = content.ends_with("*/");
        if is_inside {
            is_inside = !closes;
        } else if opens && !content.contains("*/") {
            is_inside = true;
        } else if !(content.is_empty() || content.starts_with("//") || (opens && closes)) {
            kept.push_str(line);
        }
    }
    kept
}

fn is_document(name: &str) -> bool {
    content_type(name).starts_with("text/html")
}

impl File {
    fn new(name: &str, plain: Bytes) -> Self {
        Self {
            content_type: content_type(name),
            tag: format!("\"{}\"", hex(&Sha256::digest(&plain)[..8])),
            gzip: gzip(&plain).unwrap_or_else(|_| plain.clone()),
            plain,
        }
    }

    fn answer(&self, asked: &HeaderMap, caching: &'static str) -> Response {
        let headers = [
            (header::CACHE_CONTROL, HeaderValue::from_static(caching)),
            (header::VARY, HeaderValue::from_static("Accept-Encoding")),
        ];
        let (encoding, tag, content) = match accepts_gzip(asked) {
            true => (Some("gzip"), self.tag.replacen('"', "\"gz-", 1), &self.gzip),
            false => (None, self.tag.clone(), &self.plain),
        };
        let tag = [(header::ETAG, tag)];
        if is_known(asked, &tag[0].1) {
            return (StatusCode::NOT_MODIFIED, headers, tag).into_response();
        }
        let kind = [(header::CONTENT_TYPE, self.content_type)];
        let mut response = (headers, tag, kind, content.clone()).into_response();
        if let Some(encoding) = encoding {
            let encoding = HeaderValue::from_static(encoding);
            response.headers_mut().insert(header::CONTENT_ENCODING, encoding);
        }
        response
    }
}

/// A name's last part decides. Every file is of a kind that stands here, which a test sees to.
fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

fn gzip(plain: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain)?;
    encoder.finish().map(Bytes::from)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The members of a header that is a list.
fn members(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(str::trim)
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    members(headers, header::ACCEPT_ENCODING).any(|member| {
        let (coding, quality) = member.split_once(';').unwrap_or((member, ""));
        let refused = quality.trim().strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0_f32));
        coding.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    members(headers, header::IF_NONE_MATCH)
        .any(|known| known == "*" || known.trim_start_matches("W/") == tag)
}

/// The routes of the page. They are nobody's in particular: they ask no cookie and no origin, so that
/// a link from another site leads here.
pub(super) fn routes(base: &str, with_console: bool) -> Router<Arc<Services>> {
    let root = base.trim_end_matches('/');
    let at = |path: &str| format!("{root}{path}");
    let mut routes = Router::new()
        .route(&at("/"), get(|headers: HeaderMap| async move { document("index.html", &headers) }))
        .route(&at("/files/{digest}/{*name}"), get(file))
        .route(&at("/client/{*name}"), get(client_module));
    if with_console {
        let console = |headers: HeaderMap| async move { document("console.html", &headers) };
        routes = routes.route(&at("/console"), get(console));
    }
    if !root.is_empty() {
        // Addresses in the page are relative to the folder that the last slash makes.
        let folder = at("/");
        let redirect = move || async move {
            (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, folder)]).into_response()
        };
        routes = routes.route(root, get(redirect));
    }
    routes.method_not_allowed_fallback(|| async { Problem::new(Code::MethodNotAllowed) })
}

fn document(name: &str, asked: &HeaderMap) -> Response {
    let Some(file) = PAGE.files.get(name) else {
        return Problem::new(Code::NotFound).into_response();
    };
    let mut response = file.answer(asked, ASK_AGAIN);
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("cross-origin-opener-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ] {
        let name = HeaderName::from_static(name);
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn file(Path((digest, name)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let file = PAGE.files.get(&name).filter(|_| digest == PAGE.digest && !is_document(&name));
    match file {
        Some(file) => file.answer(&headers, FOR_EVER),
        None => Problem::new(Code::NotFound).into_response(),
    }
}

/// The client module at an address that stays, for pages of other people.
async fn client_module(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(file) = PAGE.files.get(&format!("client/{name}")) else {
        return Problem::new(Code::NotFound).into_response();
    };
    let mut response = file.answer(&headers, ASK_AGAIN);
    let anybody = HeaderValue::from_static("*");
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, anybody);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_of_a_known_kind_and_the_documents_name_the_digest() {
        for (name, _) in FILES {
            assert_ne!(content_type(name), "application/octet-stream", "{name}");
        }
        for name in ["index.html", "console.html"] {
            let text = std::str::from_utf8(&PAGE.files[name].plain).unwrap();
            assert!(text.contains(&format!("files/{}/", PAGE.digest)), "{text}");
            assert!(!text.contains(ADDRESS_MARK), "{text}");
        }
    }

    #[test]
    fn all_of_the_page_with_the_console_is_small() {
        let compressed: usize = PAGE.files.values().map(|file| file.gzip.len()).sum();
        assert!((10_000..60_000).contains(&compressed), "{compressed} bytes");
    }

    #[test]
    fn lines_of_comments_alone_are_not_sent() {
        let text = "// one\n/** two */\n/**\n * three\n * https://a.b/*c\n */\nlet a = 1; // four\n\n  \
                    // five\n  const b = \"/* six */\";\n/** @type {x} */ (b).y();\n/*\nseven */\nend";
        let kept = "let a = 1; // four\n  const b = \"/* six */\";\n/** @type {x} */ (b).y();\nend";
        assert_eq!(without_comments(text), kept);
    }

    #[test]
    fn gzip_is_sent_to_whom_can_read_it() {
        let accepts = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            accepts_gzip(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, value)]))
        };
        for value in ["gzip", "br, gzip", "gzip;q=0.5", "deflate,GZIP ; q=1"] {
            assert!(accepts(value), "{value}");
        }
        for value in ["", "br", "gzip;q=0", "gzip;q=0.0", "xgzip"] {
            assert!(!accepts(value), "{value}");
        }
    }
}
