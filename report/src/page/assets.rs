//! The page's own files, and how they are joined.
//!
//! The scripts are plain ES modules that a browser, an editor and `tsc` read as they are. A single file cannot contain
//! modules that import each other, so they are joined in the order of [`MODULES`], without `import` statements and the word
//! `export`. All then share one scope; a name declared twice is a syntax error in the browser.

use std::sync::LazyLock;

use base64::Engine;

use super::shared;
use crate::sha256::sha256;

pub(super) const TEMPLATE: &str = include_str!("../../page/template.html");
pub(super) const STYLE: &str = include_str!("../../page/style.css");

macro_rules! modules {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../page/js/", $name)))),*]
    };
}

/// Modules, each after those that it imports.
const MODULES: &[(&str, &str)] = modules![
    "format.js",
    "shape.js",
    "names.js",
    "decode.js",
    "language.js",
    "nodes.js",
    "call_tree.js",
    "inverted_tree.js",
    "search.js",
    "fold.js",
    "derive.js",
    "ranges.js",
    "generations.js",
    "sites.js",
    "spread.js",
    "contexts.js",
    "functions.js",
    "sandwich.js",
    "memory_parts.js",
    "leaks.js",
    "line_link.js",
    "dom.js",
    "known.js",
    "advice.js",
    "source.js",
    "colors.js",
    "state.js",
    "grouped.js",
    "model.js",
    "layout.js",
    "graph.js",
    "minimap.js",
    "input.js",
    "axis.js",
    "timeline.js",
    "header.js",
    "spark.js",
    "save.js",
    "site_table.js",
    "details.js",
    "dialogs.js",
    "sorted_table.js",
    "sum_columns.js",
    "table_pane.js",
    "contexts_pane.js",
    "outline.js",
    "sandwich_pane.js",
    "leak_list.js",
    "growth_pane.js",
    "memory_pane.js",
    "advice_pane.js",
    "stats_pane.js",
    "crumbs.js",
    "controls.js",
    "pictures.js",
    "shortcuts.js",
    "wiring.js",
    "page.js",
    "main.js",
];

/// All modules as one script.
pub(super) static SCRIPT: LazyLock<String> =
    LazyLock::new(|| shared::joined(MODULES.iter().map(|(_, text)| *text)));

/// Returns `'sha256-…'`, the name of an inline script or style in a content security policy.
pub(super) fn policy_hash(text: &str) -> String {
    let hash = base64::engine::general_purpose::STANDARD.encode(sha256(text.as_bytes()));
    format!("'sha256-{hash}'")
}

/// Returns the lines of a module without imports, the word `export`, and lines that are only comments, which make up a third
/// of it.
pub(super) fn joinable(text: &str) -> impl Iterator<Item = &str> {
    let mut importing = false;
    let mut commenting = false;
    text.lines().filter_map(move |line| {
        let content = line.trim_start();
        importing |= line.starts_with("import ");
        commenting |=
            content.starts_with("/*") && (content.ends_with("*/") || !content.contains("*/"));
        if importing {
            importing = !line.ends_with(';');
            return None;
        }
        if commenting {
            commenting = !content.ends_with("*/");
            return None;
        }
        if content.is_empty() || content.starts_with("//") {
            return None;
        }
        Some(line.strip_prefix("export ").unwrap_or(line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::path::Path;

    #[test]
    fn every_script_is_listed_after_those_it_imports() {
        let mut seen = HashSet::new();
        for (name, text) in MODULES {
            for from in text
                .lines()
                .filter(|line| !line.trim_start().starts_with('*'))
            {
                if let Some((_, path)) = from.split_once(" from \"./") {
                    let path = path.trim_end_matches("\";");
                    assert!(
                        seen.contains(path),
                        "{name} imports {path}, which comes later"
                    );
                }
            }
            seen.insert(*name);
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page/js");
        for file in std::fs::read_dir(folder).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            assert!(
                seen.contains(name.as_str()),
                "{name} is not part of the page"
            );
        }
    }

    #[test]
    fn no_module_renames_what_it_imports_or_exports() {
        for (name, text) in MODULES {
            for line in text.lines().filter(|line| !line.starts_with([' ', '/'])) {
                let module_line = line.starts_with("import ") || line.starts_with("export ");
                assert!(
                    !(module_line
                        && (line.contains(" as ")
                            || line.contains("export default")
                            || line.contains("export {"))),
                    "{name}: joining would break `{line}`"
                );
            }
        }
    }

    #[test]
    fn nothing_of_the_modules_but_their_borders_is_lost() {
        let text = concat!(
            "// head\nimport { a } from \"./a.js\";\nimport {\n  b,\n} from \"./b.js\";\n\n/**\n * doc\n */\n",
            "export function f() {\n  /** one line */\n  // another\n  /** @type {x} */ (f)(/* y */);\n}\nconst z = 1;"
        );
        let lines: Vec<&str> = joinable(text).collect();
        assert_eq!(
            lines,
            [
                "function f() {",
                "  /** @type {x} */ (f)(/* y */);",
                "}",
                "const z = 1;"
            ]
        );
    }
}
