//! Assignments, against every assignment there is.

use proptest::prelude::*;

use super::*;

type Table = Vec<Vec<bool>>;

fn any_table() -> impl Strategy<Value = Table> {
    (0_usize..6).prop_flat_map(|right| {
        prop::collection::vec(prop::collection::vec(any::<bool>(), right), 0..6)
    })
}

fn width(table: &Table) -> usize {
    table.first().map_or(0, Vec::len)
}

/// The size of the largest assignment of rows from `row` on.
fn brute_force(table: &Table, row: usize, used: &mut Vec<usize>, ordered: bool) -> usize {
    if row == table.len() {
        return 0;
    }
    let mut best = brute_force(table, row + 1, used, ordered);
    for column in 0..width(table) {
        let allowed = if ordered {
            used.last().is_none_or(|last| *last < column)
        } else {
            !used.contains(&column)
        };
        if table[row][column] && allowed {
            used.push(column);
            best = best.max(1 + brute_force(table, row + 1, used, ordered));
            used.pop();
        }
    }
    best
}

fn check_partners(table: &Table, partners: &[Option<usize>]) -> usize {
    assert_eq!(partners.len(), table.len());
    let mut used = Vec::new();
    for (row, partner) in partners.iter().enumerate() {
        if let Some(column) = partner {
            assert!(table[row][*column]);
            assert!(!used.contains(column));
            used.push(*column);
        }
    }
    used.len()
}

proptest! {
    #[test]
    fn a_matching_is_as_large_as_can_be(table in any_table()) {
        let partners = maximum_matching(table.len(), width(&table), |l, r| table[l][r]);
        prop_assert_eq!(
            check_partners(&table, &partners),
            brute_force(&table, 0, &mut Vec::new(), false)
        );
    }

    #[test]
    fn an_assignment_in_order_is_as_large_as_can_be(table in any_table()) {
        let partners = in_order(table.len(), width(&table), |l, r| table[l][r]);
        prop_assert!(partners.iter().flatten().is_sorted());
        prop_assert_eq!(
            check_partners(&table, &partners),
            brute_force(&table, 0, &mut Vec::new(), true)
        );
    }
}

#[test]
fn a_long_chain_of_partners_is_handed_over() {
    // Everyone sits one seat too far to the left; the last one makes all of them move.
    let size = 3_000;
    let partners = maximum_matching(size, size, |l, r| {
        if l == size - 1 {
            r == 0
        } else {
            r == l || r == l + 1
        }
    });
    assert!(partners.iter().all(Option::is_some));
}

#[test]
fn an_empty_row_has_no_pairs() {
    assert_eq!(maximum_matching(2, 0, |_, _| true), [None, None]);
    assert_eq!(maximum_matching(0, 2, |_, _| true), []);
    assert_eq!(in_order(2, 0, |_, _| true), [None, None]);
    assert_eq!(in_order(0, 2, |_, _| true), []);
}
