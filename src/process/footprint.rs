//! How much memory the process itself takes, which lives for hours and does next to nothing.
//!
//! Most of it are pages of the program's own file: at each touch the kernel maps 16 of them, and newer ones as many as it
//! happens to keep together, up to 512. Given back, they are mapped again when they are touched again.

#[cfg(target_env = "gnu")]
use std::ffi::c_void;
use std::time::Duration;

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

/// How much heap the plan of a small job takes.
#[cfg(target_env = "gnu")]
const SHORT_LIFE: usize = 384 * 1024;

/// For a process that ends soon: room on the heap that is there at once. Otherwise the kernel is asked for each page as it is
/// written to for the first time, which takes longer than the page does.
pub fn take_room_at_once() {
    #[cfg(target_env = "gnu")]
    {
        let pad = libc::c_int::try_from(SHORT_LIFE).unwrap_or(libc::c_int::MAX);
        #[expect(unsafe_code, reason = "nix wraps neither mallopt nor sbrk")]
        // SAFETY: it changes one number of the allocator, which takes its own lock for that, and asks where the heap ends once
        // it has grown by that much. The advice changes nothing that can be read; an older kernel (before 5.14) does not know it.
        unsafe {
            libc::mallopt(libc::M_TOP_PAD, pad);
            // More than is left, less than would be taken from elsewhere.
            drop(std::hint::black_box(Vec::<u8>::with_capacity(120 * 1024)));
            let end = libc::sbrk(0);
            libc::madvise(end.byte_sub(SHORT_LIFE), SHORT_LIFE, libc::MADV_POPULATE_WRITE);
        }
    }
}

/// Gives back what only the start, or a busy moment, has needed: free pages of the heap, and the pages of the program's own
/// file.
pub fn shed_memory() {
    shed_free_memory();
    ProgramFile::find().shed_all_but(0);
}

/// The same when this time is over, by a thread of its own: on its way back to sleep the caller would touch much of that
/// again.
pub fn shed_memory_after(time: Duration) {
    #[cfg(target_env = "gnu")]
    {
        let milliseconds = usize::try_from(time.as_millis()).unwrap_or(usize::MAX);
        #[expect(unsafe_code, reason = "the library's own threads touch more of the program at their end")]
        // SAFETY: the attributes are initialised before they are used, and what the thread is told is a plain number. One that
        // cannot be started costs memory, nothing else.
        unsafe {
            let mut attributes = std::mem::zeroed::<libc::pthread_attr_t>();
            let mut thread = std::mem::zeroed::<libc::pthread_t>();
            if libc::pthread_attr_init(&raw mut attributes) == 0 {
                libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED);
                libc::pthread_attr_setstacksize(&raw mut attributes, 64 << 10);
                let told = std::ptr::without_provenance_mut(milliseconds);
                libc::pthread_create(&raw mut thread, &raw const attributes, shed_and_end, told);
                libc::pthread_attr_destroy(&raw mut attributes);
            }
        }
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = time;
}

/// Behind the last call is no more than the end of this, and of the thread.
#[cfg(target_env = "gnu")]
extern "C" fn shed_and_end(milliseconds: *mut c_void) -> *mut c_void {
    std::thread::sleep(Duration::from_millis(milliseconds.addr().try_into().unwrap_or(u64::MAX)));
    shed_free_memory();
    ProgramFile::find().shed_all_but((shed_and_end as *const ()).addr());
    std::ptr::null_mut()
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

/// Where the program's own file is in memory, as far as nobody ever writes to it.
#[derive(Debug, Default)]
pub(super) struct ProgramFile {
    /// Addresses from and to: linkers make two such segments, or three.
    segments: [(usize, usize); 4],
    page: usize,
}

impl ProgramFile {
    pub(super) fn find() -> Self {
        let page = usize::try_from(crate::procfs::page_size()).unwrap_or(4096);
        #[cfg_attr(not(target_env = "gnu"), expect(unused_mut, reason = "nobody tells there"))]
        let mut found = Self { page, ..Self::default() };
        #[cfg(target_env = "gnu")]
        {
            #[expect(unsafe_code, reason = "nix does not wrap dl_iterate_phdr")]
            // SAFETY: it calls `note_segments` with what that promises and with this, and nothing else.
            unsafe {
                libc::dl_iterate_phdr(Some(note_segments), (&raw mut found).cast());
            }
        }
        found
    }

    /// Gives all of it back but the page with this address, and the next one: who calls this last keeps the code that it goes
    /// on with. Nothing here allocates or locks.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a function of its own would be on another page")]
    pub(super) fn shed_all_but(&self, kept: usize) {
        let kept = kept / self.page * self.page;
        let behind = kept + 2 * self.page;
        for (start, end) in self.segments {
            for (start, end) in [(start, end.min(kept)), (start.max(behind), end)] {
                if start < end {
                    #[expect(unsafe_code, reason = "nix's call takes no plain addresses")]
                    // SAFETY: what is not writable in the file is never relocated either, so its pages are those of the file:
                    // the kernel reads them again when they are due. A failure costs memory, nothing else.
                    unsafe {
                        libc::madvise(std::ptr::without_provenance_mut(start), end - start, libc::MADV_DONTNEED);
                    }
                }
            }
        }
    }
}

/// Notes the segments of the first object, which is the program.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "it reads what dl_iterate_phdr gives")]
unsafe extern "C" fn note_segments(
    program: *mut libc::dl_phdr_info,
    _: libc::size_t,
    found: *mut c_void,
) -> libc::c_int {
    // SAFETY: dl_iterate_phdr gives a whole entry, whose headers are as many as it says, and what it was given itself.
    let (program, headers, found) = unsafe {
        let program = &*program;
        let headers = std::slice::from_raw_parts(program.dlpi_phdr, usize::from(program.dlpi_phnum));
        (program, headers, &mut *found.cast::<ProgramFile>())
    };
    let constant = headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0);
    for (segment, header) in found.segments.iter_mut().zip(constant) {
        let start = usize::try_from(program.dlpi_addr + header.p_vaddr).unwrap_or_default();
        let end = start + usize::try_from(header.p_memsz).unwrap_or_default();
        *segment = (start / found.page * found.page, end);
    }
    1
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU8;
    use std::time::{Duration, Instant};

    static WRITTEN: AtomicU8 = AtomicU8::new(1);

    #[test]
    fn what_was_shed_comes_back() {
        super::share_one_heap();
        let before: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        super::shed_memory();
        super::shed_memory_after(Duration::ZERO);
        // Meanwhile it may be shed once more.
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(20) {
            assert!(before.iter().enumerate().all(|(number, text)| *text == number.to_string()));
            assert_eq!(std::thread::spawn(|| format!("{:?}", [1, 2])).join().expect("it runs"), "[1, 2]");
        }
    }

    #[test]
    fn the_program_knows_where_it_is() {
        if !cfg!(target_env = "gnu") {
            return;
        }
        let file = super::ProgramFile::find();
        let holds = |address: usize| file.segments.iter().any(|(start, end)| (*start..*end).contains(&address));
        assert!(holds((super::shed_memory as *const ()).addr()));
        assert!(holds("constant".as_ptr().addr()));
        // What is written to, and what is not the program's.
        assert!(!holds((&raw const WRITTEN).addr()));
        assert!(!holds(String::from("heap").as_ptr().addr()));
        assert!(!holds((libc::getpid as *const ()).addr()));
    }
}
