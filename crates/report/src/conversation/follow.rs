//! A conversation that is still going on: what is new, each time that more of the record is known.
//!
//! Its main type is [`Follower`]. It shows what a [`Conversation`] shows, in the order in which it happens: the outcome comes
//! last.

use proctor_core::fold::{FoldedTrial, TimelineItem};
use proctor_core::transcript::CallOutcome;

use super::{Conversation, ConversationOptions, DOUBTFUL, TrialHeading};

/// What of a trial was shown already.
#[derive(Debug, Default)]
pub struct Follower {
    has_begun: bool,
    has_prompt: bool,
    /// The number of the last event that was shown.
    last: u64,
}

impl Follower {
    /// Renders what is new in a trial that goes on. A call is shown once it is answered, and what follows
    /// it after that.
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
        let is_open = |item: &&TimelineItem| !is_over && is_open(item);
        let open = items.iter().find(is_open).map(TimelineItem::seq);
        for item in &items {
            if item.seq() <= self.last {
                conversation.remember(item);
            } else if open.is_none_or(|open| item.seq() < open) {
                conversation.item(item);
                self.last = item.seq();
            }
        }
        self.last = self.last.max(conversation.claims_before(open));
        if is_over {
            conversation.conclusion();
            conversation.head(heading);
        }
        conversation.take()
    }
}

/// Whether a call is not answered yet.
fn is_open(item: &TimelineItem) -> bool {
    match item {
        TimelineItem::Call(call) => call.answer == CallOutcome::None,
        TimelineItem::Turn(_) | TimelineItem::ServerRequest(_) | TimelineItem::Message(_) => false,
    }
}
