//! Tests of the table against maps, and of its cost.

use super::*;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

fn block(size: u64, site: u32) -> Block {
    Block {
        size,
        site: SiteId(site),
        birth: Birth::at_ms(size),
    }
}

#[test]
fn each_region_has_a_place() {
    let mut index = Index::new();
    let near = (0..1u64 << 12).map(|number| 0x7f12_3400_0000 + (number << 12));
    let bits = (0..48).map(|bit| 1u64 << bit);
    let addresses: Vec<_> = near.chain(bits).chain([ADDRESSES]).collect();
    for &address in &addresses {
        let place = index.add(address).unwrap();
        assert_eq!(index.place(address), place);
        assert_eq!(index.add(address), Some(place));
    }
    let places: HashSet<_> = addresses.iter().map(|&at| index.place(at).0).collect();
    let regions: HashSet<_> = addresses.iter().map(|at| at >> OFFSET_BITS).collect();
    assert_eq!(places.len(), regions.len());
    assert!(!places.contains(&0));
    for address in [0, 1 << 48, u64::MAX] {
        assert_eq!(
            (index.place(address), index.add(address)),
            (Place::NONE, None)
        );
    }
}

#[test]
fn a_live_block_costs_thirty_bytes_at_most_and_a_dead_one_nothing() {
    let mut table = LiveTable::default();
    let address = |number: u64| 0x7f00_0000_0000 + number * 48;
    for number in 0..200_000 {
        insert(&mut table, address(number), block(40, 1));
        if number > 20_000 && number % 5_000 == 0 {
            let each = table.memory_bytes() as f64 / table.len() as f64;
            assert!(each <= 30.0, "{each} bytes a block at {number}");
        }
    }
    // Every fourth block of each region stays.
    for number in (0..200_000).filter(|number| number % 4 != 0) {
        assert!(remove(&mut table, address(number)).is_some());
    }
    let each = table.memory_bytes() as f64 / table.len() as f64;
    assert!(each <= 75.0, "{each} bytes a block");
    for number in (0..200_000).step_by(4) {
        assert!(remove(&mut table, address(number)).is_some());
    }
    assert!(table.memory_bytes() <= 200_000, "{}", table.memory_bytes());
}

#[test]
fn regular_addresses_do_not_crowd() {
    for stride in [8, 16, 32, 48, 1040, 4096, 4112, 65536, 1 << 20, 15_792] {
        let mut table = LiveTable::default();
        for number in 0..40_000 {
            insert(&mut table, 0x5500_0000_0010 + number * stride, block(8, 1));
        }
        let count = |line: &Line| usize::from(line.beside.count);
        let beside: usize = lines(&table).iter().map(count).sum();
        assert!(beside < 6_000, "stride {stride}: {beside}");
    }
}

#[test]
fn what_is_left_of_a_run_is_a_run() {
    for class in 0..run::CLASSES - 1 {
        let rest = run::LINES[run::rest_class(class)];
        assert_eq!(run::LINES[class] + rest, run::LINES[class + 1]);
    }
}

#[test]
fn a_region_has_room_for_a_block_at_each_address() {
    let mut table = LiveTable::default();
    for round in 0..2 {
        for number in 0..4096 {
            let old = insert(&mut table, 0x7f00_0000_0000 + number, block(number, round));
            assert_eq!(old, (round == 1).then(|| block(number, 0)));
        }
    }
    assert_eq!(table.len(), 4096);
    check(&table);
}

#[test]
fn a_heap_that_changes_for_long_stays_within_its_bounds() {
    let mut table = LiveTable::default();
    let mut live = Vec::new();
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    for _ in 0..400_000 {
        // Regions become full and sparse again and again.
        if live.len() < 20_000 || random(2) == 0 && live.len() < 60_000 {
            let address = 0x7f00_0000_0000 + random(1_000_000) * 16;
            if insert(&mut table, address, block(16, 1)).is_none() {
                live.push(address);
            }
        } else {
            let at = random(live.len() as u64) as usize;
            assert!(remove(&mut table, live.swap_remove(at)).is_some());
        }
    }
    assert_eq!(table.len(), live.len());
    let each = table.memory_bytes() as f64 / 60_000.0;
    assert!(each <= 40.0, "{each} bytes for each of the most blocks");
    check(&table);
}

#[test]
fn a_region_that_swings_keeps_its_run() {
    let mut table = LiveTable::default();
    let address = |number: u64| 0x7f00_0000_0000 + number * 16;
    let lines_of = |table: &LiveTable| table.index.region(table.place(address(0))).lines();
    let mut sizes = Vec::new();
    for _ in 0..3 {
        (0..200).for_each(|number| _ = insert(&mut table, address(number), block(16, 1)));
        sizes.push(lines_of(&table));
        (50..200).for_each(|number| _ = remove(&mut table, address(number)));
        sizes.push(lines_of(&table));
    }
    // Only the first time it shrinks.
    assert_eq!(sizes, [64, 24, 64, 64, 64, 64]);
    (10..50).for_each(|number| _ = remove(&mut table, address(number)));
    assert_eq!(lines_of(&table), 12);
    (0..10).for_each(|number| _ = remove(&mut table, address(number)));
    assert_eq!(lines_of(&table), 0);
    check(&table);
    insert(&mut table, address(0), block(16, 1));
    assert_eq!(lines_of(&table), 8);
    check(&table);
}

