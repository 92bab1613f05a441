//! Parameters held against an agent's own metadata, when a method is made.

use ringfence_bus::ValidateRequest;
use ringfence_core::{Problem, Problems, Resource};

use super::metadata::{Metadata, Parameter, nearest};
use super::rules;

/// What the worker itself gives, or a host gives later: `action` comes from the task, a plug belongs to one host.
const GIVEN_LATER: [&str; 3] = ["action", "plug", "port"];

pub(super) fn check(agent: &str, metadata: &Metadata, request: &ValidateRequest) -> Vec<Problem> {
    let mut problems = Problems::default();
    check_agent(agent, metadata, request.resource, &mut problems);
    check_names(agent, metadata, request, &mut problems);
    check_required(agent, metadata, request, &mut problems);
    for (name, value) in request
        .parameters
        .iter()
        .filter(|(_, value)| !value.contains("${"))
    {
        if let Some(parameter) = metadata.parameter(name) {
            check_value(parameter, name, value, &mut problems);
        }
    }
    problems.0
}

fn check_agent(agent: &str, metadata: &Metadata, resource: Resource, problems: &mut Problems) {
    if let Some(why) = rules::no_proof(agent) {
        problems.add("parameters.agent", format!("is {agent}, which {why}"));
        return;
    }
    for why in rules::shortcomings(metadata, resource) {
        problems.add("parameters.agent", format!("is {agent}, which {why}"));
    }
    if metadata
        .action("on")
        .is_some_and(super::metadata::Action::must_run_on_host)
    {
        problems.add(
            "parameters.agent",
            format!("is {agent}, whose \"on\" must run on the host itself, where no worker is: the host could not be taken back"),
        );
    }
}

fn check_names(agent: &str, metadata: &Metadata, request: &ValidateRequest, problems: &mut Problems) {
    let given = request
        .parameters
        .keys()
        .filter(|name| *name != "agent")
        .map(|name| ("parameters", name));
    for (field, name) in given.chain(request.secrets.keys().map(|name| ("secrets", name))) {
        if let Some(why) = rules::refusal(name, "") {
            problems.add(format!("{field}.{name}"), why);
        } else if metadata.parameter(name).is_none() {
            let known = metadata.parameters().iter().map(|p| p.name.as_str());
            let hint =
                nearest(name, known).map_or_else(String::new, |near| format!("; did you mean {near}?"));
            problems.add(format!("{field}.{name}"), format!("is unknown to {agent}{hint}"));
        }
    }
}

fn check_required(agent: &str, metadata: &Metadata, request: &ValidateRequest, problems: &mut Problems) {
    let is_given = |name: &str| {
        let same = |given: &String| given.replace('-', "_") == name.replace('-', "_");
        request
            .parameters
            .iter()
            .any(|(given, value)| same(given) && !value.is_empty())
            || request.secrets.keys().any(same)
    };
    // An older name is required exactly where its newer one is; the newer one speaks for both.
    let is_older = |name: &str| {
        metadata
            .parameters()
            .iter()
            .any(|p| p.obsoletes.as_deref() == Some(name))
    };
    for parameter in metadata
        .parameters()
        .iter()
        .filter(|p| p.is_required() && !is_older(&p.name))
    {
        let has_default = parameter
            .content
            .default
            .as_ref()
            .is_some_and(|default| !default.is_empty());
        let given = is_given(&parameter.name) || parameter.obsoletes.as_deref().is_some_and(is_given);
        if !given && !has_default && !GIVEN_LATER.contains(&parameter.name.as_str()) {
            problems.add(
                format!("parameters.{}", parameter.name),
                format!("is missing; {agent} needs it"),
            );
        }
    }
}

fn check_value(parameter: &Parameter, name: &str, value: &str, problems: &mut Problems) {
    let at = format!("parameters.{name}");
    if let Some(why) = rules::refusal(name, value) {
        problems.add(at, why);
        return;
    }
    match parameter.content.kind.as_str() {
        "integer" | "second" if value.trim().parse::<i64>().is_err() => {
            problems.add(at, format!("is {value:?}; a whole number is allowed"));
        }
        "boolean" if !is_boolean(value) => {
            problems.add(
                at,
                format!("is {value:?}; true, false, yes, no, on, off, 1 or 0 is allowed"),
            );
        }
        "select" => check_choice(parameter, at, value, problems),
        _ => {}
    }
}

fn is_boolean(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "true" | "false" | "yes" | "no" | "on" | "off" | "1" | "0"
    )
}

