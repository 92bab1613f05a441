//! The developer's commands: `cargo xtask --help`.

mod apt;
mod bench;
mod campaign;
mod cargo_deb;
mod ceph;
mod deb;
mod error;
mod kubernetes;
mod lab;
mod layers;
mod mutants;
mod openstack;
mod packages;
mod page;
mod peers;
mod python;
mod rooms;
mod say;
mod search;
mod supervise;
mod test;
mod vm;
mod without;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::in_full;
use crate::say::say;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The developer's commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs every test; installs and starts the tests' peers, and stops them afterwards
    Test(test::Arguments),
    /// Checks that no crate depends upwards
    Layers,
    /// Runs a command, or a shell, with the tests' peers running and their addresses in the environment
    Lab(lab::Arguments),
    /// Searches random histories for one that opens a gate while the host runs
    Search(search::Arguments),
    /// Searches every history of some small worlds
    ModelCheck(search::Arguments),
    /// Switches every guard of the rules off once; fails if no test or search notices one
    Mutants(mutants::Arguments),
    /// Makes everything around real processes fail, and looks for a gate that opens while the host writes
    Campaign(campaign::Arguments),
    /// Measures the program, each figure with its floor
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Test(arguments) => test::run(&arguments),
        Command::Layers => layers::run(),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Campaign(arguments) => campaign::run(&arguments),
        Command::Search(arguments) => search::search(&arguments),
        Command::ModelCheck(arguments) => search::model_check(&arguments),
        Command::Mutants(arguments) => mutants::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        say(&format!("error: {}", in_full(&error)));
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(words: &[&str]) -> without::Without {
        let words = ["cargo xtask"].iter().chain(words);
        match Arguments::try_parse_from(words).unwrap().command {
            Command::Test(arguments) => arguments.without,
            Command::Lab(arguments) => arguments.without,
            Command::Bench(arguments) => arguments.without,
            Command::Layers
            | Command::Campaign(_)
            | Command::Search(_)
            | Command::ModelCheck(_)
            | Command::Mutants(_) => {
                panic!("it has no peers")
            }
        }
    }

    fn leaves_openstack_out(words: &[&str]) -> bool {
        !without(words).has_openstack()
    }

    #[test]
    fn several_peers_can_be_left_out() {
        let both = without(&["test", "--without", "openstack", "--without", "vm"]);
        assert!(!both.has_openstack() && !both.has_vm());
        assert!(!without(&["test", "--without", "ceph"]).has_ceph() && both.has_ceph());
        assert!(!without(&["test", "--without", "page"]).has_page() && both.has_page());
        let one = without(&["lab", "--without", "vm", "ls"]);
        assert!(one.has_openstack() && !one.has_vm() && one.has_kubernetes());
        assert!(!without(&["test", "--without", "kubernetes"]).has_kubernetes());
        assert!(without(&["test"]).has_vm());
    }

    #[test]
    fn openstack_can_be_left_out_of_whatever_has_peers() {
        assert!(leaves_openstack_out(&[
            "test",
            "--without",
            "openstack",
            "--",
            "-p",
            "xtask"
        ]));
        assert!(leaves_openstack_out(&[
            "lab",
            "--without",
            "openstack",
            "ls",
            "-l"
        ]));
        assert!(leaves_openstack_out(&[
            "bench",
            "--without",
            "openstack",
            "fence",
            "--write"
        ]));
        assert!(!leaves_openstack_out(&["test"]));
        assert!(!leaves_openstack_out(&["lab", "ls", "--without", "openstack"]));
        assert!(!leaves_openstack_out(&["bench", "--help"]));
    }
}
