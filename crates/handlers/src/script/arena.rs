//! The memory of one JavaScript engine: a region that can be put back, byte for byte, to what it once was.
//!
//! Everything that the engine allocates lies in the region, and so do the books of this allocator. [`Arena::keep`]
//! copies what is in use; [`Arena::restore`] copies it back. Whatever a script did to its globals, to the engine's
//! lists after an out-of-memory (upstream issue 1181), or to the random numbers is undone by that, and faster than a
//! new context could be made.

#![expect(unsafe_code, reason = "an allocator for a C library hands out raw memory")]

use rquickjs::allocator::Allocator;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::io;
use std::mem::size_of;
use std::ptr::{self, null_mut};

/// Blocks up to this size have a list for every size.
const SMALL: usize = 8 * 1024;
const GRAIN: usize = 16;
const SMALL_CLASSES: usize = SMALL / GRAIN;
/// The smallest page that a system has.
const PAGE: usize = 4096;
/// Above it there are eight lists between two powers of two.
const STEPS: usize = 8;
const CLASSES: usize = SMALL_CLASSES + STEPS * 18;
/// In front of each block: its class.
const HEAD: usize = 8;
/// What an engine takes before it has run anything, about.
const FIRST: usize = 192 * 1024;
/// More than this is given back to the system at a restore.
const KEPT: usize = 1024 * 1024;

/// The allocator's books, at the start of the region.
#[repr(C)]
struct Books {
    /// Where the untouched part begins, as an offset.
    top: usize,
    /// How far the untouched part was ever touched since the last restore.
    high: usize,
    /// Bytes handed out.
    live: usize,
    /// The most that may be handed out.
    most: usize,
    /// Where the untouched part may not grow to: bounds what is lost between freed blocks.
    end: usize,
    /// Something was refused.
    refused: bool,
    /// Free blocks of each class, as a list through their first words.
    free: [*mut u8; CLASSES],
}

/// A region of memory. It is never given back: whoever makes one keeps it for the process's life.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arena {
    base: *mut u8,
    size: usize,
}

/// What was in an arena.
#[derive(Debug)]
pub(super) struct Image(Vec<u8>);

impl Image {
    /// How large the copy is.
    pub(super) fn size(&self) -> usize {
        self.0.len()
    }
}

