//! The output of a stream: bytes, with the gaps between messages.
//!
//! Its main type is [`Output`].

use std::time::Duration;

/// The bytes of a stream that can be sent now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    /// Where our own messages can be inserted: after the last complete message.
    pub(crate) gap: Option<usize>,
    /// The delays: from which byte on, and how long.
    waits: Vec<(usize, Duration)>,
}

/// A part of the output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Bytes(Vec<u8>),
    /// Sends nothing for this time.
    Wait(Duration),
    /// Our own messages can be inserted here.
    Gap,
}

impl Output {
    /// Returns an empty output with room for this many bytes.
    pub(crate) fn of(length: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(length),
            ..Self::default()
        }
    }

    /// Delays everything that follows.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.waits.push((self.bytes.len(), time));
    }

    /// Marks a place where our own message can be inserted.
    pub(crate) fn gap(&mut self) {
        self.gap = Some(self.bytes.len());
    }

    /// Returns all parts, in order.
    pub(crate) fn parts(self) -> Vec<Part> {
        if self.waits.is_empty() && self.gap.is_none() {
            return vec![Part::Bytes(self.bytes)];
        }
        let gap = self.gap.map(|at| (at, Part::Gap));
        let waits = self.waits.into_iter();
        let mut marks: Vec<(usize, Part)> = waits
            .map(|(at, time)| (at, Part::Wait(time)))
            .chain(gap)
            .collect();
        // A gap at the position of a delay comes first, so that our own messages are not delayed.
        marks.sort_by_key(|(at, part)| (*at, *part != Part::Gap));
        let mut parts = Vec::new();
        let mut done = 0;
        for (at, part) in marks {
            parts.push(Part::Bytes(self.bytes[done..at].to_vec()));
            parts.push(part);
            done = at;
        }
        parts.push(Part::Bytes(self.bytes[done..].to_vec()));
        parts.retain(|part| !matches!(part, Part::Bytes(bytes) if bytes.is_empty()));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_order_and_own_messages_are_not_delayed() {
        let (bytes, second) = (
            |text: &str| Part::Bytes(text.into()),
            Duration::from_secs(1),
        );
        let mut output = Output::default();
        assert_eq!(Output::default().parts(), [bytes("")]);
        output.bytes.extend(b"ab");
        output.wait(second);
        output.bytes.extend(b"c");
        output.gap();
        output.wait(second);
        let expected = [
            bytes("ab"),
            Part::Wait(second),
            bytes("c"),
            Part::Gap,
            Part::Wait(second),
        ];
        assert_eq!(output.parts(), expected);
    }
}
