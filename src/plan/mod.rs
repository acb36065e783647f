//! The plan: every noun of the program, as complete and printable data.
