//! Finds secrets in a text and in all decoded views of it, with their position in the original
//! text.

use std::collections::BTreeMap;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};

use super::Replacement;
use super::forms;
use super::shapes::Shapes;
use super::views::{DEPTH, Layer, has_percent};

/// All forms of all known secrets.
#[derive(Debug)]
pub(super) struct Forms {
    /// Unchanged, and in base64.
    exact: Patterns,
    /// In base64 with line breaks.
    base64: Patterns,
    /// In hexadecimal, in either case.
    hex: Patterns,
}

/// Texts, with their replacements.
#[derive(Debug)]
struct Patterns {
    automaton: AhoCorasick,
    markers: Vec<Arc<str>>,
}

impl Patterns {
    fn build(patterns: BTreeMap<Vec<u8>, Arc<str>>, ignores_case: bool) -> Option<Self> {
        let (patterns, markers): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(ignores_case)
            .build(patterns);
        // Building fails only for patterns of many gigabytes.
        automaton.ok().map(|automaton| Self { automaton, markers })
    }

    fn find(&self, text: &[u8]) -> impl Iterator<Item = Replacement> {
        self.automaton.find_iter(text).map(|found| Replacement {
            range: found.range(),
            marker: self.markers[found.pattern().as_usize()].clone(),
        })
    }
}

impl Forms {
    /// The forms of all secrets, each with its replacement; `None` if there are none.
    pub(super) fn build<'a>(
        secrets: impl IntoIterator<Item = (&'a str, Arc<str>)>,
    ) -> Option<Self> {
        let [mut exact, mut base64, mut hex] = [const { BTreeMap::new() }; 3];
        for (secret, marker) in secrets {
            for form in forms::base64(secret) {
                base64.entry(form).or_insert_with(|| marker.clone());
            }
            for form in forms::plain(secret) {
                exact.entry(form).or_insert_with(|| marker.clone());
            }
            hex.entry(forms::hex(secret)).or_insert(marker);
        }
        if exact.is_empty() {
            return None;
        }
        for (form, marker) in &base64 {
            exact.entry(form.clone()).or_insert_with(|| marker.clone());
        }
        Some(Self {
            exact: Patterns::build(exact, false)?,
            base64: Patterns::build(base64, false)?,
            hex: Patterns::build(hex, true)?,
        })
    }

    /// Finds every secret in a text, in ascending order and without overlaps, however its
    /// characters are escaped. `levels` are the views of the text with decoded JSON escapes.
    pub(super) fn find(&self, text: &[u8], levels: &[Vec<u8>]) -> Vec<Replacement> {
        let mut found = self.matches(Layer::Json, text);
        found.extend(self.in_levels(Layer::Json, text, levels));
        if has_percent(levels.last().map_or(text, Vec::as_slice)) {
            let levels = self::levels(Layer::Percent, text);
            found.extend(self.in_levels(Layer::Percent, text, &levels));
        }
        merged(found)
    }

    /// The secrets in each view of a text, with their position in the text.
    fn in_levels(&self, layer: Layer, text: &[u8], levels: &[Vec<u8>]) -> Vec<Replacement> {
        let each = levels.iter().enumerate().flat_map(|(depth, level)| {
            let here = self.matches(layer, level);
            brought_back(layer, text, &levels[..=depth], here)
        });
        each.collect()
    }

    fn matches(&self, layer: Layer, text: &[u8]) -> Vec<Replacement> {
        let mut found: Vec<Replacement> = self.exact.find(text).collect();
        match Layer::Wrapped.decode(text) {
            None => found.extend(self.hex.find(text)),
            Some(joined) => {
                let here = self.base64.find(&joined).chain(self.hex.find(&joined));
                let mut here = merged(here.collect());
                Layer::Wrapped.origins(text, here.iter_mut().map(|found| &mut found.range));
                found.extend(here);
            }
        }
        whole(layer, text, merged(found))
    }
}

/// Everything that looks like a key, in the text and in its fully decoded view.
pub(super) fn shapes(shapes: &Shapes, text: &[u8], levels: &[Vec<u8>]) -> Vec<Replacement> {
    let mut found = shapes.find_all(text);
    if let Some(last) = levels.last() {
        let here = whole(Layer::Json, last, shapes.find_all(last));
        found.extend(brought_back(Layer::Json, text, levels, here));
    }
    merged(found)
}

/// The views of a text: its escapes decoded once, twice, and so on until there are none.
pub(super) fn levels(layer: Layer, text: &[u8]) -> Vec<Vec<u8>> {
    let mut levels: Vec<Vec<u8>> = Vec::new();
    while levels.len() < DEPTH {
        match layer.decode(levels.last().map_or(text, Vec::as_slice)) {
            Some(next) => levels.push(next),
            None => break,
        }
    }
    levels
}

/// The replacements in the last level, with their position in the text.
fn brought_back(
    layer: Layer,
    text: &[u8],
    levels: &[Vec<u8>],
    found: Vec<Replacement>,
) -> Vec<Replacement> {
    let mut found = found;
    for depth in (0..levels.len()).rev() {
        if found.is_empty() {
            break;
        }
        let from = depth.checked_sub(1).map_or(text, |below| &levels[below]);
        layer.origins(from, found.iter_mut().map(|found| &mut found.range));
        found = merged(found);
    }
    found
}

fn whole(layer: Layer, text: &[u8], mut found: Vec<Replacement>) -> Vec<Replacement> {
    if found.is_empty() {
        return found;
    }
    layer.whole_escapes(text, found.iter_mut().map(|found| &mut found.range));
    merged(found)
}

/// Sorts replacements and merges overlapping ones. The first and longest gives its name.
pub(super) fn merged(mut found: Vec<Replacement>) -> Vec<Replacement> {
    found.sort_by_key(|found| (found.range.start, usize::MAX - found.range.end));
    let mut merged: Vec<Replacement> = Vec::with_capacity(found.len());
    for next in found {
        match merged.last_mut() {
            Some(last) if next.range.start < last.range.end => {
                last.range.end = last.range.end.max(next.range.end);
            }
            _ => merged.push(next),
        }
    }
    merged
}
