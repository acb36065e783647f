//! Reads of /proc: process trees, memory, identities, owners of listeners.
