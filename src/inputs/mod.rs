//! Finds, orders and reads job and site files.
