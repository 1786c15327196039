//! The build id in the notes of a module or of a file.

/// Returns the GNU build id in notes (gABI, "Note Section"; type 3 of owner `GNU`).
pub fn find_build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let word = |bytes: &[u8], at: usize| {
        Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
    };
    loop {
        let (name_size, size, kind) = (word(notes, 0)?, word(notes, 4)?, word(notes, 8)?);
        let content = 12 + name_size.next_multiple_of(4);
        let found = notes.get(content..content.checked_add(size)?)?;
        if kind == NT_GNU_BUILD_ID as usize && notes.get(12..16) == Some(b"GNU\0") {
            return Some(found);
        }
        notes = notes.get(content + size.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found_behind_other_notes() {
        let mut notes = Vec::new();
        let mut note = |name: &[u8], kind: u32, content: &[u8]| {
            for word in [name.len() as u32, content.len() as u32, kind] {
                notes.extend(word.to_ne_bytes());
            }
            for part in [name, content] {
                notes.extend(part);
                notes.resize(notes.len().next_multiple_of(4), 0);
            }
        };
        note(b"stapsdt\0", 3, b"abcde");
        note(b"GNU\0", 1, b"1234");
        note(b"GNU\0", 3, b"the id");
        assert_eq!(find_build_id(&notes), Some(&b"the id"[..]));
        for cut in 0..notes.len() - 2 {
            assert_eq!(find_build_id(&notes[..cut]), None);
        }
    }
}
