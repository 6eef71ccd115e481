//! The tables that pandas, R and spreadsheets read.

use std::collections::BTreeSet;

use proctor_report::csv::{self, Table};

use crate::sample::{HOSTILE, Sample};

fn written(sample: &Sample, table: Table) -> String {
    let mut out = Vec::new();
    csv::write(&sample.report(), table, &mut out).expect("a table");
    String::from_utf8(out).expect("a text")
}

/// Reads a table as RFC 4180 says, and undoes the apostrophes.
fn read(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    let mut is_quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                cell.push('"');
                chars.next();
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(row.is_empty() && cell.is_empty(), "the last line is whole");
    rows
}

#[test]
fn the_tables_have_a_row_per_trial_call_and_check() {
    let sample = Sample::new();
    for table in Table::ALL {
        insta::assert_snapshot!(table.name(), written(&sample, table));
    }
}

#[test]
fn every_row_has_all_columns_and_names_a_trial() {
    let sample = Sample::new();
    let trials = read(&written(&sample, Table::Trials));
    assert_eq!(trials.len(), 1 + 14, "trials that did not run have a row");
    let key = |row: &Vec<String>| row[..5].to_vec();
    let known: BTreeSet<Vec<String>> = trials.iter().map(key).collect();
    assert_eq!(known.len(), trials.len(), "the keys are unique");
    for table in Table::ALL {
        let rows = read(&written(&sample, table));
        for row in &rows {
            assert_eq!(row.len(), rows[0].len(), "{row:?}");
            assert!(known.contains(&key(row)), "{row:?}");
        }
    }
}

#[test]
fn hostile_texts_survive_and_are_never_formulas() {
    let sample = Sample::new();
    let expected = HOSTILE.replace('\u{1b}', "\\u{1b}");
    let expected = expected.replace('\0', "\\u{0}").replace('\u{7}', "\\u{7}");
    let trials = read(&written(&sample, Table::Trials));
    let row = trials.iter().find(|row| row[2] == expected);
    let reason = trials[0].iter().position(|name| name == "reason").unwrap();
    assert_eq!(row.unwrap()[reason], expected);
    for table in Table::ALL {
        for cell in read(&written(&sample, table)).into_iter().flatten() {
            let is_number = cell.parse::<f64>().is_ok();
            let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert!(is_number || !is_formula, "{cell}");
        }
    }
}
