//! The file names of trials.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// How many characters of a trial's name its file name shows.
const SHOWN: usize = 80;

/// How many digits of the hash distinguish similar names.
const HASH: usize = 12;

/// The name of a trial, which is unique in its run and equal for all attempts.
pub fn trial_name(case: &str, agent: &str, repeat: u32) -> String {
    format!("{case}:{agent}:{repeat}")
}

/// The file name of a trial, without attempt and extension.
///
/// A name of lower-case letters, digits, `.`, `_` and `-` is kept. Any other name is converted, and
/// gets a hash of the original name: two names never share a file, even if the file system ignores
/// case.
pub fn trial_stem(name: &str) -> String {
    let mut shown = String::with_capacity(SHOWN + HASH + 2);
    shown.extend(name.chars().take(SHOWN).map(|c| match c {
        c if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') => c,
        _ => '-',
    }));
    // A leading dot hides a file, and many programs read a leading dash as an option.
    if shown.is_empty() || shown.starts_with(['.', '-']) {
        shown.insert(0, '_');
    }
    if shown == name && !name.contains(char::is_uppercase) && !is_device(name) {
        return shown;
    }
    shown.push('-');
    HEXLOWER.encode_append(&Sha256::digest(name)[..HASH / 2], &mut shown);
    shown
}

/// Windows treats these names as devices, with any extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    let numbered = |prefix| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest: &str| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(stem, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}
