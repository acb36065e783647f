//! What a fork that executes nothing has of the memory of its parent.
//!
//! Each page that the parent writes to is copied, and the former one is the fork's alone from then on: of a parent that goes
//! on working that is most of its heap, in the end, and the stacks of all its threads. Who gives it back saves the copies, too.

use std::ptr;

/// A line of `/proc/PID/maps` is shorter, unless the name of its file is long.
const LINE: usize = 4096;

/// Gives back the heap and the stacks of other threads, of which the caller must need nothing: from then on they are empty.
/// What is left is what belongs to files, the stack and the variables of the thread that calls.
///
/// # Safety
/// For a fork with no other thread, which uses nothing that was ever allocated. Nothing here allocates or locks.
#[expect(unsafe_code, reason = "it takes memory away")]
pub(super) unsafe fn shed_inherited_memory() {
    let mut buffer = [0; LINE];
    // SAFETY: plain calls with a buffer of this function's own. Private memory that belongs to no file is empty afterwards, and
    // the caller promises that nobody misses it; where this thread's stack and its variables are is left out.
    unsafe {
        let own = [ptr::from_ref(&buffer).addr(), libc::__errno_location().addr()];
        let maps = libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let mut before = Mapping::default();
        let mut filled = 0;
        while maps >= 0
            && let Ok(count @ 1..) =
                usize::try_from(libc::read(maps, buffer[filled..].as_mut_ptr().cast(), LINE - filled))
        {
            filled += count;
            let mut done = 0;
            while let Some(length) = buffer[done..filled].iter().position(|byte| *byte == b'\n') {
                let mapping = Mapping::parse(&buffer[done..done + length]);
                done += length + 1;
                if mapping.is_inherited(&before) && !own.iter().any(|address| mapping.holds(*address)) {
                    let length = mapping.end - mapping.start;
                    libc::madvise(ptr::without_provenance_mut(mapping.start), length, libc::MADV_DONTNEED);
                }
                before = mapping;
            }
            // A name that is longer than all there is room for is cut: what is left of it is no mapping.
            buffer.copy_within(done..filled, 0);
            filled = if filled - done < LINE { filled - done } else { 0 };
        }
        if maps >= 0 {
            libc::close(maps);
        }
    }
}

/// A line of `/proc/PID/maps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mapping {
    start: usize,
    end: usize,
    /// Whether it is private memory that can be written to.
    writable: bool,
    kind: MappingKind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MappingKind {
    /// A file's, the kernel's, or the first thread's stack.
    #[default]
    Named,
    Heap,
    Nameless,
}

impl Mapping {
    fn parse(line: &[u8]) -> Self {
        let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
        let mut range = fields.next().unwrap_or_default().split(|byte| *byte == b'-').map(hexadecimal);
        let (start, end) = (range.next().unwrap_or_default(), range.next().unwrap_or_default());
        let writable = fields.next() == Some(b"rw-p");
        let kind = match fields.nth(3) {
            None => MappingKind::Nameless,
            Some(b"[heap]") => MappingKind::Heap,
            Some(_) => MappingKind::Named,
        };
        Self { start, end, writable, kind }
    }

    fn holds(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Whether it is the parent's heap, a large block of it, or a thread's stack. What follows right behind a file is what that
    /// has no bytes for, but variables of the library.
    fn is_inherited(&self, before: &Self) -> bool {
        let variables = before.kind == MappingKind::Named && before.end == self.start;
        self.writable
            && self.start < self.end
            && match self.kind {
                MappingKind::Heap => true,
                MappingKind::Nameless => !variables,
                MappingKind::Named => false,
            }
    }
}

/// 0 if it is none.
fn hexadecimal(digits: &[u8]) -> usize {
    let value = |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| usize::try_from(digit).ok());
    digits.iter().try_fold(0_usize, |sum, digit| Some((sum << 4) | value(digit)?)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Mapping;

    #[test]
    fn heaps_and_stacks_are_told_from_what_belongs_to_files() {
        let maps = "\
55b1529de000-55b152f88000 r--p 00000000 fe:00 123 /a folder/gymrun
55b15407e000-55b154083000 rw-p 0169d000 fe:00 123 /a folder/gymrun
55b154083000-55b154087000 rw-p 00000000 00:00 0
55b159ac9000-55b159b2c000 rw-p 00000000 00:00 0                          [heap]
7fbaab181000-7fbaab182000 ---p 00000000 00:00 0
7fbaab182000-7fbaab202000 rw-p 00000000 00:00 0 
7fbaab202000-7fbaab203000 rw-s 00000000 00:01 99 /dev/zero (deleted)
7fbaab300000-7fbaab400000 r--p 00000000 00:00 0
7fbaac9db000-7fbaac9dd000 rw-p 00214000 fe:00 124                        /usr/lib/libc.so.6
7fbaac9dd000-7fbaac9ea000 rw-p 00000000 00:00 0
7fbaac9ea000-7fbaac9ec000 rw-p 00000000 00:00 0
7ffe73818000-7ffe73839000 rw-p 00000000 00:00 0                          [stack]
nonsense
";
        let mut before = Mapping::default();
        let mut shed = Vec::new();
        for line in maps.lines() {
            let mapping = Mapping::parse(line.as_bytes());
            if mapping.is_inherited(&before) {
                shed.push(format!("{:x}", mapping.start));
            }
            before = mapping;
        }
        assert_eq!(shed, ["55b159ac9000", "7fbaab182000", "7fbaac9ea000"]);
    }
}
