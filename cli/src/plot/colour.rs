//! matplotlib's colours.

/// Colours of processes: `k b r g c y m`.
pub(super) const CURVES: [&str; 7] = [
    "#000000", "#0000ff", "#ff0000", "#008000", "#00bfbf", "#bfbf00", "#bf00bf",
];
/// Colours of functions: `c y g r b`.
pub(super) const FUNCTIONS: [&str; 5] = ["#00bfbf", "#bfbf00", "#008000", "#ff0000", "#0000ff"];
pub(super) const TREND: &str = "#00e3d8";
pub(super) const PEAK: &str = "#ff0000";

/// Returns the colour of a flame: red and orange alternate, paler on higher levels.
pub(super) fn flame(level: u32, levels: u32, turn: usize) -> String {
    let saturation = 1.0 - 0.75 * f64::from(level) / f64::from(levels.max(1));
    // Hue 0 or 0.1, full value: red stays full, blue is the rest of the saturation, green lies between.
    let blue = 1.0 - saturation;
    let green = if turn.is_multiple_of(2) {
        blue
    } else {
        1.0 - saturation * 0.4
    };
    let byte = |part: f64| (part * 255.0).round() as u8;
    format!("#ff{:02x}{:02x}", byte(green), byte(blue))
}
