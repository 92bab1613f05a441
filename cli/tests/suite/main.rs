//! The commands against a scripted service.
