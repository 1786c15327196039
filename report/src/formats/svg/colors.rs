//! A colour for each package, as on the page: warm for the service's own crates, cool for its dependencies, greys for the
//! standard library and for native code.

use super::tree::{Label, Tree};
use crate::model::{FrameId, Report, StrId};
use crate::views::{Kind, Origins};

/// The light colours of `report/page/style.css`; a test compares them.
const OWN: [&str; 3] = ["#f3a45f", "#f7cb73", "#ee9a86"];
const OWN_MORE: &str = "#f2d5bb";
const DEPENDENCY: [&str; 6] = [
    "#93b8e6", "#b9e0e6", "#8fc9b5", "#c5c0ec", "#cfdcf5", "#c3ddb0",
];
const DEPENDENCY_MORE: &str = "#cdd6df";
const LANGUAGE: &str = "#dedcd7";
const NATIVE: &str = "#c3c1bb";
const ROOT: &str = "#e9e7e1";
const REST: &str = "#dcdad4";

/// Shares of white: neighbours of one package differ a little, since otherwise its functions would look like one box.
const SHADES: [f64; 3] = [0.0, 0.1, 0.2];

/// Colours of a picture, and its legend.
pub(super) struct Colors {
    origins: Origins,
    /// Colours by package. Those of packages that are not in the picture mean nothing.
    of_package: Vec<&'static str>,
    /// Colour and packages of each entry, in the order of the legend.
    pub(super) legend: Vec<(&'static str, String)>,
}

impl Colors {
    pub(super) fn of(report: &Report, tree: &Tree) -> Colors {
        let origins = Origins::of(report);
        // The packages that cover most of the picture have colours of their own.
        let mut area = vec![0.0; origins.packages().len()];
        for tile in &tree.tiles {
            if let Label::Frame(frame) = tile.label
                && let Some(package) = origins.index(frame)
            {
                area[package as usize] += tile.value as f64;
            }
        }
        let ranked = |kind: Kind| {
            let packages = origins.packages().iter().enumerate();
            let mut ranked: Vec<usize> = packages
                .filter(|(at, package)| package.kind == kind && area[*at] > 0.0)
                .map(|(at, _)| at)
                .collect();
            ranked.sort_by(|&a, &b| area[b].total_cmp(&area[a]).then(a.cmp(&b)));
            ranked
        };
        let name = |package: usize| origins.packages()[package].name.clone();
        let mut of_package = vec![NATIVE; area.len()];
        let mut legend = Vec::new();
        let mut add = |color, packages: &[usize], name: String| {
            for &package in packages {
                of_package[package] = color;
            }
            if !packages.is_empty() {
                legend.push((color, name));
            }
        };
        for (kind, colors, more, others) in [
            (Kind::Own, &OWN[..], OWN_MORE, "more of your crates"),
            (
                Kind::Package,
                &DEPENDENCY[..],
                DEPENDENCY_MORE,
                "other crates",
            ),
        ] {
            let ranked = ranked(kind);
            let (first, rest) = ranked.split_at(ranked.len().min(colors.len()));
            for (&package, color) in first.iter().zip(colors) {
                add(color, &[package], name(package));
            }
            match rest {
                &[only] => add(more, rest, name(only)),
                rest => add(more, rest, format!("{} {others}", rest.len())),
            }
        }
        let language = ranked(Kind::Language);
        let names: Vec<String> = language.iter().map(|&package| name(package)).collect();
        add(LANGUAGE, &language, names.join(", "));
        add(NATIVE, &ranked(Kind::Native), "native".into());
        Colors {
            origins,
            of_package,
            legend,
        }
    }

    pub(super) fn fill(&self, report: &Report, label: Label) -> String {
        match label {
            Label::All | Label::Thread(_) => ROOT.into(),
            Label::NoStack => REST.into(),
            Label::Frame(frame) => {
                let color = match self.origins.index(frame) {
                    Some(package) => self.of_package[package as usize],
                    None => NATIVE,
                };
                lighter(color, SHADES[shade(report, frame)])
            }
        }
    }
}

/// Returns the shade of a function, which is the same everywhere.
fn shade(report: &Report, frame: FrameId) -> usize {
    let frame = report.frames.get(frame.0 as usize);
    let StrId(function) = frame.map_or_else(StrId::default, |frame| frame.function);
    function as usize % SHADES.len()
}

/// Mixes `color` (`#rrggbb`) with white.
fn lighter(color: &str, white: f64) -> String {
    let mut mixed = String::from("#");
    for at in [1, 3, 5] {
        let part = color.get(at..at + 2).unwrap_or("ff");
        let part = f64::from(u8::from_str_radix(part, 16).unwrap_or(u8::MAX));
        mixed += &format!("{:02x}", (part + (255.0 - part) * white).round() as u8);
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_colors_are_those_of_the_page() {
        let style = include_str!("../../../page/style.css");
        let numbered = |kind: &str, at: usize| format!("{kind}-{at}");
        let mut colors = vec![
            ("own-more".into(), OWN_MORE),
            ("dep-more".into(), DEPENDENCY_MORE),
            ("language".into(), LANGUAGE),
            ("native".into(), NATIVE),
            ("root-fill".into(), ROOT),
            ("rest-fill".into(), REST),
        ];
        colors.extend(
            OWN.iter()
                .enumerate()
                .map(|(at, color)| (numbered("own", at), *color)),
        );
        let dependencies = DEPENDENCY.iter().enumerate();
        colors.extend(dependencies.map(|(at, color)| (numbered("dep", at), *color)));
        for (name, color) in colors {
            let rule = format!("--{name}: light-dark({color}, ");
            assert!(style.contains(&rule), "{rule}");
        }
    }

    #[test]
    fn a_color_becomes_lighter_up_to_white() {
        assert_eq!(lighter("#f3a45f", 0.0), "#f3a45f");
        assert_eq!(lighter("#000000", 0.2), "#333333");
        assert_eq!(lighter("#f3a45f", 1.0), "#ffffff");
    }
}
