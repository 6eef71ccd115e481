//! Sets of small numbers as bits: a hundred million pairs fit in twelve megabytes.

const WORD: usize = u64::BITS as usize;

/// A set of numbers below a bound.
#[derive(Clone)]
pub(super) struct BitRow(Vec<u64>);

impl BitRow {
    fn empty(len: usize) -> Self {
        Self(vec![0; len.div_ceil(WORD)])
    }

    pub(super) fn full(len: usize) -> Self {
        let mut row = Self::empty(len);
        for at in 0..len {
            row.set(at);
        }
        row
    }

    fn set(&mut self, at: usize) {
        self.0[at / WORD] |= 1 << (at % WORD);
    }

    pub(super) fn clear(&mut self, at: usize) {
        self.0[at / WORD] &= !(1 << (at % WORD));
    }

    fn contains(&self, at: usize) -> bool {
        self.0[at / WORD] & (1 << (at % WORD)) != 0
    }
}

/// A set of pairs.
pub(super) struct BitMatrix(Vec<BitRow>);

impl BitMatrix {
    pub(super) fn empty(rows: usize, columns: usize) -> Self {
        Self(vec![BitRow::empty(columns); rows])
    }

    pub(super) fn filled(
        rows: usize,
        columns: usize,
        holds: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let mut matrix = Self::empty(rows, columns);
        for row in 0..rows {
            for column in 0..columns {
                if holds(row, column) {
                    matrix.set(row, column);
                }
            }
        }
        matrix
    }

    pub(super) fn set(&mut self, row: usize, column: usize) {
        self.0[row].set(column);
    }

    pub(super) fn contains(&self, row: usize, column: usize) -> bool {
        self.0[row].contains(column)
    }

    /// The first column that is set both in `row` and in `mask`.
    pub(super) fn first_common(&self, row: usize, mask: &BitRow) -> Option<usize> {
        let words = self.0[row].0.iter().zip(&mask.0);
        for (word, (a, b)) in words.enumerate() {
            let common = a & b;
            if common != 0 {
                return Some(word * WORD + common.trailing_zeros() as usize);
            }
        }
        None
    }
}
