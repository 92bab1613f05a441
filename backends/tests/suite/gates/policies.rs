//! The policies of the file that ships, evaluated as an API server evaluates them: conditions, variables, validations, parameters.

use std::collections::HashMap;
use std::sync::Arc;

use cel::extractors::This;
use cel::{Context, Env, ExecutionError, Value as Cel};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicySpec,
};
use ringfence_backends::kubernetes::GateNames;
use serde_json::{Value, json};

/// The account that the gates of these tests know as Ringfence's.
pub const RINGFENCE: &str = "system:serviceaccount:ringfence:ringfence";

/// What the API server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Who denies it, with the words, in the order of the file.
    pub denials: Vec<(String, String)>,
    /// What the audit log gets besides.
    pub audit: Vec<String>,
}

impl Verdict {
    pub fn is_let_through(&self) -> bool {
        self.denials.is_empty()
    }

    /// The names of the policies that deny it.
    pub fn held_by(&self) -> Vec<&str> {
        self.denials.iter().map(|(policy, _)| policy.as_str()).collect()
    }
}

fn names() -> GateNames {
    GateNames {
        cluster: "east".to_owned(),
        namespace: "ringfence".to_owned(),
        gate: "ringfence-gate".to_owned(),
        account: RINGFENCE.to_owned(),
    }
}

/// The policies of the file, and their bindings.
pub fn policies() -> Vec<(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(&names().policies().unwrap()).unwrap();
    let mut bindings = HashMap::new();
    let mut policies = Vec::new();
    for document in documents {
        if document["kind"] == "ValidatingAdmissionPolicy" {
            policies.push(serde_json::from_value::<ValidatingAdmissionPolicy>(document).unwrap());
        } else {
            let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(document).unwrap();
            bindings.insert(
                binding.spec.as_ref().unwrap().policy_name.clone().unwrap(),
                binding,
            );
        }
    }
    let bound = policies.into_iter().map(|policy| {
        let binding = bindings.remove(policy.metadata.name.as_ref().unwrap()).unwrap();
        (policy, binding)
    });
    bound.collect()
}

/// Judges a request by the policies of the file. `gate` is the gate object's data; `None` if there is no gate object.
pub fn judge(request: &Value, gate: Option<&Value>) -> Verdict {
    judge_by(&policies(), request, gate)
}

/// Judges a request by these policies, each with its binding.
pub fn judge_by(
    bound: &[(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)],
    request: &Value,
    gate: Option<&Value>,
) -> Verdict {
    let mut verdict = Verdict {
        denials: Vec::new(),
        audit: Vec::new(),
    };
    for (policy, binding) in bound {
        let spec = policy.spec.clone().unwrap();
        let actions = binding.spec.as_ref().unwrap().validation_actions.as_ref();
        let denies = actions.unwrap().iter().any(|action| action == "Deny");
        if !denies || !is_matched(&spec, request) {
            continue;
        }
        let name = policy.metadata.name.clone().unwrap();
        let wants_gate = spec.param_kind.is_some();
        let params = json!({ "metadata": { "name": "ringfence-gate" }, "data": gate });
        match (wants_gate, gate) {
            (true, None) => {
                let spec_of_binding = binding.spec.clone().unwrap();
                let action = spec_of_binding.param_ref.unwrap().parameter_not_found_action;
                assert_eq!(action.as_deref(), Some("Deny"));
                if is_meant(&spec, request) != Ok(false) {
                    verdict.denials.push((name, "no params found".to_owned()));
                }
            }
            (true, Some(_)) => verdict.take(&name, &spec, request, Some(&params)),
            (false, _) => verdict.take(&name, &spec, request, None),
        }
    }
    verdict
}

impl Verdict {
    fn take(
        &mut self,
        name: &str,
        spec: &ValidatingAdmissionPolicySpec,
        request: &Value,
        params: Option<&Value>,
    ) {
        match is_meant(spec, request) {
            Ok(false) => return,
            Ok(true) => {}
            Err(error) => {
                self.denials.push((name.to_owned(), error));
                return;
            }
        }
        let scope = Scope::new(spec, request, params);
        for validation in spec.validations.iter().flatten() {
            match scope.evaluate(&validation.expression) {
                Ok(Cel::Bool(true)) => {}
                Ok(Cel::Bool(false)) => {
                    let told = match &validation.message_expression {
                        Some(expression) => text(scope.evaluate(expression).unwrap()),
                        None => validation.message.clone().unwrap(),
                    };
                    self.denials.push((name.to_owned(), told));
                }
                other => self.denials.push((name.to_owned(), format!("{other:?}"))),
            }
        }
        for annotation in spec.audit_annotations.iter().flatten() {
            let told = text(scope.evaluate(&annotation.value_expression).unwrap());
            self.audit.extend(Some(told).filter(|told| !told.is_empty()));
        }
    }
}

