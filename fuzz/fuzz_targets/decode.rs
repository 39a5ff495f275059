//! Fuzz target `decode`.
//!
//! Knows: how libFuzzer calls a body. Must not know: what the body does.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocr::fuzzing::decode(data));