fn check_choice(parameter: &Parameter, at: String, value: &str, problems: &mut Problems) {
    let options: Vec<&str> = parameter
        .content
        .options
        .iter()
        .map(|option| option.value.as_str())
        .collect();
    if !options.iter().any(|option| option.eq_ignore_ascii_case(value)) {
        problems.add(at, format!("is {value:?}; allowed: {}", options.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ringfence_core::SecretReference;

    use super::*;

    const XML: &str = r#"<?xml version="1.0" ?>
<resource-agent name="fence_x" shortdesc="X">
<symlink name="fence_y" shortdesc="Y"/>
<longdesc>X &amp; Y</longdesc>
<parameters>
  <parameter name="action" unique="0" required="1"><content type="string" default="reboot" /></parameter>
  <parameter name="ip" unique="0" required="1" obsoletes="ipaddr"><content type="string" /></parameter>
  <parameter name="ipaddr" unique="0" required="1" deprecated="1"><content type="string" /></parameter>
  <parameter name="plug" unique="0" required="1" obsoletes="port"><content type="string" /></parameter>
  <parameter name="port" unique="0" required="1" deprecated="1"><content type="string" /></parameter>
  <parameter name="region" unique="0" required="1"><content type="string" default="eu" /></parameter>
  <parameter name="token" unique="0" required="1"><content type="string" /></parameter>
  <parameter name="power_wait" unique="0" required="0"><content type="second" /></parameter>
  <parameter name="ssl_insecure" unique="0" required="0"><content type="boolean" /></parameter>
  <parameter name="missing_as_off" unique="0" required="0"><content type="boolean" /></parameter>
  <parameter name="auth" unique="0" required="0">
    <content type="select"><option value="md5" /><option value="none" /></content>
  </parameter>
</parameters>
<actions>
  <action name="on" automatic="0"/><action name="off"/><action name="reboot"/><action name="status"/>
</actions>
</resource-agent>"#;

    fn problems(parameters: &[(&str, &str)]) -> Vec<String> {
        problems_for(XML, Resource::Power, parameters)
    }

    fn problems_for(xml: &str, resource: Resource, parameters: &[(&str, &str)]) -> Vec<String> {
        let request = ValidateRequest {
            driver: "fence-agent".to_owned(),
            resource,
            parameters: parameters
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            secrets: BTreeMap::from([("token".to_owned(), SecretReference::Env("TOKEN".to_owned()))]),
        };
        check("fence_x", &Metadata::parse(xml).unwrap(), &request)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn secrets_older_names_templates_and_defaults_satisfy_what_is_required() {
        assert_eq!(
            problems(&[("agent", "fence_x"), ("ip", "${host.name}.bmc")]),
            Vec::<String>::new()
        );
        assert_eq!(
            problems(&[("ipaddr", "10.0.0.1"), ("power-wait", "3")]),
            Vec::<String>::new()
        );
        assert_eq!(problems(&[]), ["parameters.ip: is missing; fence_x needs it"]);
    }

    #[test]
    fn an_unknown_parameter_is_named_with_the_nearest_known_one() {
        let found = problems(&[("ip", "a"), ("pover_wait", "3"), ("zzz", "3")]);
        assert_eq!(
            found,
            [
                "parameters.pover_wait: is unknown to fence_x; did you mean power_wait?",
                "parameters.zzz: is unknown to fence_x"
            ]
        );
    }

    #[test]
    fn values_are_held_against_their_types() {
        let found = problems(&[
            ("ip", "a"),
            ("power_wait", "3s"),
            ("ssl_insecure", "maybe"),
            ("auth", "sha1"),
        ]);
        assert_eq!(
            found,
            [
                "parameters.auth: is \"sha1\"; allowed: md5, none",
                "parameters.power_wait: is \"3s\"; a whole number is allowed",
                "parameters.ssl_insecure: is \"maybe\"; true, false, yes, no, on, off, 1 or 0 is allowed"
            ]
        );
        assert!(problems(&[("ip", "a"), ("power_wait", "${host.name}"), ("auth", "MD5")]).is_empty());
    }

    #[test]
    fn a_plug_that_does_not_exist_must_not_read_as_off() {
        let found = problems(&[("ip", "a"), ("missing_as_off", "true")]);
        assert_eq!(
            found,
            ["parameters.missing_as_off: makes a plug that does not exist read as off; false is allowed"]
        );
    }

    #[test]
    fn a_machine_whose_network_alone_is_closed_must_not_read_as_off() {
        let why = rules::refusal("network-fencing", "on").unwrap();
        assert!(why.contains("read as off once its network is closed"), "{why}");
        assert_eq!(rules::refusal("network_fencing", "off"), None);
    }

    #[test]
    fn an_agent_that_must_unfence_on_the_host_itself_is_refused() {
        let xml = XML.replace(
            r#"name="on" automatic="0""#,
            r#"name="on" on_target="1" automatic="1""#,
        );
        let found = problems_for(&xml, Resource::Storage, &[("ip", "a")]);
        assert!(
            found.len() == 1 && found[0].contains("must run on the host itself"),
            "{found:?}"
        );
    }

    #[test]
    fn an_agent_for_a_fabric_never_proves_that_power_is_off() {
        let xml = XML.replace(r#"<action name="reboot"/>"#, "");
        let found = problems_for(&xml, Resource::Power, &[("ip", "a")]);
        assert!(
            found.len() == 1 && found[0].contains("does not act on its power"),
            "{found:?}"
        );
        assert!(problems_for(&xml, Resource::Network, &[("ip", "a")]).is_empty());
    }
}
