//! The code of samples: locations, functions, mappings and strings, numbered in the order of their first use.

use std::collections::HashMap;

use super::proto::{Function, Line, Location, Mapping};
use crate::formats::spelling::{self, NO_STACK};
use crate::memray::in_one_line;
use crate::model::{Frame, FrameId, Module, Report, StackId};

/// Length of a text in bytes. Pyroscope refuses a profile with a longer one.
const LONGEST_TEXT: usize = 65_535;

/// Name for the call stacks of folded samples. It is the same whatever their number, so that stores join them over time.
pub(super) const OTHERS: &str = "other call sites";

/// String table of pprof. Text 0 is empty, as the format demands.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) list: Vec<String>,
    index: HashMap<String, i64>,
}

impl Texts {
    pub(super) fn new() -> Texts {
        Texts {
            list: vec![String::new()],
            index: HashMap::from([(String::new(), 0)]),
        }
    }

    pub(super) fn number(&mut self, text: &str) -> i64 {
        let text = cut(text);
        if let Some(&number) = self.index.get(text) {
            return number;
        }
        let number = self.list.len() as i64;
        self.list.push(text.to_owned());
        self.index.insert(text.to_owned(), number);
        number
    }
}

/// Returns the beginning of `text`, if it is too long for a profile.
fn cut(text: &str) -> &str {
    let end = (0..=LONGEST_TEXT.min(text.len())).rfind(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// Code of the samples of `report`.
#[derive(Debug)]
pub(super) struct Code<'a> {
    report: &'a Report,
    /// Whether code in modules has names.
    symbolized: bool,
    pub(super) texts: Texts,
    pub(super) mappings: Vec<Mapping>,
    pub(super) locations: Vec<Location>,
    pub(super) functions: Vec<Function>,
    /// The mapping of each module.
    mapping_of: Vec<u64>,
    function_index: HashMap<(i64, i64), u64>,
    /// Locations by their frames, leaf first. No frames mean the location of allocations without a stack.
    location_index: HashMap<Box<[FrameId]>, u64>,
    /// The location of [`OTHERS`], if there is one.
    others: Option<u64>,
    /// Buffer that is reused.
    frames: Vec<FrameId>,
}

impl<'a> Code<'a> {
    pub(super) fn of(report: &'a Report, symbolized: bool) -> Code<'a> {
        let mut code = Code {
            report,
            symbolized,
            texts: Texts::new(),
            mappings: Vec::new(),
            locations: Vec::new(),
            functions: Vec::new(),
            mapping_of: vec![0; report.modules.len()],
            function_index: HashMap::new(),
            location_index: HashMap::new(),
            others: None,
            frames: Vec::new(),
        };
        code.add_mappings();
        code
    }

    /// Adds the mappings, the program first: pprof takes the first mapping for the binary on its command line. A report
    /// without modules has an empty mapping: without any mapping, pprof would make one up, and look up address 0 of that
    /// binary.
    fn add_mappings(&mut self) {
        let report = self.report;
        let program = report.about.command_line.split(' ').next().unwrap_or("");
        if report.modules.is_empty() {
            let unknown = Module {
                path: program.into(),
                ..Module::default()
            };
            return self.add_mapping(1, &unknown);
        }
        let name = |path: &'a str| path.rsplit('/').next().unwrap_or(path);
        let mut order: Vec<usize> = (0..report.modules.len()).collect();
        order.sort_by_key(|&index| name(&report.modules[index].path) != name(program));
        for (id, index) in (1..).zip(order) {
            self.mapping_of[index] = id;
            self.add_mapping(id, &report.modules[index]);
        }
    }

    fn add_mapping(&mut self, id: u64, module: &Module) {
        // Without names, addresses are those of the file. A mapping without a range says so: pprof and Parca convert the others
        // by the segments of the file that they have, and those of a debug file are elsewhere.
        let (memory_start, memory_limit, file_offset) = if self.symbolized {
            (module.start, module.limit, module.offset)
        } else {
            (0, 0, 0)
        };
        let mapping = Mapping {
            id,
            memory_start,
            memory_limit,
            file_offset,
            filename: self.texts.number(&in_one_line(&module.path)),
            build_id: self.texts.number(&in_one_line(&module.build_id)),
            // The profile has all available names. This is set even if there are few: looking them up again in another build
            // of the same binary would give wrong names.
            has_functions: self.symbolized,
            has_filenames: self.symbolized,
            has_line_numbers: self.symbolized,
            has_inline_frames: self.symbolized,
        };
        self.mappings.push(mapping);
    }

    /// Returns the locations of `stack`, leaf first. Inlined frames are lines of the location that they are inlined into.
    pub(super) fn locations_of(&mut self, stack: StackId) -> Vec<u64> {
        let report = self.report;
        let mut ids = Vec::new();
        let mut group = std::mem::take(&mut self.frames);
        group.clear();
        for frame in report.stacks.leaf_to_root(stack) {
            group.push(frame);
            let place = report.places.get(frame.0 as usize);
            if !place.is_some_and(|place| place.inlined) {
                ids.push(self.location(&group));
                group.clear();
            }
        }
        // A stack that was cut after an inlined frame, or an empty one.
        if !group.is_empty() || ids.is_empty() {
            ids.push(self.location(&group));
        }
        self.frames = group;
        ids
    }

    fn location(&mut self, frames: &[FrameId]) -> u64 {
        let (mapping_id, address) = self.place(frames.last().copied());
        if !self.symbolized && mapping_id != 0 && address != 0 {
            return self.address(mapping_id, address, frames[frames.len() - 1]);
        }
        if let Some(&id) = self.location_index.get(frames) {
            return id;
        }
        let report = self.report;
        let mut line: Vec<Line> = Vec::with_capacity(frames.len());
        for &frame in frames {
            let frame = spelling::frame(report, frame);
            line.push(self.line(frame));
        }
        if line.is_empty() {
            line.push(self.line(None));
        }
        let id = self.add_location(mapping_id, address, line);
        self.location_index.insert(frames.into(), id);
        id
    }

    /// Returns the location of `frame`, and of what is inlined into it, without names.
    fn address(&mut self, mapping_id: u64, address: u64, frame: FrameId) -> u64 {
        let key: &[FrameId] = &[frame];
        if let Some(&id) = self.location_index.get(key) {
            return id;
        }
        let place = self.report.places.get(frame.0 as usize);
        let module = place.and_then(|place| self.report.modules.get(place.module? as usize));
        let address = module.map_or(address, |module| module.in_file(address));
        let id = self.locations.len() as u64 + 1;
        self.locations.push(Location {
            id,
            mapping_id,
            address,
            line: Vec::new(),
        });
        self.location_index.insert(key.into(), id);
        id
    }

    /// Returns the comments by which Parca converts addresses to those of the file, one for each mapping; none if code has names.
    ///
    /// `executableInfo=` the kind of ELF file; offset and virtual address of its code, all in hexadecimal.
    pub(super) fn executable_infos(&mut self) -> Vec<i64> {
        const EXECUTABLE: u8 = 2;
        const SHARED: u8 = 3;
        if self.symbolized {
            return Vec::new();
        }
        let report = self.report;
        let mut infos = vec![0; report.modules.len()];
        for (module, &mapping) in report.modules.iter().zip(&self.mapping_of) {
            // A program that is not position-independent is where it was linked.
            let kind = if module.start == module.address {
                EXECUTABLE
            } else {
                SHARED
            };
            let (offset, address) = (module.offset, module.address);
            let info = format!("executableInfo={kind:x};{offset:x};{address:x}");
            infos[mapping as usize - 1] = self.texts.number(&info);
        }
        infos
    }

    /// Returns the location that stands for the call stacks of folded samples.
    pub(super) fn others(&mut self) -> u64 {
        if let Some(id) = self.others {
            return id;
        }
        let line = Line {
            function_id: self.function(OTHERS, ""),
            line: 0,
        };
        let id = self.add_location(0, 0, vec![line]);
        self.others = Some(id);
        id
    }

    fn add_location(&mut self, mapping_id: u64, address: u64, line: Vec<Line>) -> u64 {
        let id = self.locations.len() as u64 + 1;
        let (mapping_id, address) = match address {
            0 => (0, self.made_up_address(&line)),
            address => (mapping_id, address),
        };
        self.locations.push(Location {
            id,
            mapping_id,
            address,
            line,
        });
        id
    }

    /// Returns mapping and address of the frame that a location's other frames are inlined into. An address outside its
    /// module's mapping would be looked up in the wrong place, so it has no mapping.
    fn place(&self, frame: Option<FrameId>) -> (u64, u64) {
        let places = &self.report.places;
        let Some(place) = frame.and_then(|FrameId(frame)| places.get(frame as usize)) else {
            return (0, 0);
        };
        let index = place.module.map_or(usize::MAX, |module| module as usize);
        let mapping = match self.report.modules.get(index) {
            Some(module)
                if place.address == 0 || (module.start..module.limit).contains(&place.address) =>
            {
                self.mapping_of[index]
            }
            _ => 0,
        };
        (mapping, place.address)
    }

    /// Returns an address for code whose address is not known. Tools that compare profiles tell locations apart by their
    /// addresses alone, so that it depends on nothing but `lines`. It is above the addresses of all programs, in no mapping,
    /// and positive in a signed number.
    fn made_up_address(&self, lines: &[Line]) -> u64 {
        // FNV-1a (<http://www.isthe.com/chongo/tech/comp/fnv/>): the same in every process, unlike the standard library's.
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut add = |bytes: &[u8]| {
            for &byte in bytes {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        for line in lines {
            let function = self.functions[line.function_id as usize - 1];
            for text in [function.name, function.filename] {
                add(self.texts.list[text as usize].as_bytes());
                // No text has this byte.
                add(&[0xff]);
            }
            add(&line.line.to_le_bytes());
        }
        hash >> 2 | 1 << 62
    }

    fn line(&mut self, frame: Option<Frame>) -> Line {
        let Some(frame) = frame else {
            return Line {
                function_id: self.function(NO_STACK, ""),
                line: 0,
            };
        };
        let report = self.report;
        let name = spelling::function(report, frame);
        let file = spelling::file(report, frame);
        Line {
            function_id: self.function(&name, &file),
            line: i64::from(frame.line),
        }
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let (name, file) = (self.texts.number(name), self.texts.number(file));
        if let Some(&id) = self.function_index.get(&(name, file)) {
            return id;
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.push(Function {
            id,
            name,
            // Left empty: pprof demangles a system name that equals the name, and loses everything between `<` and `>` if
            // the name looks like C++. `<Vec<T> as Extend<T>>::extend` would become `::extend`.
            system_name: 0,
            filename: file,
        });
        self.function_index.insert((name, file), id);
        id
    }
}
