//! Pages from templates: text with slots such as `{{title}}`.

use std::io::{self, Write};

/// Writes `template` to `out`, and replaces each slot by what `fill` writes for the slot's name.
///
/// # Panics
/// Panics if a slot is not closed: templates are part of the program, and tests fill each.
pub(crate) fn write<W: Write>(
    template: &str,
    out: &mut W,
    mut fill: impl FnMut(&str, &mut W) -> io::Result<()>,
) -> io::Result<()> {
    let mut rest = template;
    while let Some((text, after)) = rest.split_once("{{") {
        out.write_all(text.as_bytes())?;
        let (slot, after) = after
            .split_once("}}")
            .expect("every slot of the template is closed");
        fill(slot, out)?;
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_slot_is_filled_and_all_else_stays() {
        let mut page = Vec::new();
        super::write("a{{x}}{ {{y}}}", &mut page, |slot, out| {
            std::io::Write::write_all(out, slot.to_uppercase().as_bytes())
        })
        .unwrap();
        assert_eq!(page, b"aX{ Y}");
    }
}
