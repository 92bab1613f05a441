//! How far an operation is.
