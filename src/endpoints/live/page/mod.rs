//! The live page: one HTML file that includes its style and script, made once.
//!
//! Its content security policy names both by their hashes: nothing else runs, and the page can reach only this service. Its
//! scripts are plain ES modules, joined in the same way as those of the report's page; some of them are that page's.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use heapray_report::page::shared;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");

/// The link to Swagger UI.
const API: &str = if cfg!(feature = "swagger-ui") {
    r#"<a href="../../../../docs/">API</a>"#
} else {
    ""
};

macro_rules! modules {
    ($($name:literal),* $(,)?) => {
        [$(include_str!(concat!("js/", $name))),*]
    };
}

/// Scripts, each after those that it imports.
const MODULES: [&str; 12] = modules![
    "connection.js",
    "access.js",
    "curve.js",
    "facts.js",
    "links.js",
    "places.js",
    "lines.js",
    "leaks.js",
    "routes.js",
    "reports.js",
    "controls.js",
    "main.js",
];

struct Page {
    html: Bytes,
    policy: HeaderValue,
}

static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let script = shared::joined(
        [
            shared::FORMAT,
            shared::AXIS,
            shared::DOM,
            shared::NAMES,
            shared::LINE_LINK,
        ]
        .into_iter()
        .chain(MODULES),
    );
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'self'; require-trusted-types-for 'script'; trusted-types 'none'",
        shared::policy_hash(&script),
        shared::policy_hash(STYLE),
    );
    let html = TEMPLATE
        .replacen("{{style}}", STYLE, 1)
        .replacen("{{api}}", API, 1)
        .replacen("{{script}}", &script, 1);
    Page {
        html: Bytes::from_owner(html),
        policy: HeaderValue::try_from(policy).expect("hashes and words are a header value"),
    }
});

/// Returns the page. It loads without a token, since a browser cannot send one by itself, and then asks the user for the
/// token.
pub(in crate::endpoints) fn page() -> Response {
    let mut response = Response::new(Body::from(PAGE.html.clone()));
    let headers = response.headers_mut();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, html);
    headers.insert(header::CONTENT_SECURITY_POLICY, PAGE.policy.clone());
    let nobody = HeaderValue::from_static("no-referrer");
    headers.insert(header::REFERRER_POLICY, nobody);
    response
}

#[cfg(test)]
mod tests {
    use super::{MODULES, PAGE, TEMPLATE};
    use std::path::Path;

    #[test]
    fn every_script_of_the_folder_is_in_the_page() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/endpoints/live/page/js");
        let files = std::fs::read_dir(folder).unwrap();
        for file in files.map(|file| file.unwrap().path()) {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(MODULES.contains(&text.as_str()), "{}", file.display());
        }
    }

    #[test]
    fn the_page_has_no_slot_left_and_leads_nowhere_but_to_relative_places() {
        let page = std::str::from_utf8(&PAGE.html).unwrap();
        for slot in ["{{style}}", "{{api}}", "{{script}}"] {
            assert!(TEMPLATE.contains(slot) && !page.contains(slot), "{slot}");
        }
        for absolute in ["href=\"/", "src=\"/", "src=\"http", "href=\"http"] {
            assert!(!TEMPLATE.contains(absolute), "{absolute}");
        }
    }
}
