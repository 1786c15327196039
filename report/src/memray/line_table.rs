//! Finds the line of an instruction in CPython's line tables: captures of Python programs have no line numbers (capture
//! format, section 3.3). The three parsers are those of memray's `compat.cpp`.

/// Returns the line of the instruction at `offset`; 0 if the table does not have it.
pub(super) fn line(python_version: i32, table: &[u8], first_line: i32, offset: i64) -> i32 {
    let Ok(offset) = u64::try_from(offset) else {
        return 0;
    };
    if table.is_empty() {
        0
    } else if python_version >= 0x030B_0000 {
        line_3_11(table, first_line, offset / 2).unwrap_or(0)
    } else if python_version >= 0x030A_0000 {
        line_3_10(table, first_line, offset * 2)
    } else {
        line_3_9(table, first_line, offset)
    }
}

/// Parses tables of Python 3.11 and later: entries of `1kkkklll`, kind k, l + 1 code units.
fn line_3_11(table: &[u8], first_line: i32, unit: u64) -> Option<i32> {
    let mut bytes = table.iter().copied();
    let mut line = first_line;
    let mut end = 0u64;
    loop {
        let first = bytes.next().filter(|&byte| byte != 0)?;
        end += u64::from(first & 7) + 1;
        match (first >> 3) & 15 {
            15 => {} // no line
            14 => {
                line = line.wrapping_add(signed(&mut bytes)?);
                for _ in 0..3 {
                    varint(&mut bytes)?;
                }
            }
            13 => line = line.wrapping_add(signed(&mut bytes)?),
            kind @ 10..=12 => {
                line = line.wrapping_add(i32::from(kind) - 10);
                bytes.next()?;
                bytes.next()?;
            }
            _ => {
                bytes.next()?;
            }
        }
        if end > unit {
            return Some(line);
        }
    }
}

/// Reads groups of six bits, low first; bit 6 is set if another one follows.
fn varint(bytes: &mut impl Iterator<Item = u8>) -> Option<u32> {
    let mut value = 0u32;
    for shift in (0u32..).step_by(6) {
        let byte = bytes.next()?;
        value |= u32::from(byte & 63).checked_shl(shift).unwrap_or(0);
        if byte & 64 == 0 {
            break;
        }
    }
    Some(value)
}

fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i32> {
    let value = varint(bytes)?;
    let size = (value >> 1) as i32;
    Some(if value & 1 == 1 { -size } else { size })
}

/// Parses tables of Python 3.10: pairs of bytes of code and lines. A line of -128 means "no line".
fn line_3_10(table: &[u8], first_line: i32, offset: u64) -> i32 {
    let (mut line, mut at) = (first_line, 0u64);
    for pair in table.chunks_exact(2) {
        at += u64::from(pair[0]);
        let lines = pair[1] as i8;
        if lines != i8::MIN {
            line = line.wrapping_add(i32::from(lines));
        }
        if at > offset {
            break;
        }
    }
    line
}

/// Parses tables of Python 3.9 and earlier: `co_lnotab`.
fn line_3_9(table: &[u8], first_line: i32, offset: u64) -> i32 {
    let (mut line, mut at) = (first_line, 0u64);
    for pair in table.chunks_exact(2) {
        at += u64::from(pair[0]);
        if at > offset {
            break;
        }
        line = line.wrapping_add(i32::from(pair[1] as i8));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PYTHON_3_11: i32 = 0x030B_00F0;

    #[test]
    fn the_table_of_one_line_is_that_line() {
        assert_eq!(line(PYTHON_3_11, &[0xE8, 0], 42, 0), 42);
        assert_eq!(line(PYTHON_3_11, &[0xE8, 0], 42, 2), 0);
        assert_eq!(line(PYTHON_3_11, &[], 42, 0), 0);
        assert_eq!(line(PYTHON_3_11, &[0xE8, 0], 42, -1), 0);
    }

    #[test]
    fn a_real_table_of_python_3_11_gives_its_lines() {
        // def f(x):
        //     y = [x]
        //     z = (y +
        //          [2])
        //     return z
        // as CPython 3.11 compiles it; lines as its dis.findlinestarts gives them
        let table = [
            0x80, 0x00, 0xd8, 0x09, 0x0a, 0x88, 0x03, 0x80, 0x41, 0xd8, 0x09, 0x0a, 0xd8, 0x0a,
            0x0b, 0x88, 0x13, 0xf1, 0x03, 0x01, 0x0a, 0x0d, 0x80, 0x41, 0xe0, 0x0b, 0x0c, 0x80,
            0x48,
        ];
        let lines = [0, 2, 8, 10, 14, 20].map(|at| line(PYTHON_3_11, &table, 1, at));
        assert_eq!(lines, [1, 2, 3, 4, 3, 5]);
    }

    #[test]
    fn older_tables_step_by_pairs() {
        assert_eq!(line(0x030A_0000, &[4, 1, 4, 2], 10, 0), 11);
        assert_eq!(line(0x030A_0000, &[4, 1, 4, 2], 10, 2), 13);
        assert_eq!(line(0x0309_0000, &[4, 1, 4, 2], 10, 3), 10);
        assert_eq!(line(0x0309_0000, &[4, 1, 4, 2], 10, 5), 11);
    }

    proptest! {
        #[test]
        fn no_table_is_too_strange(
            version in prop::sample::select(vec![0x0309_0000, 0x030A_0000, PYTHON_3_11]),
            table: Vec<u8>, first: i32, offset: i64,
        ) {
            line(version, &table, first, offset);
        }
    }
}
