//! What happened, as data with a time: the only way out of the supervisor.
