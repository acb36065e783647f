//! The habits of the allocator.

/// From this size on a block has pages of its own.
#[cfg(target_env = "gnu")]
const LARGE: i32 = 128 << 10;

/// Gives large blocks back to the kernel as soon as they are free.
///
/// glibc begins so, but each large block that is freed raises the limit, and then a process keeps what it needed at its
/// busiest moment. For a process whose large blocks come and go (requests, batches) this costs a few per cent of CPU time.
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "nix does not wrap mallopt")]
        // SAFETY: it changes one number of the allocator, which takes its own lock for that. If it fails nothing changes.
        let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
    }
}
