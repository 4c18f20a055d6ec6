//! Known good numbers of every kind, and the same with a digit changed.
