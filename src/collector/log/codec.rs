//! The records in a block. Coder and decoder remember the same facts about earlier records, and forget them at each block's
//! start. Numbers are LEB128 varints; differences are zig-zag coded and wrap.
//!
//! ```text
//! 1 1 a z i i i i  i×8      allocation by a remembered site: the 4 and 8 bits of its entry
//!                           [address] [z = 0: size; else the site's last size]
//! 1 0 a 0 k k k k           allocation by a new site, kind k
//!                           thread, difference of node, size, [address]
//! 0 1 t t t x x x           free; t: 0 the current thread, 1–6 a remembered one, 7 thread follows
//!                           [the low bits of its address's entry; x: the high ones]
//! 0 0 t t t 0 0 s           free, t as before; s = 0: difference of address, s = 1: the address of the record before
//! 1 0 0 1 0 0 0 0           munmap: thread, address, length
//! 1 0 0 1 0 0 0 1           reading: milliseconds, resident bytes
//!
//! address: a = 1: the 11 bits of its entry (a free: 3 in the tag, 8 behind; an allocation: 2 bytes)
//!          a = 0: difference to the address before, both rotated right by 3 bits
//! ```
//!
//! Sites and addresses are remembered in tables addressed by a hash: a record names the entry, and both sides know its
//! content.

use super::super::hash::mix;
use super::LogEntry;
use super::block::invalid;
use crate::capture::event::{Kind, NodeId};
use std::io;

const SITES: usize = 4096;
const ADDRESSES: usize = 2048;
const THREADS: usize = 6;
/// Allocators return multiples of 8, most of 16: the rotation puts the low bits where they cost nothing.
const ALIGNED_BITS: u32 = 3;

const ALLOCATION: u8 = 0x80;
const KNOWN_SITE: u8 = 0x40;
const KNOWN_ADDRESS: u8 = 0x20;
const SAME_SIZE: u8 = 0x10;
const FREE_KNOWN_ADDRESS: u8 = 0x40;
const FREE_SAME_ADDRESS: u8 = 0x01;
const NEW_THREAD: u8 = 7;
const MUNMAP: u8 = 0x90;
const READING: u8 = 0x91;

/// Largest number of bytes of an event's record.
pub(super) const LONGEST: usize = 48;

/// Record that is being written.
#[derive(Debug)]
pub(super) struct Record<'a> {
    room: &'a mut [u8; LONGEST],
    length: usize,
}

impl<'a> Record<'a> {
    #[inline(always)]
    pub(super) fn new(room: &'a mut [u8; LONGEST]) -> Record<'a> {
        Record { room, length: 0 }
    }

    /// Returns the number of bytes written.
    #[inline(always)]
    pub(super) fn length(&self) -> usize {
        self.length
    }

    #[inline(always)]
    fn put_byte(&mut self, byte: u8) {
        self.room[self.length] = byte;
        self.length += 1;
    }

    fn put_bytes(&mut self, bytes: [u8; 2]) {
        bytes.into_iter().for_each(|byte| self.put_byte(byte));
    }

    /// Writes the lowest `bytes` bytes of `word`.
    #[inline(always)]
    fn put_word(&mut self, word: u64, bytes: u32) {
        if let Some(place) = self.room.get_mut(self.length..self.length + 8) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        self.length += bytes as usize;
    }

    fn put(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.put_byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.put_byte(number as u8);
    }
}

/// Bound below which a number's varint has at most 4 bytes.
const SHORT: u64 = 1 << 28;

/// Returns the varint of a number below [`SHORT`], and its length. There is no branch, because the length is hard to
/// predict.
#[inline(always)]
fn varint(number: u64) -> (u64, u32) {
    let more =
        u32::from(number >= 1 << 7) + u32::from(number >= 1 << 14) + u32::from(number >= 1 << 21);
    let bytes = (number & 0x7F)
        | (number & 0x7F << 7) << 1
        | (number & 0x7F << 14) << 2
        | (number & 0x7F << 21) << 3;
    let going_on = 0x80_8080 & ((1 << (8 * more)) - 1);
    (bytes | going_on, more + 1)
}

/// Site of an allocation: thread, call stack and function.
#[derive(Debug, Clone, Copy)]
struct Site {
    thread: u32,
    node: u32,
    kind: Kind,
}

impl Site {
    #[inline(always)]
    fn key(self) -> u64 {
        u64::from(self.thread) << 32 | u64::from(self.node)
    }

    #[inline(always)]
    fn entry(self) -> usize {
        (mix(self.key() ^ (self.kind as u64) << 60) >> 52) as usize % SITES
    }