#[test]
fn blocks_for_which_there_is_no_page_are_in_a_map() {
    let mut table = LiveTable::default();
    let address = |number: u64| 0x7f00_0000_0000 + number * 16;
    for number in 0..100 {
        insert(&mut table, address(number), block(number, 1));
    }
    table.pools.iter_mut().for_each(|pool| pool.refuses = true);
    for number in 50..400 {
        let old = insert(&mut table, address(number), block(number, 2));
        assert_eq!(old, (number < 100).then(|| block(number, 1)));
    }
    assert!(!table.far.is_empty());
    assert_eq!((table.len(), table.blocks().count()), (400, 400));
    for number in 0..400 {
        let site = if number < 50 { 1 } else { 2 };
        assert!(table.contains(address(number)));
        assert!(table.may_have(table.place(address(number)), address(number)));
        assert_eq!(
            remove(&mut table, address(number)),
            Some(block(number, site))
        );
    }
    assert_eq!(table.len(), 0);
}

fn insert(table: &mut LiveTable, address: u64, block: Block) -> Option<Block> {
    table.insert(table.place(address), address, block)
}

fn remove(table: &mut LiveTable, address: u64) -> Option<Block> {
    table.remove(table.place(address), address)
}

fn lines(table: &LiveTable) -> Vec<Line> {
    runs(table).concat()
}

fn runs(table: &LiveTable) -> Vec<Vec<Line>> {
    let leaves = table.index.leaves().enumerate();
    let runs = leaves.flat_map(|(leaf, regions)| {
        let pool = &table.pools[leaf % POOLS];
        regions.iter().map(|&region| pool.run(region).to_vec())
    });
    runs.collect()
}

/// Checks that each region counts its blocks, each line those that are elsewhere, and each pool its free lines.
fn check(table: &LiveTable) {
    let regions = table.index.leaves().flatten();
    for (region, run) in regions.zip(runs(table)) {
        let mut beside = vec![Vec::new(); run.len()];
        let mut blocks = 0;
        for (at, line) in run.iter().enumerate() {
            for slot in line.used() {
                blocks += 1;
                let home = run::home(slot.offset(), region.lines());
                if home != at {
                    beside[home].push((at + run.len() - home) % run.len());
                }
            }
        }
        assert_eq!(region.blocks(), blocks);
        for (line, beside) in run.iter().zip(beside) {
            assert_eq!(usize::from(line.beside.count), beside.len());
            let farthest = beside.iter().max().copied().unwrap_or_default();
            assert!(usize::from(line.beside.farthest) >= farthest);
        }
    }
    for (number, pool) in table.pools.iter().enumerate() {
        let leaves = table.index.leaves().skip(number).step_by(POOLS);
        let lines: usize = leaves.flatten().map(|region| region.lines() as usize).sum();
        assert_eq!(lines + pool.free_lines, pool.used());
    }
}

fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => (0u64..4000).prop_map(|n| 0x7f00_0000_0000 + n * 16),
        2 => (0u64..4000).prop_map(|n| 0x7f00_0000_0000 + n),
        1 => 0u64..3,
        1 => (0u64..3).prop_map(|n| (1 << 48) - 2 + n),
        1 => (0u64..3).prop_map(|n| u64::MAX - n),
    ]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..100,
        LARGE - 2..LARGE + 2,
        (1u64 << 32)..(1 << 40),
        Just(u64::MAX)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn it_behaves_as_a_map(
        filled in 0u64..12_000,
        steps in prop::collection::vec((0u8..5, address(), size(), 0u32..1 << SiteId::BITS), 0..3000),
    ) {
        let (mut table, mut model) = (LiveTable::default(), HashMap::new());
        for number in 0..filled {
            let address = 0x7f00_0000_0000 + number * 16;
            prop_assert_eq!(insert(&mut table, address, block(number, 7)), model.insert(address, block(number, 7)));
        }
        for (what, address, size, site) in steps {
            if what < 3 {
                prop_assert_eq!(insert(&mut table, address, block(size, site)), model.insert(address, block(size, site)));
            } else {
                prop_assert_eq!(remove(&mut table, address), model.remove(&address));
            }
            prop_assert_eq!(table.contains(address), model.contains_key(&address));
            let place = table.place(address);
            prop_assert!(table.may_have(place, address) || !model.contains_key(&address));
            let seen = table.site(place, address);
            prop_assert!(seen.is_none() || seen == model.get(&address).map(|block| block.site));
            prop_assert_eq!(table.len(), model.len());
        }
        check(&table);
        let columns = |block: Block| (block.site, block.birth, block.size);
        let mut blocks: Vec<_> = table.blocks().map(columns).collect();
        let mut expected: Vec<_> = model.values().copied().map(columns).collect();
        blocks.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(blocks, expected);
        for (&address, block) in &model {
            prop_assert_eq!(remove(&mut table, address), Some(*block));
        }
        prop_assert_eq!(table.len() + table.large.len() + table.far.len(), 0);
        check(&table);
    }
}
