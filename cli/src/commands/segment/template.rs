//! `ringfence segment template`: documents to begin with.

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::error::CliError;
use crate::output::{Screen, Table};

/// A document to begin with.
struct Template {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

const TEMPLATES: [Template; 3] = [
    Template {
        name: "ceph-rack",
        about: "a rack of hosts that carry OSDs of a Ceph",
        text: include_str!("../../../../deploy/policies/ceph-rack.yaml"),
    },
    Template {
        name: "nova-cell",
        about: "a compute cell of Nova",
        text: include_str!("../../../../deploy/policies/nova-cell.yaml"),
    },
    Template {
        name: "kubernetes",
        about: "a Kubernetes cluster on bare metal",
        text: include_str!("../../../../deploy/policies/kubernetes.yaml"),
    },
];

/// `ringfence segment template`
#[derive(Debug, Args)]
pub struct TemplateArgs {
    /// Which one
    #[arg(value_parser = PossibleValuesParser::new(TEMPLATES.map(|template| template.name)))]
    name: Option<String>,
}

/// Asks no service.
pub fn run(args: &TemplateArgs, screen: &mut Screen) -> Result<(), CliError> {
    let wanted = TEMPLATES
        .iter()
        .find(|template| args.name.as_deref() == Some(template.name));
    if let Some(template) = wanted {
        return screen.text(template.text);
    }
    let mut table = Table::new(&["NAME", "FOR"]);
    for template in &TEMPLATES {
        table.row([template.name.into(), template.about.into()]);
    }
    screen.table(table)
}

#[cfg(test)]
mod tests {
    use super::super::document::read;
    use super::*;

    #[test]
    fn with_no_template_anything_begins_by_itself() {
        for template in &TEMPLATES {
            let documents = read(template.text).unwrap();
            let [document] = documents.as_slice() else {
                panic!("{} documents in {}", documents.len(), template.name);
            };
            let policy = &document.segment.policy;
            let begins = [
                policy.auto_rejoin,
                policy.fencing.automatic,
                policy.evacuation.automatic,
            ];
            assert_eq!(begins, [false; 3], "{}", template.name);
            assert!(document.segment.name.starts_with(template.name));
            for key in ["auto_rejoin: false", "automatic: false"] {
                assert!(
                    template.text.contains(key),
                    "{} says nothing of {key}",
                    template.name
                );
            }
        }
    }
}