    #[inline(always)]
    fn is(self, other: Site) -> bool {
        (self.key() == other.key()) & (self.kind as u8 == other.kind as u8)
    }
}

/// State that both sides remember.
#[derive(Debug)]
pub(super) struct Memory {
    sites: Box<[(Site, u64); SITES]>,
    addresses: Box<[u64; ADDRESSES]>,
    threads: [u32; THREADS],
    next_thread: usize,
    thread: u32,
    node: u32,
    address: u64,
}

const NO_SITE: (Site, u64) = (
    Site {
        thread: 0,
        node: 0,
        kind: Kind::Free,
    },
    0,
);

impl Default for Memory {
    fn default() -> Self {
        Memory {
            sites: Box::new([NO_SITE; SITES]),
            addresses: Box::new([0; ADDRESSES]),
            threads: [0; THREADS],
            next_thread: 0,
            thread: 0,
            node: 0,
            address: 0,
        }
    }
}

/// Returns the entry of the table in which an address is remembered.
#[inline]
fn address_entry(address: u64) -> usize {
    (mix(address) >> 53) as usize % ADDRESSES
}

impl Memory {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.sites.fill(NO_SITE);
        self.addresses.fill(0);
        self.threads = [0; THREADS];
        self.next_thread = 0;
        self.thread = 0;
        self.node = 0;
        self.address = 0;
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(self.sites.as_slice()) + size_of_val(self.addresses.as_slice())
    }

    fn remember_thread(&mut self, thread: u32) {
        self.threads[self.next_thread] = thread;
        self.next_thread = (self.next_thread + 1) % THREADS;
        self.thread = thread;
    }

    /// Returns the difference to the address before.
    #[inline]
    fn difference(&mut self, address: u64) -> u64 {
        let rotated = address.rotate_right(ALIGNED_BITS);
        let difference = rotated.wrapping_sub(self.address);
        self.address = rotated;
        zigzag(difference)
    }

    #[inline]
    fn address_at(&mut self, difference: u64) -> u64 {
        self.address = self.address.wrapping_add(unzigzag(difference));
        self.address.rotate_left(ALIGNED_BITS)
    }
}

/// Writes the record of `entry`.
pub(super) fn encode(memory: &mut Memory, entry: &LogEntry, out: &mut Record<'_>) {
    match *entry {
        LogEntry::Allocation {
            thread,
            kind,
            address,
            size,
            node,
            ..
        } => encode_allocation(memory, (thread, node, kind), address, size, out),
        LogEntry::Deallocation {
            thread,
            kind: Kind::Munmap,
            address,
            size,
        } => {
            out.put_byte(MUNMAP);
            out.put(u64::from(thread));
            out.put(memory.difference(address));
            out.put(size);
        }
        LogEntry::Deallocation {
            thread, address, ..
        } => encode_free(memory, thread, address, out),
        LogEntry::Memory { at_ms, rss } => {
            out.put_byte(READING);
            out.put(at_ms);
            out.put(rss);
        }
    }
}

/// Writes the record of an allocation by a thread, from a node, with a function.
#[inline(always)]
pub(super) fn encode_allocation(
    memory: &mut Memory,
    (thread, node, kind): (u32, NodeId, Kind),
    address: u64,
    size: u64,
    out: &mut Record<'_>,
) {
    let node = node.0;
    let site = Site { thread, node, kind };
    let at = address_entry(address);
    let known_address = memory.addresses[at] == address;
    let rotated = address.rotate_right(ALIGNED_BITS);
    let difference = zigzag(rotated.wrapping_sub(memory.address));
    let entry = site.entry();
    let (remembered, last_size) = &mut memory.sites[entry];
    // Nearly all records are of this kind.
    if !remembered.is(site) | (size >= SHORT >> 14) | (!known_address & (difference >= SHORT)) {
        return encode_rare_allocation(memory, site, address, size, out);
    }
    memory.thread = thread;
    // Written only if it changes: the next event mostly reads this field, before a store would be complete.
    let same_size = *last_size == size;
    if !same_size {
        *last_size = size;
    }
    let size_bit = if same_size { SAME_SIZE } else { 0 };
    let address_bit = if known_address { KNOWN_ADDRESS } else { 0 };
    let tag = ALLOCATION | KNOWN_SITE | address_bit | size_bit | (entry >> 8) as u8;
    let (size, size_bytes) = if same_size { (0, 0) } else { varint(size) };
    let (place, place_bytes) = if known_address {
        (at as u64, 2)
    } else {
        memory.addresses[at] = address;
        varint(difference)
    };
    memory.address = rotated;
    let word = u64::from(tag) | (entry as u64 & 0xFF) << 8 | size << 16;
    out.put_word(
        word | place << (16 + 8 * size_bytes),
        2 + size_bytes + place_bytes,
    );
}

