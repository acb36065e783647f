#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gymrun_fuzz::stored(input));
