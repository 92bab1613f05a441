//! Stories with a real OpenStack: Keystone, Placement and Nova, with hosts whose guests can be seen on disk.

mod cut_off;
mod disks;
mod evacuating;
mod hand;
mod ironic;
mod machine;
mod plant;
mod ports;
