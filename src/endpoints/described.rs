//! What the OpenAPI document says of each view of a report: the same headers and part answers for each, with its own media
//! types.

use std::collections::BTreeMap;

use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{Content, ContentBuilder, Header, Ref, RefOr, Response, ResponseBuilder};

/// A view of a report, of the present session and of kept ones.
pub(super) struct View {
    /// The last word of its path.
    pub(super) name: &'static str,
    /// What the answer is, in a sentence.
    what: &'static str,
    /// Its media types; what each is; an example, or nothing.
    types: &'static [(&'static str, Shape, &'static str)],
    /// The name under which it is saved; empty for an answer that is not to be saved.
    file: &'static str,
}

const TEXT: &str = "text/plain; charset=utf-8";

/// Every view.
pub(super) const VIEWS: &[View] = &[
    View {
        name: "report",
        what: "The capture file, or a file for another tool.",
        types: &[
            ("application/octet-stream", Shape::Bytes, ""),
            ("application/json", Shape::AnyJson, ""),
            ("text/csv; charset=utf-8", Shape::Text, ""),
            (TEXT, Shape::Text, "main;app::run;app::load 24000168\n"),
            ("image/svg+xml", Shape::Text, ""),
        ],
        file: "memray-report.bin",
    },
    View {
        name: "flamegraph",
        what: "The page.",
        types: &[("text/html; charset=utf-8", Shape::Text, "")],
        file: "memray-flamegraph.html",
    },
    View {
        name: "stats",
        what: "The text, or JSON.",
        types: &[
            // First, so that made clients have its type.
            ("application/json", Shape::Json("Statistics"), ""),
            (
                TEXT,
                Shape::Text,
                "📏 Total allocations:\n\t1206\n\n📦 Total memory allocated:\n\t24.310MB\n",
            ),
        ],
        file: "",
    },
    text_view("table"),
    text_view("tree"),
    text_view("summary"),
    View {
        name: "pprof",
        what: "The profile.",
        types: &[("application/octet-stream", Shape::Bytes, "")],
        file: "memray-report.pb.gz",
    },
    View {
        name: "flamegraph.svg",
        what: "The picture.",
        types: &[("image/svg+xml", Shape::Text, "")],
        file: "memray-report.svg",
    },
];

const fn text_view(name: &'static str) -> View {
    View {
        name,
        what: "The text.",
        types: &[(TEXT, Shape::Text, "")],
        file: "",
    }
}

/// What the body of an answer is.
#[derive(Clone, Copy)]
enum Shape {
    Bytes,
    Text,
    /// JSON for another tool, or of a format that has its own description.
    AnyJson,
    /// JSON with a schema of that name.
    Json(&'static str),
}

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

impl View {
    /// Returns the answers to a request for it that were no failure.
    pub(super) fn responses(&self) -> BTreeMap<String, RefOr<Response>> {
        let mut whole = described(self.what, self.types);
        let mut part = described("The range that was asked for.", self.types);
        let mut length = text("Bytes of the whole.");
        length.schema = Some(Object::with_type(Type::Integer).into());
        let headers = &mut whole.headers;
        headers.insert("Content-Length".into(), length.into());
        for (name, says) in HEADERS {
            headers.insert(name.into(), text(says).into());
        }
        if !self.file.is_empty() {
            let says = format!("`inline; filename=\"{}\"`.", self.file);
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
