//! The JSON output of `proctor list`. It contains no values of environment variables.

use proctor_core::check::Check;
use proctor_core::plan::{CasePlan, Plan};
use proctor_core::suite::agent::AgentKind;
use proctor_core::suite::server::Transport;
use proctor_core::suite::{Agent, JudgeModel, Server, Step, Suite};
use proctor_record::problem::Problems;
use serde_json::{Value, json};

pub(super) fn render(suite: &Suite, plan: &Plan<'_>, problems: &Problems) -> Value {
    json!({
        "suite": suite.name,
        "path": suite.path,
        "agents": suite.agents.iter().map(agent).collect::<Vec<_>>(),
        "servers": suite.servers.iter().map(server).collect::<Vec<_>>(),
        "judge": suite.judge.as_ref().map(|judge| json!({
            "agent": match &judge.model {
                JudgeModel::Agent(agent) => agent.name.clone(),
                JudgeModel::Environment { .. } => "from the environment".to_owned(),
            },
            "votes": judge.votes,
        })),
        "isolation": suite.isolation,
        "cases": plan.cases.iter().map(case).collect::<Vec<_>>(),
        "shipped": suite.shipped.iter().map(|shipped| json!({
            "server": shipped.server,
            "level": shipped.level,
        })).collect::<Vec<_>>(),
        "unfetched": suite.unfetched().map(|source| json!({
            "source": source.name,
            "repo": source.repo,
            "ref": source.reference,
        })).collect::<Vec<_>>(),
        "problems": problems.iter().collect::<Vec<_>>(),
        "totals": {"cases": plan.cases.len(), "trials": plan.trials()},
    })
}

fn agent(agent: &Agent) -> Value {
    let (kind, model) = match &agent.kind {
        AgentKind::Builtin { builtin, model, .. } => (builtin.type_name(), model.as_ref()),
        AgentKind::Acp { .. } => ("acp".to_owned(), None),
        AgentKind::Nobody => ("none".to_owned(), None),
        AgentKind::Commands(_) => ("commands".to_owned(), None),
    };
    json!({"name": agent.name, "type": kind, "model": model})
}

fn server(server: &Server) -> Value {
    let kind = match server.transport {
        Transport::Stdio { .. } => "stdio",
        Transport::Http { .. } => "http",
        Transport::Sse { .. } => "sse",
    };
    json!({"name": server.name, "type": kind, "target": server.written})
}

fn case(planned: &CasePlan<'_>) -> Value {
    let case = planned.case;
    json!({
        "id": case.id,
        "name": case.name,
        "path": case.path,
        "difficulty": case.difficulty,
        "labels": case.labels,
        "parallel": case.parallel,
        "runs": planned.runs,
        "limits": planned.limits,
        "pass": case.pass.map(|rule| format!("{}/{}", rule.passed, rule.of)),
        "checks": case.checks.iter().map(|check| self::check(check)).collect::<Vec<_>>(),
        "setup": steps(&case.setup),
        "verify": steps(&case.verify),
        "cleanup": steps(&case.cleanup),
    })
}

fn check(check: &Check) -> Value {
    let mode = match check {
        Check::Calls { mode, .. } => Some(mode.word()),
        _ => None,
    };
    json!({"check": check.name(), "mode": mode, "entries": check.details()})
}

fn steps(steps: &[Step]) -> Vec<Value> {
    let step = |step: &Step| json!({"id": step.id, "type": step.kind});
    steps.iter().map(step).collect()
}
