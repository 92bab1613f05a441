//! Stories with a real OpenStack: Keystone, Placement and Nova, with hosts whose guests can be seen on disk.

mod dying;
mod evacuating;
mod gate;
mod hook;
mod machine;
mod package;
mod plant;
mod refusing;
mod returning;
