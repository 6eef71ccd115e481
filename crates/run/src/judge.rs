//! The judge: a model that decides whether one criterion holds for an agent's work.
//!
//! Its main type is [`Judge`]. Nothing passes by default: a verdict must have the requested form,
//! and a pass must quote the exhibits. Text of the agent, its model or a server is shown as data. A
//! missing reply is an error, not a verdict.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

mod ballot;
mod boundary;
mod exhibit;
mod opener;
mod question;
mod tally;
#[cfg(test)]
mod tests;

use proctor_core::grading::is_blank;
use proctor_core::suite::step::Judgement;
use proctor_record::transcript::Transcript;
use proctor_record::verdict::Verdict;

use self::ballot::{Ballot, ParsedBallot};
use self::boundary::Boundary;
use self::question::JudgeQuestion;
use proctor_models::{AskError, ModelClient};
use proctor_wire::worker;

/// How often Proctor asks again after a malformed verdict.
const RETRIES_OF_MALFORMED: u32 = 2;

/// The models that judge, and the number of votes.
#[derive(Clone)]
pub struct Judge {
    /// The models, at least one. They take turns in voting.
    pub askers: Vec<ModelClient>,
    /// The number of votes, which is odd.
    pub votes: u32,
}

/// The criterion to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Criterion {
    /// The answer contains every fact of this text; it may contain more.
    Contains(String),
    /// The answer has exactly the facts of this text, in any wording.
    Exact(String),
    /// The answer and the calls meet the rubric of a shipped eval.
    Rubric(String),
}

impl Criterion {
    /// The criterion of a verify step, with its variables replaced. A criterion without content would
    /// hold for everything.
    pub fn of(judgement: &Judgement, reference: String) -> Result<Self, &'static str> {
        if is_blank(&reference) {
            return Err("the criterion is empty after its variables are replaced");
        }
        Ok(match judgement {
            Judgement::Contains(_) => Self::Contains(reference),
            Judgement::Exact(_) => Self::Exact(reference),
        })
    }
}

/// The evidence that the judge sees.
#[derive(Debug, Clone, Copy)]
pub struct Exhibits<'a> {
    pub prompt: &'a str,
    pub answer: &'a str,
    /// The agent's calls, which only a rubric is judged on.
    pub transcript: Option<&'a Transcript>,
    /// Whether an answer without content fails before any judge is asked. Not so in shipped evals,
    /// where a call alone can be the answer.
    pub answer_required: bool,
}

impl Exhibits<'_> {
    /// The maximum size of the exhibits in bytes.
    fn bytes(&self, asker: &ModelClient) -> usize {
        let recorded = self.transcript.map_or(0, |_| asker.recorder.bytes());
        self.prompt.len() + self.answer.len() + recorded
    }
}

/// The result of judging one criterion.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    pub verdict: Verdict,
    /// Reasons, quotes, the split of the votes, and parts that the judge did not see.
    pub notes: Vec<String>,
    /// The quoted calls, by their numbers in the record.
    pub evidence: Vec<u64>,
    /// The votes in order; empty if the answer has no content.
    pub votes: Vec<Vote>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Vote {
    /// The model as `provider:id`.
    pub model: String,
    pub verdict: Verdict,
    /// The judge's own reason; empty if it gave none.
    pub reason: String,
    pub quotes: Vec<String>,
    /// The quoted calls, by their numbers in the record.
    pub evidence: Vec<u64>,
    /// The number of requests to the model for this vote.
    pub attempts: u32,
}

