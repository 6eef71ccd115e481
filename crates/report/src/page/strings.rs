//! Texts and sets of texts that many trials share, each stored once.

use std::collections::HashMap;

/// Texts by position, and sets of such positions.
#[derive(Debug, Default)]
pub(super) struct Strings {
    texts: Interned<String>,
    sets: Interned<Vec<usize>>,
}

#[derive(Debug)]
struct Interned<T> {
    all: Vec<T>,
    known: HashMap<T, usize>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            known: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Interned<T> {
    fn position(&mut self, item: T) -> usize {
        if let Some(position) = self.known.get(&item) {
            return *position;
        }
        self.all.push(item.clone());
        self.known.insert(item, self.all.len() - 1);
        self.all.len() - 1
    }
}

impl Strings {
    /// The position of a text.
    pub(super) fn text(&mut self, text: &str) -> usize {
        match self.texts.known.get(text) {
            Some(position) => *position,
            None => self.texts.position(text.to_owned()),
        }
    }

    /// The position of a set of texts.
    pub(super) fn set(&mut self, texts: &[String]) -> usize {
        let mut set: Vec<usize> = texts.iter().map(|text| self.text(text)).collect();
        set.sort_unstable();
        set.dedup();
        self.sets.position(set)
    }

    /// All texts and all sets.
    pub(super) fn into_lists(self) -> (Vec<String>, Vec<Vec<usize>>) {
        (self.texts.all, self.sets.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_and_sets_are_stored_once() {
        let mut strings = Strings::default();
        let of =
            |texts: &[&str]| -> Vec<String> { texts.iter().map(|t| (*t).to_owned()).collect() };
        assert_eq!(strings.text("b"), 0);
        assert_eq!(strings.set(&of(&["a", "b"])), 0);
        assert_eq!(strings.set(&of(&["b", "a", "a"])), 0);
        assert_eq!(strings.set(&[]), 1);
        let (texts, sets) = strings.into_lists();
        assert_eq!(texts, ["b", "a"]);
        assert_eq!(sets, [vec![0, 1], vec![]]);
    }
}
