//! How much memory the process itself takes, which lives for hours and does next to nothing.

/// Lets all threads share one heap, from now on. Each further heap of glibc's costs pages of its own, and is grown page by
/// page; what it saves is waiting for one another, and threads that do next to nothing need not wait.
pub fn share_one_heap() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "nix does not wrap mallopt")]
        // SAFETY: it changes one number of the allocator, which takes its own lock for that. If it fails nothing changes.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// Gives back what only the start, or a busy moment, has needed: free pages of the heap, and the pages of the program's own file, of which
/// the kernel maps many at once. Those that are needed again are mapped again, one after the other.
pub fn shed_memory() {
    shed_free_memory();
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "nix does not wrap dl_iterate_phdr")]
        // SAFETY: it calls `shed_segments` with what it promises, and nothing else.
        unsafe {
            libc::dl_iterate_phdr(Some(shed_segments), std::ptr::null_mut());
        }
    }
}

/// Gives back the free pages of the heap.
pub fn shed_free_memory() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "nix does not wrap malloc_trim")]
        // SAFETY: it takes the allocator's own locks.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

/// Sheds the segments of the first object, which is the program, that nobody ever writes to.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "it reads what dl_iterate_phdr gives, and calls madvise")]
unsafe extern "C" fn shed_segments(
    program: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: dl_iterate_phdr gives a whole entry, and its headers are as many as it says. What is not writable in the
    // file is never relocated either, so its pages are those of the file: the kernel reads them again when they are due.
    unsafe {
        let program = &*program;
        let headers = std::slice::from_raw_parts(program.dlpi_phdr, usize::from(program.dlpi_phnum));
        let page = usize::try_from(crate::procfs::page_size()).unwrap_or(4096);
        for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0)
        {
            let start = usize::try_from(program.dlpi_addr + header.p_vaddr).unwrap_or_default();
            let end = start + usize::try_from(header.p_memsz).unwrap_or_default();
            let first = start / page * page;
            // A failure costs memory, nothing else.
            let _ = libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_DONTNEED);
        }
    }
    1
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_was_shed_comes_back() {
        super::share_one_heap();
        let before: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        super::shed_memory();
        assert!(before.iter().enumerate().all(|(number, text)| *text == number.to_string()));
        assert_eq!(std::thread::spawn(|| format!("{:?}", [1, 2])).join().expect("it runs"), "[1, 2]");
    }
}
