//! How the OpenAPI document tells of an output: the same headers and part answers for each, with its own media types.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use utoipa::IntoResponses;
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{Content, ContentBuilder, Header, RefOr, Response, ResponseBuilder};

/// What an output is: the type parameter of [`OutputResponses`].
pub(crate) trait Told {
    /// What the answer is, in a sentence.
    const WHAT: &'static str;
    /// Its media types; whether each is text; an example, or nothing.
    const TYPES: &'static [(&'static str, bool, &'static str)];
    /// The name under which it is saved; empty for an answer that is not to be saved.
    const FILE: &'static str;
}

/// The answers to a request for an output that were no failure.
pub(crate) struct OutputResponses<K>(PhantomData<K>);

/// Header, and what it says.
const HEADERS: [(&str, &str); 6] = [
    ("ETag", "Strong: names exactly these bytes."),
    (
        "Last-Modified",
        "The moment that it describes, in whole seconds.",
    ),
    ("Accept-Ranges", "`bytes`."),
    (
        "Cache-Control",
        "`private, no-cache` of a finished session, `no-store` of a snapshot.",
    ),
    (
        "X-Heapray-Snapshot",
        "`true` while the session still records: a consistent view up to X-Heapray-Taken.",
    ),
    ("X-Heapray-Taken", "The moment that it describes, RFC 3339."),
];

impl<K: Told> IntoResponses for OutputResponses<K> {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut whole = described(K::WHAT, K::TYPES);
        let mut part = described("The range that was asked for.", K::TYPES);
        let mut length = text("Bytes of the whole.");
        length.schema = Some(Object::with_type(Type::Integer).into());
        let headers = &mut whole.headers;
        headers.insert("Content-Length".into(), length.into());
        for (name, says) in HEADERS {
            headers.insert(name.into(), text(says).into());
        }
        if !K::FILE.is_empty() {
            let says = format!("`inline; filename=\"{}\"`.", K::FILE);
            headers.insert("Content-Disposition".into(), text(&says).into());
        }
        let range = text("Which bytes of how many.");
        part.headers.insert("Content-Range".into(), range.into());
        let unchanged = described("The client's copy is still good.", &[]);
        let all = [("200", whole), ("206", part), ("304", unchanged)];
        all.into_iter()
            .map(|(status, response)| (status.to_owned(), response.into()))
            .collect()
    }
}

fn text(says: &str) -> Header {
    let mut header = Header::new(Object::with_type(Type::String));
    header.description = Some(says.to_owned());
    header
}

fn described(what: &str, types: &[(&str, bool, &str)]) -> Response {
    let mut response = ResponseBuilder::new().description(what);
    for &(media, is_text, example) in types {
        response = response.content(media, content(is_text, example));
    }
    response.build()
}

fn content(is_text: bool, example: &str) -> Content {
    let mut schema = ObjectBuilder::new().schema_type(Type::String);
    if !is_text {
        schema = schema.format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)));
    }
    let content = ContentBuilder::new().schema(Some(schema));
    let example = (!example.is_empty()).then(|| example.into());
    content.example(example).build()
}

macro_rules! told {
    ($($name:ident: $what:literal, $file:literal, [$($type:tt),* $(,)?];)*) => {
        $(
            /// See [`Told`].
            pub(crate) struct $name;

            impl Told for $name {
                const WHAT: &'static str = $what;
                const TYPES: &'static [(&'static str, bool, &'static str)] = &[$($type),*];
                const FILE: &'static str = $file;
            }
        )*
    };
}

told! {
    ReportFile: "The capture file, or a file for another tool.", "memray-report.bin", [
        ("application/octet-stream", false, ""),
        ("application/json", true, ""),
        ("text/csv; charset=utf-8", true, ""),
        ("text/plain; charset=utf-8", true, "main;app::run;app::load 24000168\n"),
        ("image/svg+xml", true, ""),
    ];
    Page: "The page.", "memray-flamegraph.html", [("text/html; charset=utf-8", true, "")];
    Text: "The text.", "", [("text/plain; charset=utf-8", true, "")];
    Statistics: "The text, or JSON.", "", [
        (
            "text/plain; charset=utf-8",
            true,
            "📏 Total allocations:\n\t1206\n\n📦 Total memory allocated:\n\t24.310MB\n"
        ),
        ("application/json", true, ""),
    ];
    Profile: "The profile.", "memray-report.pb.gz", [("application/octet-stream", false, "")];
    AnyOutput: "What was asked for.", "", [
        ("application/octet-stream", false, ""),
        ("text/html; charset=utf-8", true, ""),
        ("text/plain; charset=utf-8", true, ""),
        ("application/json", true, ""),
        ("text/csv; charset=utf-8", true, ""),
        ("image/svg+xml", true, ""),
    ];
}

#[cfg(feature = "svg")]
told! {
    Picture: "The picture.", "memray-report.svg", [("image/svg+xml", true, "")];
}
