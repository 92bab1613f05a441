//! Stories with a real OpenStack: Keystone, Placement and Nova, with hosts whose guests can be seen on disk.

mod adopting;
mod clouds_file;
mod doctor;
mod evacuating;
mod faults;
mod importing;
mod machine;
mod notifications;
mod plant;
