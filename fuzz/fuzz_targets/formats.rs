//! Every format can be written for any report that can be read.
#![no_main]

use heapray_report::formats::{Format, Options};
use heapray_report::memray::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(capture) = read(bytes) else {
        return;
    };
    for &format in Format::ALL {
        let mut written = Vec::new();
        format
            .write(&capture.report, &Options::default(), &mut written)
            .expect("memory takes everything");
        if format.is_text() {
            std::str::from_utf8(&written).expect("a text is UTF-8");
        }
    }
});
