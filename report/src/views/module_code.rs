//! What is known of the code of each module.

use std::collections::BTreeMap;

use crate::Report;

/// What is known of a module's code in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModuleCode {
    /// Index in [`Report::modules`].
    pub module: usize,
    /// Frames of its code, without inlined calls.
    pub frames: usize,
    /// Those without a function: they are called by their offset in the module.
    pub without_function: usize,
    /// Those without a line.
    pub without_line: usize,
}

/// Returns what is known of each module that has frames, in the order of the modules.
#[must_use]
pub fn code_of_modules(report: &Report) -> Vec<ModuleCode> {
    let mut modules: BTreeMap<usize, ModuleCode> = BTreeMap::new();
    for (frame, place) in report.frames.iter().zip(&report.places) {
        let Some(module) = place.module.filter(|_| !place.inlined) else {
            continue;
        };
        let at = module as usize;
        let code = modules.entry(at).or_default();
        code.module = at;
        code.frames += 1;
        code.without_line += usize::from(frame.line == 0);
        let path = report.modules.get(at).map_or("", |module| &*module.path);
        let function = report.strings.get(frame.function);
        code.without_function += usize::from(is_offset(function, path));
    }
    modules.into_values().collect()
}

/// Returns whether a function's name is an offset in the module at `path`: `module+0x1f3c`.
#[must_use]
pub fn is_offset(function: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let offset = function.strip_prefix(name);
    let digits = offset.and_then(|offset| offset.strip_prefix("+0x"));
    digits.is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Module, Place};

    #[test]
    fn a_module_lacks_what_its_frames_lack() {
        let mut report = Report::default();
        for (function, line) in [("app+0x1f", 0), ("main", 0), ("main", 7), ("inlined", 0)] {
            report.add_frame(function, "/srv/app", line);
        }
        report.add_frame("[unknown code] 0x7", "", 0);
        report.modules = vec![Module {
            path: "/srv/app".into(),
            ..Module::default()
        }];
        let place = |number: u64| Place {
            module: (number < 4).then_some(0),
            address: 100 + number,
            inlined: number == 3,
        };
        report.places = (0..5).map(place).collect();
        let expected = ModuleCode {
            module: 0,
            frames: 3,
            without_function: 1,
            without_line: 2,
        };
        assert_eq!(code_of_modules(&report), [expected]);
    }

    #[test]
    fn an_offset_is_that_of_the_module() {
        assert!(is_offset("app+0x1f3C", "/srv/app"));
        for function in ["app+0x", "app+0xg", "app", "shop+0x1", "app+1"] {
            assert!(!is_offset(function, "/srv/app"), "{function}");
        }
    }
}
