//! The OpenAPI description of each view of a report: the same headers and partial answers for all, and the media types of
//! each.

use std::collections::BTreeMap;

use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{Content, ContentBuilder, Header, Ref, RefOr, Response, ResponseBuilder};

/// View of a report: of the present session, and of kept ones.
pub(super) struct View {
    /// Last word of the view's path.
    pub(super) name: &'static str,
    /// Description of the answer, in a sentence.
    what: &'static str,
    /// Media types: name, kind of body, and an example (empty if there is none).
    types: &'static [(&'static str, Shape, &'static str)],
    /// Name of the file in which a client saves the answer; empty for an answer that is not saved.
    file: &'static str,
}

const TEXT: &str = "text/plain; charset=utf-8";

/// All views.
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
            // First, so that generated clients have its type.
            ("application/json", Shape::Json("StatisticsAnswer"), ""),
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

/// Kind of an answer's body.
#[derive(Clone, Copy)]
enum Shape {
    Bytes,
    Text,
    /// JSON that another tool's format defines.
    AnyJson,
    /// JSON with a schema of this name.
    Json(&'static str),
}

/// Headers and their descriptions.
const HEADERS: [(&str, &str); 6] = [
    ("ETag", "Strong entity tag: identifies exactly these bytes."),
    (
        "Last-Modified",
        "The moment that the output describes, in whole seconds.",
    ),
    (
        "Accept-Ranges",
        "`bytes`: a `Range` header, such as `bytes=1000-`, asks for a part; `If-Range` with an `ETag` makes that conditional.",
    ),
    (
        "Cache-Control",
        "`private, no-cache` for a finished session, `no-store` for a snapshot.",
    ),
    (
        "X-Heapray-Snapshot",
        "`true` while the session still records: a consistent view up to X-Heapray-Taken.",
    ),
    (
        "X-Heapray-Taken",
        "The moment that the output describes (RFC 3339).",
    ),
];

impl View {
    /// Returns the successful answers to a request for this view.
    pub(super) fn responses(&self) -> BTreeMap<String, RefOr<Response>> {
        let mut whole = described(self.what, self.types);
        let mut part = described("The requested range.", self.types);
        let mut length = text("Length of the whole output in bytes.");
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
        let range = text("Position of the part, and length of the whole output.");
        part.headers.insert("Content-Range".into(), range.into());
        let unchanged = described("The client's copy is up to date.", &[]);
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