fn text(value: Cel) -> String {
    match value {
        Cel::String(text) => text.to_string(),
        other => panic!("{other:?} is no text"),
    }
}

/// Whether a rule names the request's resource and operation, and the namespace is one that the policy is for.
fn is_matched(spec: &ValidatingAdmissionPolicySpec, request: &Value) -> bool {
    let constraints = spec.match_constraints.as_ref().unwrap();
    let labels = constraints
        .namespace_selector
        .as_ref()
        .unwrap()
        .match_labels
        .as_ref();
    let namespace = labels.and_then(|labels| labels.get("kubernetes.io/metadata.name"));
    if namespace.is_some_and(|wanted| request["namespace"] != wanted.as_str()) {
        return false;
    }
    let resource = request["resource"]["resource"].as_str().unwrap();
    let resource = match request["subResource"].as_str() {
        Some(sub) => format!("{resource}/{sub}"),
        None => resource.to_owned(),
    };
    let operation = request["operation"].as_str().unwrap().to_owned();
    let group = request["resource"]["group"].as_str().unwrap().to_owned();
    constraints.resource_rules.iter().flatten().any(|rule| {
        let has = |list: &Option<Vec<String>>, word: &String| list.as_ref().unwrap().contains(word);
        has(&rule.resources, &resource) && has(&rule.operations, &operation) && has(&rule.api_groups, &group)
    })
}

/// Conditions: one that is false is enough to pass the policy by; else an error counts as one, and the policies fail closed.
fn is_meant(spec: &ValidatingAdmissionPolicySpec, request: &Value) -> Result<bool, String> {
    assert_eq!(spec.failure_policy.as_deref(), Some("Fail"));
    let scope = Scope::new(&ValidatingAdmissionPolicySpec::default(), request, None);
    let mut failed = None;
    for condition in spec.match_conditions.iter().flatten() {
        match scope.evaluate(&condition.expression) {
            Ok(Cel::Bool(true)) => {}
            Ok(Cel::Bool(false)) => return Ok(false),
            other => failed = Some(format!("{}: {other:?}", condition.name)),
        }
    }
    failed.map_or(Ok(true), Err)
}

/// The variables of one evaluation.
struct Scope {
    context: Context<'static, 'static>,
    env: Arc<Env>,
}

impl Scope {
    fn new(spec: &ValidatingAdmissionPolicySpec, request: &Value, params: Option<&Value>) -> Self {
        let env = Arc::new(Env::stdlib());
        let mut context = Context::with_env(Arc::clone(&env));
        let mut add = |name: &str, value: &Value| context.add_variable_from_value(name, cel_of(value));
        // The API server shows the request without its objects.
        let mut bare = request.clone();
        bare.as_object_mut()
            .unwrap()
            .retain(|key, _| key != "object" && key != "oldObject");
        add("request", &bare);
        add("object", &request["object"]);
        add("oldObject", &request["oldObject"]);
        if let Some(params) = params {
            add("params", params);
        }
        add_authorizer(&mut context, request);
        let mut scope = Self { context, env };
        let mut variables = HashMap::new();
        for variable in spec.variables.iter().flatten() {
            if let Ok(value) = scope.evaluate(&variable.expression) {
                variables.insert(variable.name.clone(), value);
            }
            scope
                .context
                .add_variable_from_value("variables", variables.clone());
        }
        scope
    }

    fn evaluate(&self, expression: &str) -> Result<Cel, ExecutionError> {
        let program = self.env.compile(expression);
        program
            .unwrap_or_else(|error| panic!("{expression}: {error}"))
            .execute(&self.context)
    }
}

/// What the API server's authorizer says of the user who asks. `rights` of the request has what is granted, as `VERB RESOURCE.GROUP/NAME`.
fn add_authorizer(context: &mut Context<'static, 'static>, request: &Value) {
    let rights: Vec<String> = serde_json::from_value(request["rights"].clone()).unwrap_or_default();
    context.add_variable_from_value("authorizer", "authorizer");
    let of = |This(_): This<Cel>, group: Arc<String>| group.to_string();
    context.add_function("group", of).unwrap();
    let of = |This(group): This<Arc<String>>, resource: Arc<String>| format!("{resource}.{group}");
    context.add_function("resource", of).unwrap();
    let of = |This(resource): This<Arc<String>>, name: Arc<String>| format!("{resource}/{name}");
    context.add_function("name", of).unwrap();
    let has =
        move |This(what): This<Arc<String>>, verb: Arc<String>| rights.contains(&format!("{verb} {what}"));
    context.add_function("check", has).unwrap();
    let is_so = |This(decision): This<bool>| decision;
    context.add_function("allowed", is_so).unwrap();
}

/// Whole numbers of Kubernetes are signed.
fn cel_of(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => number.as_i64().unwrap().into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(cel_of).collect::<Vec<_>>().into(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), cel_of(value)));
            fields.collect::<HashMap<String, Cel>>().into()
        }
    }
}
