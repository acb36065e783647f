//! The files of a job directory, written and read back.
