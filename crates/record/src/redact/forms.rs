//! The encodings of a secret, except escapes: those are decoded before the search.

use std::collections::BTreeSet;

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD, HEXLOWER};

use super::views::{Layer, fold_blanks};

/// The secret itself, and with decoded escapes if it contains something that looks like one.
pub(super) fn plain(secret: &str) -> BTreeSet<Vec<u8>> {
    let secret = secret.as_bytes();
    let mut forms = BTreeSet::from([secret.to_vec()]);
    // Text that looks like an escape within a secret is decoded with the text around it.
    for layer in [Layer::Json, Layer::Percent] {
        let resolved = layer.decode_all(secret);
        if resolved.len() >= super::SHORTEST {
            forms.insert(resolved);
        }
    }
    let folded = forms.iter().cloned().map(|mut form| {
        fold_blanks(&mut form);
        form
    });
    let folded: Vec<_> = folded.collect();
    forms.extend(folded);
    forms
}

/// The secret in lower-case hexadecimal.
pub(super) fn hex(secret: &str) -> Vec<u8> {
    HEXLOWER.encode(secret.as_bytes()).into_bytes()
}

/// The secret in base64: complete, and the characters that don't depend on the text before and
/// after it.
pub(super) fn base64(secret: &str) -> Vec<Vec<u8>> {
    let secret = secret.as_bytes();
    let whole =
        [&BASE64, &BASE64_NOPAD, &BASE64URL, &BASE64URL_NOPAD].map(|form| form.encode(secret));
    let inside = (0..3).flat_map(|before| {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(secret);
        let bits = bytes.len() * 8;
        [&BASE64_NOPAD, &BASE64URL_NOPAD]
            .map(|form| form.encode(&bytes)[(before * 8).div_ceil(6)..bits / 6].to_owned())
    });
    whole
        .into_iter()
        .chain(inside)
        .map(String::into_bytes)
        .collect()
}
