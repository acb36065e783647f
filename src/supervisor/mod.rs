//! Starts, watches, samples and stops what the plan says.
