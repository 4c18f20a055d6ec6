//! What is defused and what stays.
