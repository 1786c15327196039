//! A run: the lines of one region of memory, a hash table of its own.

use super::slot::{Line, SLOTS, Slot};

/// Numbers of lines that a run can have, by its class. Each is a half or a third more than the one before. The last one has
/// room for a block at each byte of a region.
pub(super) const LINES: [u16; CLASSES] = [
    1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
];
pub(super) const CLASSES: usize = 20;

/// Returns the class of what is left of a run of the class after `class` when a run of `class` is taken from it.
pub(super) fn rest_class(class: usize) -> usize {
    let lines = LINES[class + 1] - LINES[class];
    let rest = LINES.iter().position(|&known| known == lines);
    rest.expect("the numbers of lines differ by such numbers")
}

/// Returns the number of blocks above which a run needs more lines. A run of one line is searched in any case, so it may be full.
#[inline(always)]
pub(super) fn most_blocks(lines: u32) -> u32 {
    lines * 4 + u32::from(lines == 1)
}

/// Returns the line to which the block at an offset belongs, in a run of so many lines.
#[inline(always)]
pub(super) fn home(offset: u32, lines: u32) -> usize {
    // Most addresses are multiples of 8. The factor spreads the others' bits over the upper half of the word.
    let spread = (offset >> 3 ^ offset << 9).wrapping_mul(0x9E37_79B1) >> 16;
    ((spread * lines) >> 16) as usize
}

/// Returns the slot of the block at an offset.
pub(super) fn find(run: &[Line], offset: u32) -> Option<Slot> {
    let home = home(offset, run.len() as u32);
    let line = run.get(home)?;
    let here = line.get(line.position(offset));
    here.or_else(|| {
        let (line, position) = find_beside(run, home, offset)?;
        run[line].get(position)
    })
}

/// Finds a block that is in another line than its own, `home`. Returns that line and the position in it.
fn find_beside(run: &[Line], home: usize, offset: u32) -> Option<(usize, usize)> {
    let farthest = usize::from(run[home].beside.farthest);
    (home + 1..=home + farthest).find_map(|line| {
        let line = line % run.len();
        let position = run[line].position(offset);
        (position < SLOTS).then_some((line, position))
    })
}

/// Inserts a block whose line, `home`, is full or has blocks in other lines. Returns the one that was at its offset.
#[cold]
pub(super) fn insert_beside(run: &mut [Line], home: usize, slot: Slot) -> Option<Slot> {
    if let Some((line, position)) = find_beside(run, home, slot.offset()) {
        let old = run[line].get(position);
        run[line].set(position, slot);
        return old;
    }
    put(run, home, slot);
    None
}

/// Puts a block that is not in the run into its line, `home`, or into the next one that has room.
#[inline(always)]
pub(super) fn put(run: &mut [Line], home: usize, slot: Slot) {
    for further in 0..run.len() {
        let line = &mut run[(home + further) % run.len()];
        let room = line.room();
        if room == SLOTS {
            continue;
        }
        line.set(room, slot);
        if further > 0 {
            let beside = &mut run[home].beside;
            beside.count += 1;
            beside.farthest = beside.farthest.max(further as u16);
        }
        return;
    }
    debug_assert!(false, "a run has room where its owner says so");
}

/// Takes out a block that is not in its line, `home`.
#[cold]
pub(super) fn take_beside(run: &mut [Line], home: usize, offset: u32) -> Option<Slot> {
    let (line, position) = find_beside(run, home, offset)?;
    let beside = &mut run[home].beside;
    beside.count -= 1;
    if beside.count == 0 {
        beside.farthest = 0;
    }
    let slot = run[line].get(position);
    run[line].clear(position);
    slot
}
