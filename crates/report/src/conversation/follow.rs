//! A conversation that is still going on: what is new, each time that more of the record is known.
//!
//! Its main type is [`Follower`]. It shows what a [`Conversation`] shows, in the order in which it happens: the outcome comes
//! last.

use std::collections::BTreeSet;

use proctor_record::fold::{FoldedTrial, TimelineItem};
use proctor_record::transcript::{Call, CallOutcome};

use super::{Conversation, ConversationOptions, DOUBTFUL, TrialHeading};

/// What of a trial was shown already.
#[derive(Debug, Default)]
pub struct Follower {
    has_begun: bool,
    has_prompt: bool,
    /// The number of the last event that was shown.
    last: u64,
    /// The calls that were shown without a response.
    unanswered: BTreeSet<u64>,
}

impl Follower {
    /// Renders what is new in a trial that goes on. A call is shown once it is answered. If something after it is ready
    /// earlier, it is shown without a response, and again when the response arrives.
    pub fn update(
        &mut self,
        heading: &TrialHeading,
        folded: FoldedTrial,
        options: &ConversationOptions,
    ) -> String {
        let (outline, items) = folded.into_timeline();
        let work = &outline.folded.work;
        let is_over = work.ended.is_some();
        let mut conversation = Conversation::begin(heading, &outline, options);
        conversation.claims.retain(|(seq, _)| *seq > self.last);
        if !self.has_begun {
            self.has_begun = true;
            let (label, facts) = (("RUNNING", DOUBTFUL), heading.facts());
            Conversation::title(&mut conversation.screen, label, &heading.case, &facts);
            conversation.screen.blank();
        }
        if !self.has_prompt && work.prompt.is_some() {
            self.has_prompt = true;
            conversation.setup();
        }
        let is_ready = |item: &TimelineItem| is_over || open_call(item).is_none();
        let ready = items.iter().rev().find(|item| is_ready(item));
        let ready = ready.map_or(0, TimelineItem::seq);
        for item in &items {
            if item.seq() <= self.last {
                conversation.remember(item);
                self.late_response(&mut conversation, item, is_over);
            } else if item.seq() <= ready {
                match open_call(item).filter(|_| !is_over) {
                    Some(call) => self.without_response(&mut conversation, call),
                    None => conversation.item(item),
                }
                self.last = item.seq();
            }
        }
        let open = items.iter().find(|item| item.seq() > ready);
        let claimed = conversation.claims_before(open.map(TimelineItem::seq));
        self.last = self.last.max(claimed);
        if is_over {
            conversation.conclusion();
            conversation.head(heading);
        }
        conversation.take()
    }

    fn without_response(&mut self, conversation: &mut Conversation<'_>, call: &Call) {
        conversation.claims_before(Some(call.seq));
        conversation.is_empty = false;
        self.unanswered.insert(call.seq);
        super::calls::render_open(&mut conversation.screen, call);
        conversation.screen.blank();
    }

    /// Shows a call again that has a response now, or will have none.
    fn late_response(
        &mut self,
        conversation: &mut Conversation<'_>,
        item: &TimelineItem,
        is_over: bool,
    ) {
        let is_settled = is_over || open_call(item).is_none();
        if is_settled && self.unanswered.remove(&item.seq()) {
            conversation.item(item);
        }
    }
}

/// The call that an item is, if it is not answered yet.
fn open_call(item: &TimelineItem) -> Option<&Call> {
    match item {
        TimelineItem::Call(call) => Some(call).filter(|call| call.answer == CallOutcome::None),
        TimelineItem::Turn(_) | TimelineItem::ServerRequest(_) | TimelineItem::Message(_) => None,
    }
}
