//! The habits of the allocator.

/// From this size on a block has pages of its own, which go back to the kernel as soon as it is free.
#[cfg(target_env = "gnu")]
const LARGE: i32 = 384 << 10;

/// So much may be free at the end of the heap before it is given back.
#[cfg(target_env = "gnu")]
const FREE_AT_THE_END: i32 = 1 << 20;

/// Sets the allocator up for a process whose blocks come and go: requests, batches, pages.
///
/// A request of some hundred spans is a block below the first limit: its memory is used again by the next one, where glibc
/// as it comes would give it back and have the kernel clear the same pages again for each request (half of the CPU time of
/// receiving). Larger ones go back at once: each that is freed would otherwise raise glibc's limit, and the process would
/// keep what it needed at its busiest moment. All threads share one heap: what one frees another uses.
pub fn set_up_allocator() {
    super::share_one_heap();
    #[cfg(target_env = "gnu")]
    for (limit, value) in [(libc::M_MMAP_THRESHOLD, LARGE), (libc::M_TRIM_THRESHOLD, FREE_AT_THE_END)] {
        #[expect(unsafe_code, reason = "nix does not wrap mallopt")]
        // SAFETY: it changes one number of the allocator, which takes its own lock for that. If it fails nothing changes.
        let _ = unsafe { libc::mallopt(limit, value) };
    }
}
