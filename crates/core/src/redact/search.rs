//! Finds secrets in a text and in every view of it, and says where they stand in the text itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};

use super::Replacement;
use super::shapes::Shapes;
use super::views::{DEPTH, Layer, has_percent};

/// Every form of every secret that is known.
#[derive(Debug)]
pub(super) struct Forms {
    automaton: AhoCorasick,
    /// What replaces each of the automaton's patterns.
    markers: Vec<Arc<str>>,
}

impl Forms {
    pub(super) fn build(patterns: BTreeMap<Vec<u8>, Arc<str>>) -> Option<Self> {
        if patterns.is_empty() {
            return None;
        }
        let (patterns, markers): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(patterns);
        // Only patterns of many gigabytes can't be built.
        automaton.ok().map(|automaton| Self { automaton, markers })
    }

    /// Every secret of a text, ascending and disjoint, however its characters are escaped. `levels`
    /// are the text's views without its escapes of JSON.
    pub(super) fn find(&self, text: &[u8], levels: &[Vec<u8>]) -> Vec<Replacement> {
        let mut found = self.matches(Layer::Json, text);
        found.extend(self.in_levels(Layer::Json, text, levels));
        if has_percent(levels.last().map_or(text, Vec::as_slice)) {
            let levels = self::levels(Layer::Percent, text);
            found.extend(self.in_levels(Layer::Percent, text, &levels));
        }
        merged(found)
    }

    /// What each view of a text holds, with its place in the text.
    fn in_levels(&self, layer: Layer, text: &[u8], levels: &[Vec<u8>]) -> Vec<Replacement> {
        let each = levels.iter().enumerate().flat_map(|(depth, level)| {
            let here = self.matches(layer, level);
            brought_back(layer, text, &levels[..=depth], here)
        });
        each.collect()
    }

    fn matches(&self, layer: Layer, text: &[u8]) -> Vec<Replacement> {
        let matches = self.automaton.find_iter(text);
        let found = matches.map(|found| Replacement {
            range: found.range(),
            marker: self.markers[found.pattern().as_usize()].clone(),
        });
        whole(layer, text, found.collect())
    }
}

/// What looks like a key, in the text and in what it says once all escapes are resolved.
pub(super) fn shapes(shapes: &Shapes, text: &[u8], levels: &[Vec<u8>]) -> Vec<Replacement> {
    let mut found = shapes.find_all(text);
    if let Some(last) = levels.last() {
        let here = whole(Layer::Json, last, shapes.find_all(last));
        found.extend(brought_back(Layer::Json, text, levels, here));
    }
    merged(found)
}

/// The views of a text: its escapes resolved once, twice, and so on until there are none.
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

/// What was found in the last of the levels, with its place in the text.
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

/// Ascending and disjoint. Of those that overlap, the first and longest gives its name.
fn merged(mut found: Vec<Replacement>) -> Vec<Replacement> {
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
