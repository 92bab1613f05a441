//! Stories with a real OpenStack: Keystone, Placement and Nova, with hosts whose guests can be seen on disk.

mod dying;
mod evacuating;
mod machine;
mod plant;
mod refusing;
mod returning;
