use crate::harness::{Server, Settings};

/// The addresses of files that a document names.
fn files(document: &str) -> Vec<String> {
    document.split('"').filter(|text| text.starts_with("files/")).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_page_and_all_that_it_names_are_served_and_nothing_else() {
    let server = Server::start().await;
    let page = server.client.get("/").await;
    assert_eq!(page.status, 200, "{page:?}");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let named = files(&page.body);
    assert!(named.len() > 10, "{named:?}");
    for name in named {
        let file = server.client.get(&format!("/{name}")).await;
        assert_eq!(file.status, 200, "{name}");
        let kind = match name.rsplit_once('.').unwrap().1 {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!(file.header("content-type"), Some(kind), "{name}");
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"), "{name}");
        assert_eq!(
            file.header("cache-control"),
            Some("public, max-age=31536000, immutable"),
            "{name}"
        );
    }
    for path in [
        "/index.html",
        "/files",
        "/files/",
        "/files/0000000000000000/page/main.js",
        "/files/0000000000000000/../Cargo.toml",
        "/client/",
        "/client/nothing.js",
        "/client/../page/main.js",
        "/page/main.js",
    ] {
        server.client.get(path).await.refused(404, "not_found");
    }
    server.client.call("POST", "/", None).await.refused(405, "method_not_allowed");
}

#[tokio::test]
async fn nothing_foreign_runs_in_the_page_and_nobody_frames_it() {
    let server = Server::start().await;
    for (client, path) in [(&server.client, "/"), (&server.admin(), "/console")] {
        let page = client.get(path).await;
        let policy = page.header("content-security-policy").unwrap_or_default();
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        // What the policy forbids would not work anyway.
        for inline in ["<style", " style=", " onclick=", "<script>"] {
            assert!(!page.body.contains(inline), "{inline}");
        }
    }
}

#[tokio::test]
async fn what_is_known_already_is_not_sent_again() {
    let server = Server::start().await;
    let page = server.client.get("/").await;
    let tag = page.header("etag").unwrap();
    let again = server.client.with("if-none-match", tag).get("/").await;
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    assert_eq!(again.header("etag"), Some(tag));
    let other = server.client.with("if-none-match", "\"0000\"").get("/").await;
    assert_eq!(other.status, 200);
    let head = server.client.call("HEAD", "/", None).await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[tokio::test]
async fn a_link_from_another_site_leads_to_the_page() {
    let server = Server::start().await;
    let ann = server.person().await;
    let visitor = server
        .client
        .cookie(&ann.token)
        .with("sec-fetch-site", "cross-site")
        .with("sec-fetch-mode", "navigate");
    assert_eq!(visitor.get("/").await.status, 200);
    visitor.get("/api/matching").await.refused(403, "cross_site");
}

#[tokio::test]
async fn the_client_module_stands_at_an_address_that_stays_and_is_for_everybody() {
    let server = Server::start().await;
    let module = server.client.with("origin", "https://example.org").get("/client/index.js").await;
    assert_eq!(module.status, 200);
    assert_eq!(module.header("access-control-allow-origin"), Some("*"));
    assert_eq!(module.header("cache-control"), Some("no-cache"));
    let person = server.client.get("/client/person.js").await;
    assert!(person.body.contains("export class Person"), "{person:?}");
}

#[tokio::test]
async fn below_a_base_path_the_page_is_a_folder() {
    let server = Server::with(Settings::new().set("base_path", "/talk")).await;
    let moved = server.client.get("/talk").await;
    assert_eq!((moved.status, moved.header("location")), (308, Some("/talk/")));
    let page = server.client.get("/talk/").await;
    assert_eq!(page.status, 200);
    let script = files(&page.body).into_iter().find(|name| name.ends_with("main.js")).unwrap();
    assert_eq!(server.client.get(&format!("/talk/{script}")).await.status, 200);
    server.client.get(&format!("/{script}")).await.refused(404, "not_found");
    server.client.get("/").await.refused(404, "not_found");
}

#[tokio::test]
async fn without_an_admin_token_there_is_no_console() {
    let server = Server::with(Settings::new().unset("admin_token")).await;
    server.client.get("/console").await.refused(404, "not_found");
    assert_eq!(server.client.get("/").await.status, 200);
}
