//! What the doctor finds in a cluster, and what it says.

mod api_server;
mod definitions;
mod doctor;
mod installed;
mod served;
mod trying;
