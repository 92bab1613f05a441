//! The examples of the documentation's page.

use super::*;

/// The documents of YAML on the page of the documentation, by their headings.
fn examples() -> Vec<(String, Vec<Value>)> {
    let page = include_str!("../../../../docs/kubernetes-configuration.md");
    let mut found = Vec::new();
    for section in page.split("\n## ").skip(1) {
        let heading = section.lines().next().unwrap().to_owned();
        let mut documents = Vec::new();
        for block in section.split("```yaml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            documents.extend(
                block
                    .split("---\n")
                    .map(|one| serde_saphyr::from_str(one).unwrap()),
            );
        }
        if !documents.is_empty() {
            found.push((heading, documents));
        }
    }
    found
}

#[test]
fn the_examples_of_the_page_have_no_fault_and_each_gives_a_plan_or_a_policy() {
    let examples = examples();
    assert_eq!(examples.len(), 4);
    for (heading, documents) in examples {
        let mut cluster =
            Cluster::of("[]").with_node(node("n1", None, "aws:///eu-central-1a/i-0123456789abcdef0"));
        for document in &documents {
            let name = document["metadata"]["name"].as_str().unwrap().to_owned();
            let texts = |field: &str| {
                let texts = document[field].as_object().unwrap().iter();
                texts
                    .map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()))
                    .collect::<BTreeMap<_, _>>()
            };
            match document["kind"].as_str().unwrap() {
                "Secret" => drop(
                    cluster
                        .secrets
                        .insert(name, texts("stringData").into_keys().collect()),
                ),
                _ => drop(
                    cluster
                        .sources
                        .0
                        .insert(name, Source::new(String::new(), texts("data"))),
                ),
            }
        }
        let reading = cluster.read();
        let mut declared = 0;
        for verdict in &reading.verdicts {
            let found = verdict
                .found
                .as_ref()
                .unwrap_or_else(|faults| panic!("{heading}: {faults}"));
            assert!(verdict.warnings.is_empty(), "{heading}: {:?}", verdict.warnings);
            declared += usize::from(matches!(found, Declared::Plan(_) | Declared::Segment { .. }));
        }
        assert_eq!(declared, 1, "{heading}: {:?}", reading.verdicts);
    }
}
