//! The measurements: made up, and the same in every run.

/// Measurement of one station at one time.
#[derive(Debug, Clone)]
pub(crate) struct Measurement {
    pub(crate) station: String,
    pub(crate) celsius: f64,
}

/// Returns the text that such a job would read from a file: one line per measurement.
pub(crate) fn text(lines: usize) -> String {
    let mut text = String::new();
    let mut random = 1_u64;
    for _ in 0..lines {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let (station, tenths) = (random >> 33 & 63, (random >> 40) % 400);
        text += &format!("station {station:02};{}.{}\n", tenths / 10, tenths % 10);
    }
    text
}
