//! What leaves on a stream: bytes, with the places between messages.
//!
//! Its main type is [`Output`].

use std::time::Duration;

/// What can leave of a stream now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    /// Where messages of ours may come between: behind the last message that ended.
    pub(crate) gap: Option<usize>,
    /// Which bytes wait, and how long.
    waits: Vec<(usize, Duration)>,
}

/// A part of what leaves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Bytes(Vec<u8>),
    /// Nothing leaves for this time.
    Wait(Duration),
    /// Messages of ours may leave here.
    Gap,
}

impl Output {
    /// Nothing yet, of a chunk of so many bytes.
    pub(crate) fn of(length: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(length),
            ..Self::default()
        }
    }

    /// What leaves from here on waits.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.waits.push((self.bytes.len(), time));
    }

    /// A message of ours may come here.
    pub(crate) fn gap(&mut self) {
        self.gap = Some(self.bytes.len());
    }

    /// All of it, in order.
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
        // A gap that is where a wait is comes before it: what is ours does not wait.
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
    fn parts_are_in_order_and_ours_does_not_wait() {
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
