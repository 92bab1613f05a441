//! Stories with a real OpenStack: Keystone, Placement and Nova, with hosts whose guests can be seen on disk.

mod adopting;
mod clouds_file;
mod doctor;
mod dying;
mod evacuating;
mod faults;
mod gate;
mod hook;
mod importing;
mod machine;
mod notifications;
mod package;
mod plant;
mod refusing;
mod returning;