#[cold]
fn encode_rare_allocation(
    memory: &mut Memory,
    site: Site,
    address: u64,
    size: u64,
    out: &mut Record<'_>,
) {
    let at = address_entry(address);
    let known_address = memory.addresses[at] == address;
    let address_bit = if known_address { KNOWN_ADDRESS } else { 0 };
    memory.thread = site.thread;
    let entry = site.entry();
    let (remembered, last_size) = &mut memory.sites[entry];
    if remembered.is(site) {
        let same_size = std::mem::replace(last_size, size) == size;
        let size_bit = if same_size { SAME_SIZE } else { 0 };
        let tag = ALLOCATION | KNOWN_SITE | address_bit | size_bit;
        out.put_bytes([tag | (entry >> 8) as u8, entry as u8]);
        if !same_size {
            out.put(size);
        }
    } else {
        out.put_byte(ALLOCATION | address_bit | site.kind as u8);
        out.put(u64::from(site.thread));
        out.put(zigzag(
            u64::from(site.node).wrapping_sub(u64::from(memory.node)),
        ));
        memory.node = site.node;
        out.put(size);
        memory.sites[entry] = (site, size);
    }
    if known_address {
        out.put_bytes((at as u16).to_le_bytes());
        memory.address = address.rotate_right(ALIGNED_BITS);
    } else {
        memory.addresses[at] = address;
        out.put(memory.difference(address));
    }
}

/// Writes the record of a free by `thread`.
#[inline(always)]
pub(super) fn encode_free(memory: &mut Memory, thread: u32, address: u64, out: &mut Record<'_>) {
    let rotated = address.rotate_right(ALIGNED_BITS);
    let at = address_entry(address);
    let known = memory.addresses[at] == address;
    let difference = zigzag(rotated.wrapping_sub(memory.address));
    if (thread != memory.thread) | (difference == 0) | (!known & (difference >= SHORT)) {
        return encode_rare_free(memory, thread, address, out);
    }
    memory.address = rotated;
    if known {
        let tag = u64::from(FREE_KNOWN_ADDRESS) | at as u64 >> 8;
        out.put_word(tag | (at as u64 & 0xFF) << 8, 2);
    } else {
        memory.addresses[at] = address;
        let (place, bytes) = varint(difference);
        out.put_word(place << 8, 1 + bytes);
    }
}

/// Writes the record of the free of the block that the previous record allocates, by the same thread.
#[inline(always)]
pub(super) fn encode_free_at_once(out: &mut Record<'_>) {
    out.put_byte(FREE_SAME_ADDRESS);
}

#[cold]
fn encode_rare_free(memory: &mut Memory, thread: u32, address: u64, out: &mut Record<'_>) {
    let remembered = || memory.threads.iter().position(|&one| one == thread);
    let who = if thread == memory.thread {
        0
    } else {
        remembered().map_or(NEW_THREAD, |at| at as u8 + 1)
    };
    let at = address_entry(address);
    let same = address.rotate_right(ALIGNED_BITS) == memory.address;
    let known = memory.addresses[at] == address;
    if same {
        out.put_byte(FREE_SAME_ADDRESS | who << 3);
    } else if known {
        out.put_bytes([FREE_KNOWN_ADDRESS | who << 3 | (at >> 8) as u8, at as u8]);
    } else {
        out.put_byte(who << 3);
    }
    if who == NEW_THREAD {
        out.put(u64::from(thread));
        memory.remember_thread(thread);
    }
    memory.thread = thread;
    if !same && known {
        memory.address = address.rotate_right(ALIGNED_BITS);
    } else if !same {
        memory.addresses[at] = address;
        out.put(memory.difference(address));
    }
}

/// Takes the next record from `bytes`, which must not be empty. Its thread is the entry of a thread or of a thread in a
/// context.
#[inline]
pub(super) fn decode(memory: &mut Memory, bytes: &mut &[u8]) -> io::Result<LogEntry> {
    let tag = take_byte(bytes)?;
    if tag & ALLOCATION == 0 {
        return decode_free(memory, tag, bytes);
    }
    match tag {
        MUNMAP => {
            let thread = take_u32(bytes)?;
            let difference = take(bytes)?;
            let address = memory.address_at(difference);
            let size = take(bytes)?;
            Ok(LogEntry::Deallocation {
                thread,
                kind: Kind::Munmap,
                address,
                size,
            })
        }
        READING => Ok(LogEntry::Memory {
            at_ms: take(bytes)?,
            rss: take(bytes)?,
        }),
        _ => decode_allocation(memory, tag, bytes),
    }
}

