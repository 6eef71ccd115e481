//! Generated secrets in generated text: none survives, and JSON stays JSON.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::Value;

use super::super::forms;
use super::Redactor;

fn secret() -> impl Strategy<Value = String> {
    // The ends are no letters of an escape, so that no form is found where none was written.
    "[XYZ][ -~äß漢]{8,20}[XYZ]"
}

/// A character in any form that a JSON encoder may use.
fn escaped(c: char, way: u8) -> String {
    let unit = |unit: &u16| match way {
        1 => format!("\\u{unit:04x}"),
        _ => format!("\\u{unit:04X}"),
    };
    match (c, way) {
        ('/', 0) => "\\/".to_owned(),
        (_, 1 | 2) => c.encode_utf16(&mut [0; 2]).iter().map(unit).collect(),
        _ => {
            let quoted = Value::from(c.to_string()).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        }
    }
}

proptest! {
    #[test]
    fn a_secret_never_survives(secret in secret(), before in "[ -~ö]{0,9}", after in "[ -~ö]{0,9}") {
        let redactor = Redactor::new([("NAME".to_owned(), secret.clone())]);
        let forms = forms::plain(&secret).into_iter().chain(forms::base64(&secret));
        for form in forms.chain([forms::hex(&secret)]) {
            // What a percent-encoded secret decodes to may be no text, and then stands in none.
            let Ok(form) = String::from_utf8(form) else { continue };
            let redacted = redactor.text(&format!("{before}{form}{after}")).into_owned();
            prop_assert!(!redacted.contains(&form), "{}", redacted);
        }
        let once = serde_json::to_string(&format!("{before}{secret}{after}")).unwrap();
        let twice = serde_json::to_string(&[&once]).unwrap();
        let redacted = redactor.text(&twice).into_owned();
        let inner: Vec<String> = serde_json::from_str(&redacted).unwrap();
        let value: Value = serde_json::from_str(&inner[0]).unwrap();
        prop_assert!(!value.as_str().unwrap().contains(&secret));
    }

    #[test]
    fn a_secret_never_survives_escapes(
        secret in secret(),
        ways in proptest::collection::vec(0..6_u8, 24),
        before in "[ -~ö]{0,9}",
        after in "[ -~ö]{0,9}",
        layers in 0..3,
    ) {
        let redactor = Redactor::new([("NAME".to_owned(), secret.clone())]);
        let mut json: String = secret.chars().zip(ways.iter().cycle()).map(|(c, way)| escaped(c, *way)).collect();
        for _ in 0..layers {
            let quoted = serde_json::to_string(&json).unwrap();
            json = quoted[1..quoted.len() - 1].to_owned();
        }
        let text = format!("{}{json}{}", Value::from(before.clone()), Value::from(after.clone()));
        let redacted = redactor.text(&text).into_owned();
        prop_assert!(redacted.contains("[redacted:NAME]"), "{} of {}", redacted, text);
        prop_assert!(!redacted.contains(&json), "{}", redacted);
        let percent: String = secret.bytes().zip(ways.iter().cycle()).map(|(byte, way)| match way {
            0..=2 if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            3 => format!("%{byte:02x}"),
            _ => format!("%{byte:02X}"),
        }).collect();
        let redacted = redactor.text(&percent).into_owned();
        prop_assert_eq!(redacted, "[redacted:NAME]");
    }

    #[test]
    fn text_without_secrets_is_unchanged(text in "[a-w \n{}\":,0-9]{0,200}") {
        let redactor = Redactor::new([("NAME".to_owned(), "XSECRETX".to_owned())]);
        prop_assert!(matches!(redactor.text(&text), Cow::Borrowed(_)));
    }

    #[test]
    fn json_stays_json_with_any_secret(
        secrets in proptest::collection::vec("[a-cn\\\\\":,{}0-2u]{8,10}", 1..4),
        around in "[a-c\\\\\"0-2un\n]{0,6}",
    ) {
        let redactor = Redactor::new(secrets.iter().map(|secret| ("A".to_owned(), secret.clone())));
        let texts: Vec<String> = secrets.iter().map(|secret| format!("{around}{secret}{around}")).collect();
        let nested = serde_json::to_string(&texts).unwrap();
        let numbers: Vec<String> = secrets.iter().map(|s| s.replace(|c: char| !c.is_ascii_digit(), "1")).collect();
        let json = format!("{{{}:[{},{}]}}", Value::from(around), Value::from(nested), numbers.join(",").replace('0', "1"));
        let redacted = redactor.text(&json).into_owned();
        prop_assert!(serde_json::from_str::<Value>(&redacted).is_ok(), "{} became {}", json, redacted);
        prop_assert_eq!(redactor.text(&redacted).into_owned(), redacted);
    }

    #[test]
    fn redacting_twice_changes_nothing(
        parts in proptest::collection::vec(
            prop_oneof![
                "[ -~\n]{0,12}",
                Just("abcd[redacted:".to_owned()),
                Just("[redacted:A]".to_owned()),
                Just("]12345678".to_owned()),
                Just("Authorization: Bearer abcdef123".to_owned()),
                Just("sk-abcdefghijklmnop0123456789".to_owned()),
                Just("Basic dXNlcjpwYXNz".to_owned()),
                Just("{\"a\":[".to_owned()),
                Just("12345678[".to_owned()),
            ],
            0..12,
        )
    ) {
        let redactor = Redactor::new(
            ["abcd[reda", "]12345678", "12345678["].map(|secret| ("A".to_owned(), secret.to_owned())),
        );
        let once = redactor.text(&parts.concat()).into_owned();
        let twice = redactor.text(&once).into_owned();
        prop_assert_eq!(twice, once);
    }
}
