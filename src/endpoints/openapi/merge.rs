//! Merges two OpenAPI documents as JSON, so that an app's document keeps what no type here knows.

use serde_json::{Map, Value};

/// Returns `app` with the paths, components and tags of `ours`, and its servers. Where both have the same operation,
/// component or tag, the app's stays.
///
/// # Errors
///
/// Fails if `app` is not OpenAPI 3.1; the text says what is wrong with it.
pub(super) fn merged(mut app: Value, ours: Value) -> Result<Value, String> {
    let Value::Object(document) = &mut app else {
        return Err("it is not an object".into());
    };
    check(document)?;
    let Value::Object(ours) = ours else {
        return Err("the profiler's own document is not an object".into());
    };
    for (name, value) in ours {
        match name.as_str() {
            // path, then method; kind of component, then name
            "paths" | "components" => union(document.entry(name).or_insert_with(object), value, 2),
            "tags" => add_tags(document.entry(name).or_insert_with(list), value),
            "servers" => drop(document.insert(name, value)),
            _ => {}
        }
    }
    Ok(app)
}

fn check(document: &Map<String, Value>) -> Result<(), String> {
    match document.get("openapi").and_then(Value::as_str) {
        Some(version) if version.starts_with("3.1") => {}
        Some(version) => return Err(format!("its version is {version}")),
        None => return Err("it has no version in `openapi`".into()),
    }
    let title = document.get("info").and_then(|info| info.get("title"));
    if !title.is_some_and(Value::is_string) {
        return Err("it has no title in `info`".into());
    }
    for name in ["paths", "components"] {
        let part = document.get(name);
        if part.is_some_and(|part| !part.is_object()) {
            return Err(format!("its `{name}` are not an object"));
        }
    }
    match document.get("tags") {
        Some(tags) if !tags.is_array() => Err("its `tags` are not a list".into()),
        _ => Ok(()),
    }
}

/// Adds the members of `from` that `into` does not have, `depth` levels deep.
fn union(into: &mut Value, from: Value, depth: usize) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else {
        return;
    };
    for (name, value) in from {
        match into.get_mut(&name) {
            Some(known) if depth > 1 => union(known, value, depth - 1),
            Some(_) => {}
            None => drop(into.insert(name, value)),
        }
    }
}

fn add_tags(into: &mut Value, from: Value) {
    let (Value::Array(into), Value::Array(from)) = (into, from) else {
        return;
    };
    for tag in from {
        if !into.iter().any(|known| known["name"] == tag["name"]) {
            into.push(tag);
        }
    }
}

fn object() -> Value {
    Value::Object(Map::new())
}

fn list() -> Value {
    Value::Array(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::merged;
    use serde_json::{Value, json};

    fn ours() -> Value {
        json!({
            "openapi": "3.1.0",
            "info": {"title": "profiler", "version": "1"},
            "servers": [{"url": "."}],
            "paths": {"/both": {"get": "ours", "post": "ours"}, "/start": {"post": "ours"}},
            "components": {"schemas": {"Same": "ours", "Status": "ours"}},
            "tags": [{"name": "profiler"}, {"name": "shop", "description": "ours"}],
        })
    }

    #[test]
    fn the_apps_own_parts_stay_and_ours_are_added() {
        let app = json!({
            "openapi": "3.1.0",
            "info": {"title": "shop", "version": "2"},
            "servers": [{"url": "https://shop.example"}],
            "paths": {"/both": {"get": "app"}, "/carts": {"get": "app"}},
            "components": {"schemas": {"Same": "app"}, "examples": {"One": "app"}},
            "tags": [{"name": "shop"}],
            "x-own": true,
        });
        let expected = json!({
            "openapi": "3.1.0",
            "info": {"title": "shop", "version": "2"},
            "servers": [{"url": "."}],
            "paths": {
                "/both": {"get": "app", "post": "ours"},
                "/carts": {"get": "app"},
                "/start": {"post": "ours"},
            },
            "components": {"schemas": {"Same": "app", "Status": "ours"}, "examples": {"One": "app"}},
            "tags": [{"name": "shop"}, {"name": "profiler"}],
            "x-own": true,
        });
        assert_eq!(merged(app, ours()), Ok(expected));
    }

    #[test]
    fn a_document_of_another_kind_is_refused_with_the_reason() {
        let info = json!({"title": "shop", "version": "1"});
        for (app, reason) in [
            (json!([]), "it is not an object"),
            (json!({"info": info}), "it has no version in `openapi`"),
            (
                json!({"openapi": "3.0.3", "info": info}),
                "its version is 3.0.3",
            ),
            (json!({"openapi": "3.1.0"}), "it has no title in `info`"),
            (
                json!({"openapi": "3.1.0", "info": info, "paths": []}),
                "its `paths` are not an object",
            ),
            (
                json!({"openapi": "3.1.0", "info": info, "tags": {}}),
                "its `tags` are not a list",
            ),
        ] {
            assert_eq!(merged(app, ours()), Err(reason.to_owned()));
        }
    }

    #[test]
    fn a_document_with_nothing_in_it_takes_all_of_ours() {
        let app = json!({"openapi": "3.1.1", "info": {"title": "shop", "version": "1"}});
        let merged = merged(app, ours()).unwrap();
        for part in ["paths", "components", "tags", "servers"] {
            assert_eq!(merged[part], ours()[part], "{part}");
        }
    }
}