impl Arena {
    /// Reserves a region; memory is taken only as it is touched.
    pub(super) fn new(size: usize) -> io::Result<Arena> {
        // SAFETY: a new anonymous mapping at a place that the kernel chooses overlaps nothing.
        let base = unsafe {
            mmap_anonymous(
                null_mut(),
                size,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let arena = Arena { base: base.cast(), size };
        populate(arena.base, FIRST.min(size));
        let top = size_of::<Books>().next_multiple_of(GRAIN).saturating_add(HEAD);
        // SAFETY: the mapping is page aligned, zeroed and larger than the books; all-zero books are valid.
        let books = unsafe { arena.books() };
        books.top = top;
        books.high = top;
        books.most = usize::MAX;
        books.end = size;
        Ok(arena)
    }

    /// The allocator for the engine.
    pub(super) fn heap(&self) -> Heap {
        Heap(*self)
    }

    /// Allows this many bytes beyond what is in use now, and forgets that something was refused.
    pub(super) fn allow(&self, more: usize) {
        // SAFETY: one thread uses the arena, and no other reference to the books is alive.
        let books = unsafe { self.books() };
        books.most = books.live.saturating_add(more);
        books.end = books.top.saturating_add(more.saturating_mul(4)).min(self.size);
        books.refused = false;
    }

    /// Was something refused since the last [`Arena::allow`]?
    pub(super) fn refused(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.books() }.refused
    }

    /// Copies what is in use.
    pub(super) fn keep(&self) -> Image {
        // SAFETY: as above; everything below `top` is mapped and was written or is zero.
        let used = unsafe { std::slice::from_raw_parts(self.base, self.books().top) };
        let mut copy = Vec::with_capacity(used.len());
        populate(copy.as_mut_ptr(), used.len());
        copy.extend_from_slice(used);
        Image(copy)
    }

    /// Puts the region back to what it was at [`Arena::keep`].
    ///
    /// # Safety
    /// The image is of this arena, and nothing that lives in the arena is used by anybody who got it after the image
    /// was made.
    pub(super) unsafe fn restore(&self, image: &Image) {
        // SAFETY: as above.
        let high = unsafe { self.books() }.high;
        let used = image.0.len();
        // SAFETY: the image is not longer than the region that it is a copy of.
        unsafe { ptr::copy_nonoverlapping(image.0.as_ptr(), self.base, used) };
        let mut end = high;
        if high.saturating_sub(used) > KEPT {
            end = used.saturating_add(KEPT).next_multiple_of(64 * 1024);
            let rest = high.saturating_sub(end);
            if rest > 0 {
                // SAFETY: the range lies in the mapping; it is read as zeros afterwards, and nobody holds anything
                // in it. If the kernel refuses, old bytes stay in memory that counts as free.
                let _ = unsafe { madvise(self.base.add(end).cast(), rest, Advice::LinuxDontNeed) };
            }
        }
        // what one tenant's script left is not for the next one's
        let rest = end.min(high).saturating_sub(used);
        // SAFETY: the range lies between the image's end and what was ever touched.
        unsafe { ptr::write_bytes(self.base.add(used), 0, rest) };
        // SAFETY: as above; the image's own mark is of when it was made.
        unsafe { self.books() }.high = used;
    }

    /// # Safety
    /// One thread uses the arena, and no two results are alive at once.
    unsafe fn books<'a>(&self) -> &'a mut Books {
        // SAFETY: the books stand at the start of the mapping, which is never given back.
        unsafe { &mut *self.base.cast::<Books>() }
    }
}

/// Takes the whole pages of a range from the system at once, because each that is taken by touching it costs a fault.
fn populate(start: *mut u8, len: usize) {
    let skipped = start.align_offset(PAGE);
    let whole = len.saturating_sub(skipped) / PAGE * PAGE;
    if whole > 0 && skipped < len {
        // SAFETY: the range lies within what the caller has; its bytes stay as they are. An older kernel refuses, and then
        // each page is taken when it is touched.
        let _ = unsafe { madvise(start.wrapping_add(skipped).cast(), whole, Advice::LinuxPopulateWrite) };
    }
}

/// The allocator that the engine sees.
pub(super) struct Heap(Arena);

impl Heap {
    fn take(&mut self, size: usize) -> *mut u8 {
        let Some((class, whole)) = class_of(size) else { return null_mut() };
        // SAFETY: the engine calls from one thread, one call at a time.
        let books = unsafe { self.0.books() };
        let payload = whole.saturating_sub(HEAD);
        let live = books.live.saturating_add(payload);
        if live > books.most {
            books.refused = true;
            return null_mut();
        }
        let Some(list) = books.free.get_mut(class) else { return null_mut() };
        let block = *list;
        if !block.is_null() {
            // SAFETY: a free block's first word is the next one of its list.
            *list = unsafe { block.cast::<*mut u8>().read() };
            books.live = live;
            return block;
        }
        let end = books.top.saturating_add(whole);
        if end > books.end {
            books.refused = true;
            return null_mut();
        }
        // SAFETY: `top` is 8 below a multiple of 16 and the block ends within the mapping.
        let head = unsafe { self.0.base.add(books.top) };
        books.top = end;
        books.high = books.high.max(end);
        books.live = live;
        // SAFETY: the head is 8 bytes, aligned to 8.
        unsafe {
            head.cast::<usize>().write(class);
            head.add(HEAD)
        }
    }
}

// SAFETY: blocks are disjoint, aligned to 16, and at least as large as asked for; `usable_size` reads the class that
// `take` wrote in front of the block.
unsafe impl Allocator for Heap {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        self.take(size)
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let Some(bytes) = count.checked_mul(size) else { return null_mut() };
        let block = self.take(bytes);
        if !block.is_null() {
            // SAFETY: the block has at least this many bytes.
            unsafe { ptr::write_bytes(block, 0, bytes) };
        }
        block
    }

    unsafe fn dealloc(&mut self, block: *mut u8) {
        // SAFETY: the block is one of ours, so its class stands in front of it.
        let class = unsafe { block.sub(HEAD).cast::<usize>().read() };
        // SAFETY: the engine calls from one thread, one call at a time.
        let books = unsafe { self.0.books() };
        books.live = books.live.saturating_sub(size_of_class(class).saturating_sub(HEAD));
        if let Some(list) = books.free.get_mut(class) {
            // SAFETY: the smallest block has room for a pointer.
            unsafe { block.cast::<*mut u8>().write(*list) };
            *list = block;
        }
    }

