//! Stories with a real Kubernetes.

mod admission;
mod adopting;
mod ailing;
mod api_server_away;
mod budgets;
mod chart;
mod confirming;
mod doctor;
mod fence_config;
mod gates;
mod in_cluster;
mod labels;
mod leader_dies;
mod leaders;
mod member;
mod node_fence;
mod opted_in;
mod out_of_service;
mod plant;
mod remediation;
mod returning;
mod told;
mod two_clusters;
mod undetachable;
mod weaker_proofs;