impl Judge {
    /// Judges one criterion.
    ///
    /// The majority of definite votes decides, if more than half of all votes are definite. If a
    /// judge call fails (outage or budget), its vote is dropped; if that vote could have changed
    /// the result, the error is returned.
    pub async fn rule(
        &self,
        criterion: &Criterion,
        exhibits: &Exhibits<'_>,
    ) -> Result<Ruling, AskError> {
        if exhibits.answer_required
            && let Some(reason) = opener::lack_of_content(exhibits.answer)
        {
            return Ok(Ruling {
                verdict: Verdict::fail(reason),
                notes: Vec::new(),
                evidence: Vec::new(),
                votes: Vec::new(),
            });
        }
        let mut votes = Vec::new();
        let mut error = None;
        for asker in self.askers.iter().cycle().take(self.votes as usize) {
            match vote(asker, criterion, exhibits).await {
                Ok(vote) => votes.push(vote),
                Err(budget @ AskError::Budget(_)) => {
                    error = Some(budget);
                    break;
                }
                Err(outage) => error = Some(outage),
            }
        }
        let wanted = self.votes as usize;
        if let Some(error) = error
            && !tally::is_settled(&votes, wanted)
        {
            return Err(error);
        }
        let mut ruling = tally::ruling(votes, wanted);
        let bytes = self.askers.first().map_or(0, |asker| exhibits.bytes(asker));
        let left_out = worker::on_body(bytes, || exhibit::left_out(criterion, exhibits));
        ruling.notes.extend(left_out);
        Ok(ruling)
    }

    /// Whether one of the judges is this model, which would judge its own work.
    pub fn is_also(&self, model: &str) -> bool {
        self.askers.iter().any(|asker| asker.model.name() == model)
    }
}

/// Gets one vote. After a malformed reply, it asks again in a fresh context.
async fn vote(
    asker: &ModelClient,
    criterion: &Criterion,
    exhibits: &Exhibits<'_>,
) -> Result<Vote, AskError> {
    let mut complaint = None;
    let mut attempts = 0;
    loop {
        let Some(boundary) = Boundary::random() else {
            let reason =
                "the operating system provides no random numbers, which the judge prompt needs";
            return Ok(undecided(asker, reason.to_owned(), attempts));
        };
        let bytes = exhibits.bytes(asker);
        let (question, request) = worker::on_body(bytes, || {
            let question = JudgeQuestion::new(criterion, exhibits, boundary, complaint);
            let request = question.request();
            (question, request)
        });
        let reply = asker.ask(&request).await?.reply;
        attempts += 1;
        let problem = match ballot::read(&reply) {
            ParsedBallot::None(reason) => return Ok(undecided(asker, reason, attempts)),
            ParsedBallot::Malformed(problem) => problem,
            ParsedBallot::Ballot(ballot) => {
                match worker::on_body(bytes, || question.check(&ballot)) {
                    Ok(evidence) => return Ok(ballot.vote(asker, evidence, attempts)),
                    Err(question::BallotRejection::Missing) => {
                        "a pass needs a quote from the answer or from a call"
                    }
                    Err(question::BallotRejection::Short) => {
                        "a pass needs a quote of at least 12 characters, or a whole exhibit"
                    }
                    Err(question::BallotRejection::Invented(quote)) => {
                        let shown = exhibit::brief(&quote);
                        let reason = format!(
                            "the judge quoted text that is not in the evidence: \"{shown}\""
                        );
                        return Ok(undecided(asker, reason, attempts));
                    }
                }
            }
        };
        if attempts > RETRIES_OF_MALFORMED {
            let reason =
                format!("the judge gave no usable verdict in {attempts} attempts: {problem}");
            return Ok(undecided(asker, reason, attempts));
        }
        complaint = Some(problem);
    }
}

fn undecided(asker: &ModelClient, reason: String, attempts: u32) -> Vote {
    Vote {
        model: asker.model.name().to_owned(),
        verdict: Verdict::unknown(reason),
        reason: String::new(),
        quotes: Vec::new(),
        evidence: Vec::new(),
        attempts,
    }
}

impl Ballot {
    fn vote(self, asker: &ModelClient, evidence: Vec<u64>, attempts: u32) -> Vote {
        let reason = exhibit::brief(&self.reason);
        Vote {
            model: asker.model.name().to_owned(),
            verdict: match self.choice {
                ballot::BallotVerdict::Pass => Verdict::Pass,
                ballot::BallotVerdict::Fail => Verdict::fail(reason.clone()),
                ballot::BallotVerdict::Unknown => Verdict::unknown(reason.clone()),
            },
            reason,
            quotes: self.quotes.iter().map(|q| exhibit::brief(q)).collect(),
            evidence,
            attempts,
        }
    }
}
