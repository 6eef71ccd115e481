//! A conversation that is still going on: what is new, each time that more of the record is known.
//!
//! Its main type is [`Follower`]. It shows what [`render`](super::render) shows, in the order in which it
//! happens: the outcome comes last.

use proctor_core::event::Phase;
use proctor_core::fold::FoldedTrial;
use proctor_core::transcript::CallOutcome;

use super::screen::Screen;
use super::{
    Conversation, ConversationOptions, DOUBTFUL, Item, TrialHeading, checks, decides, not_graded,
};

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
        folded: &FoldedTrial,
        options: &ConversationOptions,
    ) -> String {
        let mut screen = Screen::new(options);
        let conversation = Conversation {
            folded,
            decides: decides(folded),
        };
        let is_over = folded.work.ended.is_some();
        if !self.has_begun {
            self.has_begun = true;
            let label = ("RUNNING", DOUBTFUL);
            Conversation::title(&mut screen, label, &heading.case, &heading.facts());
            screen.blank();
        }
        if !self.has_prompt && folded.work.prompt.is_some() {
            self.has_prompt = true;
            conversation.steps(&mut screen, |phase| phase == Phase::Setup);
            Conversation::text(&mut screen, "Prompt", folded.work.prompt.as_ref());
        }
        for item in conversation.items() {
            if item.seq() <= self.last {
                continue;
            }
            if !is_over && is_open(&item) {
                break;
            }
            self.last = item.seq();
            conversation.item(&mut screen, &item);
            screen.blank();
        }
        if is_over {
            conversation.end(&mut screen);
            checks::render(&mut screen, folded, &heading.places);
            conversation.steps(&mut screen, not_graded);
            conversation.findings(&mut screen);
            conversation.head(&mut screen, heading);
        }
        screen.into_text()
    }
}

/// Whether a call is not answered yet.
fn is_open(item: &Item<'_>) -> bool {
    match item {
        Item::Call(call) => call.answer == CallOutcome::None,
        Item::Turn(_) | Item::Claim(..) => false,
    }
}
