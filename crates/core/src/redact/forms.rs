//! The forms in which a secret travels.

use std::collections::BTreeSet;

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD};

/// The secret as it is, and every other form of it that is looked for.
pub(super) fn of(secret: &str) -> BTreeSet<Vec<u8>> {
    let mut forms = BTreeSet::from([secret.as_bytes().to_vec()]);
    let mut texts = BTreeSet::from([secret.to_owned()]);
    texts.extend(percent_encoded(secret));
    for once in json_escaped(secret) {
        texts.extend(json_escaped(&once));
        texts.insert(once);
    }
    forms.extend(texts.into_iter().map(String::into_bytes));
    forms.extend(base64(secret.as_bytes()));
    forms
}

/// Whole, and the characters that are the same whatever stands before and behind the secret.
fn base64(secret: &[u8]) -> Vec<Vec<u8>> {
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

/// As the encoders of URLs, of parts of URLs and of forms write it.
fn percent_encoded(secret: &str) -> Vec<String> {
    /// What RFC 3986, `encodeURIComponent`, HTML forms and `encodeURI` leave as it is.
    const KEPT: [&str; 4] = ["-._~", "-._~!*'()", "-._*", "-._~!*'();/?:@&=+$,#"];
    KEPT.iter()
        .flat_map(|kept| {
            let upper = percent(secret, kept, false);
            // Some write a blank as `+` and some in lower case.
            let plus = upper.replace("%20", "+");
            [percent(secret, kept, true), upper, plus]
        })
        .collect()
}

fn percent(secret: &str, kept: &str, lower: bool) -> String {
    let mut out = String::with_capacity(secret.len() * 3);
    for byte in secret.bytes() {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || (c.is_ascii() && kept.contains(c)) {
            out.push(c);
        } else if lower {
            out.push_str(&format!("%{byte:02x}"));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// As encoders of JSON write it: some escape `/`, some what HTML minds, some all that is not ASCII.
fn json_escaped(secret: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for slash in [false, true] {
        for html in [false, true] {
            for ascii in [false, true] {
                for upper in [false, true] {
                    let style = Style {
                        slash,
                        html,
                        ascii,
                        upper,
                    };
                    forms.push(secret.chars().map(|c| style.escape(c)).collect());
                }
            }
        }
    }
    forms
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a habit of some encoder, independent of the others"
)]
struct Style {
    slash: bool,
    html: bool,
    ascii: bool,
    upper: bool,
}

impl Style {
    fn escape(&self, c: char) -> String {
        match c {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '\t' => "\\t".to_owned(),
            '\u{8}' => "\\b".to_owned(),
            '\u{c}' => "\\f".to_owned(),
            '/' if self.slash => "\\/".to_owned(),
            '<' | '>' | '&' | '\'' if self.html => self.unicode(c),
            c if c.is_control() || (self.ascii && !c.is_ascii()) => self.unicode(c),
            c => c.to_string(),
        }
    }

    fn unicode(&self, c: char) -> String {
        let mut units = [0; 2];
        c.encode_utf16(&mut units)
            .iter()
            .map(|unit| {
                if self.upper {
                    format!("\\u{unit:04X}")
                } else {
                    format!("\\u{unit:04x}")
                }
            })
            .collect()
    }
}
