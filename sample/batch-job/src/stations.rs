//! The measurements: made up, and always the same.

/// What one station measured at one time.
#[derive(Debug, Clone)]
pub(crate) struct Measurement {
    pub(crate) station: String,
    pub(crate) celsius: f64,
}

/// The text that a job like this would read from a file: a line each measurement.
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