    unsafe fn realloc(&mut self, block: *mut u8, size: usize) -> *mut u8 {
        if block.is_null() {
            return self.take(size);
        }
        if size == 0 {
            // SAFETY: as the caller promises.
            unsafe { self.dealloc(block) };
            return null_mut();
        }
        // SAFETY: as the caller promises.
        let has = unsafe { Self::usable_size(block) };
        if size <= has && size >= has / 2 {
            return block;
        }
        let new = self.take(size);
        if !new.is_null() {
            // SAFETY: both blocks have at least this many bytes and are disjoint.
            unsafe {
                ptr::copy_nonoverlapping(block, new, has.min(size));
                self.dealloc(block);
            }
        }
        new
    }

    unsafe fn usable_size(block: *mut u8) -> usize {
        // SAFETY: the block is one of ours, so its class stands in front of it.
        let class = unsafe { block.sub(HEAD).cast::<usize>().read() };
        size_of_class(class).saturating_sub(HEAD)
    }
}

/// The class of a block with room for this many bytes, and the size of such a block with its head.
fn class_of(size: usize) -> Option<(usize, usize)> {
    let whole = size.checked_add(HEAD)?.checked_next_multiple_of(GRAIN)?.max(2 * GRAIN);
    if whole <= SMALL {
        return Some((whole / GRAIN - 1, whole));
    }
    let power = usize::BITS - 1 - whole.saturating_sub(1).leading_zeros();
    let base = 1usize.checked_shl(power)?;
    let step = base / STEPS;
    let nth = whole.saturating_sub(base).div_ceil(step);
    let row = usize::try_from(power).ok()?.saturating_sub(13);
    let class = SMALL_CLASSES + row * STEPS + nth.saturating_sub(1);
    (class < CLASSES).then(|| (class, size_of_class(class)))
}

fn size_of_class(class: usize) -> usize {
    match class.checked_sub(SMALL_CLASSES) {
        None => (class + 1) * GRAIN,
        Some(large) => {
            let base = SMALL << (large / STEPS);
            base + base / STEPS * (large % STEPS + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_what_was_asked_for() {
        for size in (0..20_000).chain([65_535, 65_536, 1 << 20, (1 << 20) + 1, 100 << 20]) {
            let (class, whole) = class_of(size).unwrap();
            assert_eq!(size_of_class(class), whole, "{size}");
            assert!(whole >= size + HEAD && whole % GRAIN == 0, "{size}: {whole}");
            assert!(whole <= (size + HEAD + 32).max((size + HEAD) / 7 * 8 + GRAIN), "{size}: {whole}");
        }
        assert_eq!(class_of(usize::MAX), None);
        assert_eq!(class_of(1 << 40), None);
    }

    #[test]
    fn an_arena_is_put_back() {
        let arena = Arena::new(64 << 20).unwrap();
        let mut heap = arena.heap();
        let first = heap.alloc(100);
        // SAFETY: the block is that large.
        unsafe { first.write_bytes(7, 100) };
        let image = arena.keep();
        let second = heap.alloc(10 << 20);
        assert!(first.addr().is_multiple_of(16) && second.addr().is_multiple_of(16));
        // SAFETY: both blocks are that large, and nobody uses them after the restore.
        unsafe {
            first.write_bytes(8, 100);
            second.write_bytes(9, 10 << 20);
            heap.dealloc(first);
            arena.restore(&image);
            assert_eq!(std::slice::from_raw_parts(first, 100), [7; 100]);
            assert!(std::slice::from_raw_parts(second, 10 << 20).iter().all(|byte| *byte == 0));
        }
        assert_eq!(heap.alloc(10 << 20), second);
    }

    #[test]
    fn the_limit_holds_and_is_told() {
        let arena = Arena::new(64 << 20).unwrap();
        let mut heap = arena.heap();
        arena.allow(1 << 20);
        let mut blocks = Vec::new();
        while blocks.len() < 1000 {
            let block = heap.alloc(10_000);
            if block.is_null() {
                break;
            }
            blocks.push(block);
        }
        assert!((90..=104).contains(&blocks.len()), "{}", blocks.len());
        assert!(arena.refused());
        for block in blocks {
            // SAFETY: it is one of ours.
            unsafe { heap.dealloc(block) };
        }
        arena.allow(1 << 20);
        assert!(!arena.refused() && !heap.alloc(500_000).is_null());
        assert!(heap.alloc(usize::MAX).is_null());
    }
}