#[inline]
fn decode_allocation(memory: &mut Memory, tag: u8, bytes: &mut &[u8]) -> io::Result<LogEntry> {
    let (site, size) = if tag & KNOWN_SITE != 0 {
        let entry = usize::from(tag & 0x0F) << 8 | usize::from(take_byte(bytes)?);
        let (site, last_size) = memory.sites[entry];
        if !site.kind.is_allocation() {
            return Err(invalid("a site that was not defined before"));
        }
        let size = if tag & SAME_SIZE != 0 {
            last_size
        } else {
            take(bytes)?
        };
        memory.sites[entry].1 = size;
        (site, size)
    } else {
        let kind = allocation_kind(tag & 0x1F).ok_or_else(|| invalid("an unknown record"))?;
        let thread = take_u32(bytes)?;
        let node = u64::from(memory.node).wrapping_add(unzigzag(take(bytes)?));
        let node = u32::try_from(node).map_err(|_| invalid("a number is too large"))?;
        let size = take(bytes)?;
        memory.node = node;
        let site = Site { thread, node, kind };
        memory.sites[site.entry()] = (site, size);
        (site, size)
    };
    let address = if tag & KNOWN_ADDRESS != 0 {
        let entry = usize::from(take_byte(bytes)?) | usize::from(take_byte(bytes)?) << 8;
        known_address(memory, entry)?
    } else {
        new_address(memory, bytes)?
    };
    memory.thread = site.thread;
    Ok(LogEntry::Allocation {
        thread: site.thread,
        context: 0,
        kind: site.kind,
        address,
        size,
        node: NodeId(site.node),
    })
}

#[inline]
fn decode_free(memory: &mut Memory, tag: u8, bytes: &mut &[u8]) -> io::Result<LogEntry> {
    let entry = if tag & FREE_KNOWN_ADDRESS != 0 {
        Some(usize::from(tag & 7) << 8 | usize::from(take_byte(bytes)?))
    } else {
        None
    };
    let same = tag & FREE_KNOWN_ADDRESS == 0 && tag & FREE_SAME_ADDRESS != 0;
    match tag >> 3 & 7 {
        0 => {}
        NEW_THREAD => {
            let thread = take_u32(bytes)?;
            memory.remember_thread(thread);
        }
        who => memory.thread = memory.threads[usize::from(who) - 1],
    }
    let address = match entry {
        Some(entry) => known_address(memory, entry)?,
        None if same => memory.address.rotate_left(ALIGNED_BITS),
        None => new_address(memory, bytes)?,
    };
    Ok(LogEntry::Deallocation {
        thread: memory.thread,
        kind: Kind::Free,
        address,
        size: 0,
    })
}

#[inline]
fn known_address(memory: &mut Memory, entry: usize) -> io::Result<u64> {
    let address = *memory
        .addresses
        .get(entry)
        .ok_or_else(|| invalid("an address that was not defined before"))?;
    memory.address = address.rotate_right(ALIGNED_BITS);
    Ok(address)
}

#[inline]
fn new_address(memory: &mut Memory, bytes: &mut &[u8]) -> io::Result<u64> {
    let difference = take(bytes)?;
    let address = memory.address_at(difference);
    memory.addresses[address_entry(address)] = address;
    Ok(address)
}

fn allocation_kind(number: u8) -> Option<Kind> {
    let kind = Kind::from_byte(number);
    kind.is_allocation().then_some(kind)
}

#[inline]
pub(super) fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

#[inline]
pub(super) fn unzigzag(code: u64) -> u64 {
    (code >> 1) ^ (code & 1).wrapping_neg()
}

#[inline]
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[inline]
pub(super) fn take_byte(bytes: &mut &[u8]) -> io::Result<u8> {
    let (&first, rest) = bytes
        .split_first()
        .ok_or_else(|| invalid("a record is cut"))?;
    *bytes = rest;
    Ok(first)
}

#[inline]
pub(super) fn take(bytes: &mut &[u8]) -> io::Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take_byte(bytes)?;
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(invalid("a number is too large"))
}

#[inline]
pub(super) fn take_u32(bytes: &mut &[u8]) -> io::Result<u32> {
    u32::try_from(take(bytes)?).map_err(|_| invalid("a number is too large"))
}
