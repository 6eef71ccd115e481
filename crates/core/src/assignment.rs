//! One-to-one assignments between two numbered rows (bipartite matching).
//!
//! Independent of what is assigned. Both searches return, for each item on the left, its partner on
//! the right, with as many pairs as possible. Neither recurses.

mod bits;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use self::bits::{BitMatrix, BitRow};

/// A largest assignment in any order. It calls `accepts` once for each pair.
pub fn maximum_matching(
    left: usize,
    right: usize,
    accepts: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    let mut search = Search {
        accepted: BitMatrix::filled(left, right, accepts),
        partner_of_left: vec![None; left],
        partner_of_right: vec![None; right],
        free: BitRow::full(right),
        open: BitRow::full(right),
    };
    for start in 0..left {
        search.assign(start);
    }
    search.partner_of_left
}

/// Kuhn's algorithm, with a breadth-first search for each on the left.
struct Search {
    accepted: BitMatrix,
    partner_of_left: Vec<Option<usize>>,
    partner_of_right: Vec<Option<usize>>,
    /// Those on the right without a partner.
    free: BitRow,
    /// Those on the right that no failed search has reached: the others can never be freed.
    open: BitRow,
}

impl Search {
    fn assign(&mut self, start: usize) {
        let mut unvisited = self.open.clone();
        let mut reached_from = vec![None; self.partner_of_right.len()];
        let mut queue = VecDeque::from([start]);
        while let Some(left) = queue.pop_front() {
            if let Some(right) = self.accepted.first_common(left, &self.free) {
                reached_from[right] = Some(left);
                return self.hand_over(right, &reached_from);
            }
            while let Some(right) = self.accepted.first_common(left, &unvisited) {
                unvisited.clear(right);
                reached_from[right] = Some(left);
                queue.extend(self.partner_of_right[right]);
            }
        }
        self.open = unvisited;
    }

    /// Follows the path back from a free item on the right, and reassigns each pair on it.
    fn hand_over(&mut self, free: usize, reached_from: &[Option<usize>]) {
        self.free.clear(free);
        let mut next = Some(free);
        while let Some(right) = next {
            let Some(left) = reached_from[right] else {
                return;
            };
            next = self.partner_of_left[left].replace(right);
            self.partner_of_right[right] = Some(left);
        }
    }
}

/// A largest assignment in which partners come in the same order on both sides.
/// It calls `accepts` once for each pair.
pub fn in_order(
    left: usize,
    right: usize,
    accepts: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    // The decisions are kept as bits and the lengths as two rows: a full table would need
    // gigabytes for long transcripts.
    let mut pairs = BitMatrix::empty(left, right);
    let mut skips_left = BitMatrix::empty(left, right);
    let mut below = vec![0_usize; right + 1];
    for l in (0..left).rev() {
        let mut row = vec![0; right + 1];
        for r in (0..right).rev() {
            row[r] = if accepts(l, r) && below[r + 1] + 1 >= below[r].max(row[r + 1]) {
                pairs.set(l, r);
                below[r + 1] + 1
            } else if below[r] > row[r + 1] {
                skips_left.set(l, r);
                below[r]
            } else {
                row[r + 1]
            };
        }
        below = row;
    }
    let mut partners = vec![None; left];
    let (mut l, mut r) = (0, 0);
    while l < left && r < right {
        if pairs.contains(l, r) {
            partners[l] = Some(r);
            l += 1;
            r += 1;
        } else if skips_left.contains(l, r) {
            l += 1;
        } else {
            r += 1;
        }
    }
    partners
}
