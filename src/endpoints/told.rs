//! How the OpenAPI document tells of an output: the same headers and part answers for each, with its own media types.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use utoipa::IntoResponses;
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{Content, ContentBuilder, Header, Ref, RefOr, Response, ResponseBuilder};

/// What an output is: the type parameter of [`OutputResponses`].
pub(crate) trait Told {
    /// What the answer is, in a sentence.
    const WHAT: &'static str;
    /// Its media types; what each is; an example, or nothing.
    const TYPES: &'static [(&'static str, Shape, &'static str)];
    /// The name under which it is saved; empty for an answer that is not to be saved.
    const FILE: &'static str;
}

/// What the body of an answer is.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    Bytes,
    Text,
    /// JSON for another tool, or of a format that has its own description.
    AnyJson,
    /// JSON with a schema of that name.
    Json(&'static str),
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
    (
        "Accept-Ranges",
        "`bytes`: with a `Range` header, such as `bytes=1000-`, and if wanted `If-Range` with an `ETag`, a part of it comes.",
    ),
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

fn described(what: &str, types: &[(&str, Shape, &str)]) -> Response {
    let mut response = ResponseBuilder::new().description(what);
    for &(media, shape, example) in types {
        response = response.content(media, content(shape, example));
    }
    response.build()
}

fn content(shape: Shape, example: &str) -> Content {
    let typed = |of| ObjectBuilder::new().schema_type(of);
    let binary = SchemaFormat::KnownFormat(KnownFormat::Binary);
    let schema: RefOr<Schema> = match shape {
        Shape::Bytes => typed(Type::String).format(Some(binary)).into(),
        Shape::Text => typed(Type::String).into(),
        Shape::AnyJson => typed(Type::Object).into(),
        Shape::Json(name) => Ref::from_schema_name(name).into(),
    };
    let content = ContentBuilder::new().schema(Some(schema));
    let example = (!example.is_empty()).then(|| example.into());
    content.example(example).build()
}

macro_rules! told {
    ($($name:ident: $what:literal, $file:literal, [$($(#[$cfg:meta])* ($($type:tt)*)),* $(,)?];)*) => {
        $(
            /// See [`Told`].
            pub(crate) struct $name;

            impl Told for $name {
                const WHAT: &'static str = $what;
                const TYPES: &'static [(&'static str, Shape, &'static str)] = &[$($(#[$cfg])* ($($type)*)),*];
                const FILE: &'static str = $file;
            }
        )*
    };
}

told! {
    ReportFile: "The capture file, or a file for another tool.", "memray-report.bin", [
        ("application/octet-stream", Shape::Bytes, ""),
        ("application/json", Shape::AnyJson, ""),
        ("text/csv; charset=utf-8", Shape::Text, ""),
        ("text/plain; charset=utf-8", Shape::Text, "main;app::run;app::load 24000168\n"),
        #[cfg(feature = "svg")]
        ("image/svg+xml", Shape::Text, ""),
    ];
    Page: "The page.", "memray-flamegraph.html", [("text/html; charset=utf-8", Shape::Text, "")];
    Text: "The text.", "", [("text/plain; charset=utf-8", Shape::Text, "")];
    Statistics: "The text, or JSON.", "", [
        // First, so that made clients have its type.
        ("application/json", Shape::Json("Statistics"), ""),
        (
            "text/plain; charset=utf-8",
            Shape::Text,
            "📏 Total allocations:\n\t1206\n\n📦 Total memory allocated:\n\t24.310MB\n"
        ),
    ];
    Profile: "The profile.", "memray-report.pb.gz", [("application/octet-stream", Shape::Bytes, "")];
}

#[cfg(feature = "svg")]
told! {
    Picture: "The picture.", "memray-report.svg", [("image/svg+xml", Shape::Text, "")];
}
