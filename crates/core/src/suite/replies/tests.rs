use serde_json::json;

use super::*;

fn request(schema: &Value) -> Value {
    json!({"message": "Who are you?", "requestedSchema": schema})
}

fn person() -> Value {
    request(&json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2},
            "age": {"type": "integer", "minimum": 0},
            "mail": {"type": "string", "format": "email"},
        },
        "required": ["name"],
    }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not a map"),
    }
}

fn fields(values: Value) -> Elicitation {
    Elicitation::Fields {
        values: object(values),
        place: "mcp.json:4".to_owned(),
    }
}

fn rule(when: Option<Value>, reply: ElicitationReply) -> ElicitationRule {
    ElicitationRule {
        when: when.map(|when| Matcher::compile(&when).unwrap()),
        reply,
        place: "task.yaml:9".to_owned(),
    }
}

#[track_caller]
fn refused(elicitation: &Elicitation, params: &Value, blame: Blame, part: &str) {
    let error = elicitation.reply(params).unwrap_err();
    assert_eq!(error.blame, blame, "{error}");
    assert!(error.reason.contains(part), "{error}");
}

#[test]
fn fields_answer_what_is_requested_and_nothing_else() {
    let elicitation = fields(json!({"name": "Ada", "city": "London", "age": 36}));
    let (reply, _) = elicitation.reply(&person()).unwrap();
    let expected = json!({"action": "accept", "content": {"name": "Ada", "age": 36}});
    assert_eq!(reply, expected);
}

#[test]
fn fields_that_do_not_fit_are_the_suites_fault() {
    let suite = Blame::Suite;
    refused(
        &fields(json!({"city": "London"})),
        &person(),
        suite,
        "`elicitation` (mcp.json:4) has no value for any requested field (`name`, `age`, `mail`)",
    );
    refused(
        &fields(json!({"age": 36})),
        &person(),
        suite,
        "\"name\" is a required property",
    );
    refused(
        &fields(json!({"name": "A"})),
        &person(),
        suite,
        "does not fit the request `Who are you?`: `name`: \"A\" is shorter than 2 characters",
    );
    refused(
        &fields(json!({"name": "Ada", "mail": "nowhere"})),
        &person(),
        suite,
        "`mail`: \"nowhere\" is not a \"email\"",
    );
    let url = json!({"message": "Sign in.", "mode": "url", "url": "https://a.example"});
    refused(&fields(json!({"name": "Ada"})), &url, suite, "open a URL");
}

#[test]
fn an_invalid_schema_is_the_servers_fault() {
    let params = request(&json!({"type": "object", "properties": {"name": {"type": 5}}}));
    refused(
        &fields(json!({"name": "Ada"})),
        &params,
        Blame::Server,
        "the schema of the elicitation `Who are you?` is invalid",
    );
}

#[test]
fn the_first_rule_that_matches_answers() {
    let content = object(json!({"name": "Ada"}));
    let elicitation = Elicitation::Rules(vec![
        rule(
            Some(json!({"message": {"$match": "(?i)password"}})),
            ElicitationReply::Decline,
        ),
        rule(
            Some(json!({"message": {"$match": "^Who"}})),
            ElicitationReply::Accept(Some(content)),
        ),
    ]);
    let (reply, at) = elicitation.reply(&person()).unwrap();
    assert_eq!((reply["action"].as_str(), at), (Some("accept"), 1));
    let (reply, at) = elicitation
        .reply(&json!({"message": "Your password?"}))
        .unwrap();
    assert_eq!((reply["action"].as_str(), at), (Some("decline"), 0));
    refused(
        &elicitation,
        &json!({"message": "Sure?"}),
        Blame::Suite,
        "no rule of `elicitation` (task.yaml:9) matches the request `Sure?`",
    );
}

#[test]
fn a_rule_sends_its_content_only_if_it_fits() {
    let accepting = |content: Option<Value>| {
        let reply = ElicitationReply::Accept(content.map(object));
        Elicitation::Rules(vec![rule(None, reply)])
    };
    refused(
        &accepting(Some(json!({"name": "Ada", "nmae": "Ada"}))),
        &person(),
        Blame::Suite,
        "the server does not request `nmae`; requested: `name`, `age`, `mail`",
    );
    refused(
        &accepting(None),
        &person(),
        Blame::Suite,
        "\"name\" is a required property",
    );
    let url = json!({"message": "Sign in.", "mode": "url", "url": "https://a.example"});
    let (reply, _) = accepting(None).reply(&url).unwrap();
    assert_eq!(reply, json!({"action": "accept"}));
}

#[test]
fn the_replies_of_a_task_replace_those_of_the_mcp_config() {
    let common = ClientReplies {
        elicitation: Some(fields(json!({"name": "Ada"}))),
        sampling: Some(Sampling::Refuse),
        roots: None,
    };
    let own = ClientReplies {
        elicitation: Some(Elicitation::Rules(vec![rule(
            None,
            ElicitationReply::Cancel,
        )])),
        ..ClientReplies::default()
    };
    let merged = common.overridden_by(Some(&own));
    assert_eq!(merged.elicitation, own.elicitation);
    assert_eq!(merged.sampling, Some(Sampling::Refuse));
    assert_eq!(common.overridden_by(None), common);
}
