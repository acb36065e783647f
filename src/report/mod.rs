//! What people see: lines, the live view, the final table, JSON.
