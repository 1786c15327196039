//! `/openapi.json`, Swagger UI below `/docs/`, and the redirect from the home page to it.
//!
//! Every link is relative: the pages work at the root, below any prefix, and behind a proxy that removes one. The pages load
//! without a token, since a browser cannot send one by itself; the calls that they make need the token.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
#[cfg(feature = "openapi")]
use bytes::Bytes;
#[cfg(feature = "swagger-ui")]
use heapray_report::markup::Escaped;

#[cfg(feature = "openapi")]
use super::openapi::Document;

/// Swagger UI's own page and the style of its ground, with the service's title and readable links.
#[cfg(feature = "swagger-ui")]
const INDEX: &str = include_str!("index.html");
#[cfg(feature = "swagger-ui")]
const STYLE: &str = include_str!("index.css");

/// Parts that the pages are made of.
#[derive(Clone)]
#[cfg_attr(not(feature = "openapi"), derive(Default))]
pub(crate) struct Pages {
    #[cfg(feature = "openapi")]
    document: Bytes,
    /// Document of the profiler's routes alone.
    #[cfg(feature = "openapi")]
    own: Bytes,
    #[cfg(feature = "swagger-ui")]
    index: Bytes,
    #[cfg(feature = "swagger-ui")]
    swagger: std::sync::Arc<utoipa_swagger_ui::Config<'static>>,
}

impl Pages {
    /// Makes the pages from `document`, which describes all routes, and `own`, which describes the profiler's alone. An app
    /// that has no document of its own has no `document` here either.
    #[cfg(feature = "openapi")]
    pub(crate) fn new(document: Option<Document>, own: Document) -> Pages {
        // `Bytes` of a `Vec` allocate at their first clone. These allocate now, while the thread is untracked.
        let own_text = Bytes::from_owner(own.text);
        let (title, text) = match document {
            Some(document) => (document.title, Bytes::from_owner(document.text)),
            None => (own.title, own_text.clone()),
        };
        #[cfg(not(feature = "swagger-ui"))]
        drop(title);
        Pages {
            document: text,
            own: own_text,
            #[cfg(feature = "swagger-ui")]
            index: Bytes::from_owner(INDEX.replacen("{{title}}", &Escaped(&title).to_string(), 1)),
            #[cfg(feature = "swagger-ui")]
            swagger: std::sync::Arc::new(
                // No validator: the page would send this service's address to a public server.
                utoipa_swagger_ui::Config::from("../openapi.json")
                    .validator_url("none")
                    // The token stays in the page's memory and is lost with the page.
                    .persist_authorization(false)
                    .display_request_duration(true),
            ),
        }
    }

    /// Returns the same pages with the document of the profiler's routes alone.
    #[cfg(feature = "openapi")]
    pub(crate) fn with_own_document(self) -> Pages {
        Pages {
            document: self.own.clone(),
            ..self
        }
    }

    /// Returns the same pages: there are no documents.
    #[cfg(not(feature = "openapi"))]
    pub(crate) fn with_own_document(self) -> Pages {
        self
    }

    /// Returns whether `path` is one of these pages. An app's own page at the same path comes first.
    pub(crate) fn is_page(path: &str) -> bool {
        cfg!(feature = "openapi") && path == "/openapi.json"
            || cfg!(feature = "swagger-ui")
                && (matches!(path, "/" | "" | "/docs") || path.starts_with("/docs/"))
    }

    /// Returns the page at `path`, if there is one.
    pub(crate) fn get(&self, path: &str) -> Option<Response> {
        match path {
            #[cfg(feature = "openapi")]
            "/openapi.json" => Some(with_type(
                Body::from(self.document.clone()),
                HeaderValue::from_static("application/json"),
            )),
            #[cfg(feature = "swagger-ui")]
            "/" | "" | "/docs" => Some(redirect("docs/", None)),
            #[cfg(feature = "swagger-ui")]
            _ => self.swagger(path.strip_prefix("/docs/")?),
            #[cfg(not(feature = "swagger-ui"))]
            _ => None,
        }
    }

    #[cfg(feature = "swagger-ui")]
    fn swagger(&self, tail: &str) -> Option<Response> {
        let mut response = match tail {
            "" | "index.html" => with_type(
                Body::from(self.index.clone()),
                HeaderValue::from_static("text/html; charset=utf-8"),
            ),
            "index.css" => with_type(STYLE.into(), HeaderValue::from_static("text/css")),
            _ => self.swagger_file(tail)?,
        };
        let headers = response.headers_mut();
        let policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; font-src 'self' data:; connect-src 'self' http: https:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(policy),
        );
        Some(response)
    }

    #[cfg(feature = "swagger-ui")]
    fn swagger_file(&self, name: &str) -> Option<Response> {
        let file = utoipa_swagger_ui::serve(name, self.swagger.clone()).ok()??;
        let content_type = HeaderValue::try_from(file.content_type).ok()?;
        let mut response = with_type(Body::from(file.bytes.into_owned()), content_type);
        if file.gzpipped {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        Some(response)
    }
}

/// Returns a redirect that keeps the method and, if there is one, the query.
pub(crate) fn redirect(to: &str, query: Option<&str>) -> Response {
    let to = match query {
        Some(query) => format!("{to}?{query}"),
        None => to.to_owned(),
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    // `to` is part of a request's path, which the `http` crate has checked.
    if let Ok(to) = HeaderValue::try_from(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}

#[cfg(feature = "openapi")]
fn with_type(body: Body, content_type: HeaderValue) -> Response {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}
