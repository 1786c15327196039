//! Tests of the table against maps, and of its cost.

use super::slot::{BESIDE, BESIDE_MOST, BESIDE_SHIFT, LARGE, Slot};
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
fn places_are_as_many_as_addresses() {
    let near = (0..1u64 << 16).map(|low| 0x7f12_3400_0000 + low);
    let bits = (0..48).map(|bit| 1u64 << bit);
    let places: HashSet<_> = near
        .chain(bits)
        .map(Place::of)
        .map(|place| (place.shard(), place.key()))
        .collect();
    assert_eq!(places.len(), (1 << 16) + 48);
    assert!(
        places
            .iter()
            .all(|place| place.1 >> (ADDRESS_BITS - SHARD_BITS) == 0)
    );
    for address in [0, 1 << 48, u64::MAX] {
        assert_eq!(Place::of(address).key(), 0);
    }
    assert_ne!(Place::of(ADDRESSES).key(), 0);
}

#[test]
fn a_live_block_costs_forty_bytes_at_most_and_a_dead_one_nothing() {
    let mut table = LiveTable::default();
    let address = |number: u64| 0x7f00_0000_0000 + number * 48;
    for number in 0..200_000 {
        insert(&mut table, address(number), block(40, 1));
        if number % 5_000 == 4_999 {
            let each = table.memory_bytes() as f64 / table.len() as f64;
            assert!(each <= 38.0, "{each} bytes a block at {number}");
        }
    }
    for number in 0..200_000 {
        assert!(remove(&mut table, address(number)).is_some());
    }
    assert!(table.memory_bytes() <= 200_000);
}

#[test]
fn regular_addresses_do_not_crowd() {
    for stride in [16, 48, 1040, 4096, 4112, 65536, 1 << 20, 15_792] {
        let mut table = LiveTable::default();
        for number in 0..40_000 {
            insert(&mut table, 0x5500_0000_0010 + number * stride, block(8, 1));
        }
        let far: usize = table.shards.iter().map(|shard| shard.far.len()).sum();
        assert!(far < 400, "stride {stride}: {far}");
    }
}

fn insert(table: &mut LiveTable, address: u64, block: Block) -> Option<Block> {
    table.insert(Place::of(address), address, block)
}

fn remove(table: &mut LiveTable, address: u64) -> Option<Block> {
    table.remove(Place::of(address), address)
}

/// Returns whether each line counts its blocks beside it, and no others.
fn counts_are_right(shard: &Shard) -> bool {
    let mut beside = vec![0; shard.lines().len()];
    for (at, line) in shard.lines().iter().enumerate() {
        for key in line.iter().map(|slot| slot[0] >> KEY_SHIFT) {
            let home = shard.line(key);
            beside[home] += u64::from(key != 0 && home != at);
        }
    }
    for &key in shard.far.keys() {
        beside[shard.line(key)] += 1;
    }
    let counts = |slot: &Slot| (slot[0] & BESIDE) >> BESIDE_SHIFT;
    shard.lines().iter().zip(beside).all(|(line, beside)| {
        let first = counts(&line[0]);
        let only_there = line[1..].iter().all(|slot| counts(slot) == 0);
        (first == beside || first == BESIDE_MOST) && only_there
    })
}

fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => (0u64..4000).prop_map(|n| 0x7f00_0000_0000 + n * 16),
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
            let seen = table.site(Place::of(address));
            prop_assert!(seen.is_none() || seen == model.get(&address).map(|block| block.site));
            prop_assert_eq!(table.len(), model.len());
        }
        prop_assert!(table.shards.iter().all(counts_are_right));
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
    }
}
