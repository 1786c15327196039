//! Parts of this page for other pages: joining modules to one script, and the modules that do not depend on a report.

use std::collections::HashSet;

use super::assets;

/// Numbers for users: `page/js/format.js`.
pub const FORMAT: &str = include_str!("../../page/js/format.js");

/// Round values for the axes of curves: `page/js/axis.js`. It needs [`FORMAT`].
pub const AXIS: &str = include_str!("../../page/js/axis.js");

/// Elements from plain data, canvases, colours of the theme: `page/js/dom.js`.
pub const DOM: &str = include_str!("../../page/js/dom.js");

/// Shortening of function names and paths: `page/js/names.js`.
pub const NAMES: &str = include_str!("../../page/js/names.js");

/// Links to a line of code in the flame graph: `page/js/line_link.js`.
pub const LINE_LINK: &str = include_str!("../../page/js/line_link.js");

/// Joins ES modules to one script. Each must come after those that it imports, and no name may be in two of them: a browser
/// would run none of the script. Debug builds check that.
pub fn joined<'t>(modules: impl IntoIterator<Item = &'t str>) -> String {
    let lines = modules.into_iter().flat_map(assets::joinable);
    let script: String = lines.flat_map(|line| [line, "\n"]).collect();
    debug_assert_eq!(repeated_name(&script), None, "two modules have this name");
    script
}

/// Returns a name that `script` declares twice outside of any block.
fn repeated_name(script: &str) -> Option<&str> {
    const DECLARATIONS: [&str; 5] = ["function ", "async function ", "const ", "let ", "class "];
    let mut seen = HashSet::new();
    let declared = script.lines().filter_map(|line| {
        let rest = DECLARATIONS
            .iter()
            .find_map(|word| line.strip_prefix(word))?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
        Some(&rest[..end.unwrap_or(rest.len())])
    });
    declared
        .filter(|name| !name.is_empty())
        .find(|name| !seen.insert(*name))
}

/// Returns `'sha256-…'`, the name of an inline script or style in a content security policy.
#[must_use]
pub fn policy_hash(text: &str) -> String {
    assets::policy_hash(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_two_modules_is_found_and_one_inside_of_a_block_is_not() {
        let script =
            "const a = 1;\nfunction f() {\n  const a = 2;\n}\nconst { x } = a;\nconst { y } = a;\n";
        assert_eq!(repeated_name(script), None);
        let again = format!("{script}async function f(g) {{}}\n");
        assert_eq!(repeated_name(&again), Some("f"));
    }
}
