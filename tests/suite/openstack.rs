//! Stories with a real OpenStack: Keystone, Placement and Nova, with hosts whose guests can be seen on disk.

mod adopting;
mod cut_off;
mod disks;
mod doctor;
mod dying;
mod evacuating;
mod faults;
mod gate;
mod hand;
mod hook;
mod importing;
mod ironic;
mod judge;
mod late;
mod losing;
mod monitors;
mod notifications;
mod package;
mod plant;
mod ports;
mod refusing;
mod returning;
mod stuck;
mod twins;
