use super::*;
use reqwest::header::{HeaderName, HeaderValue};

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    };
    pairs.iter().map(pair).collect()
}

/// The headers, and the wait in milliseconds.
type Row = (&'static [(&'static str, &'static str)], Option<u64>);

#[test]
fn every_kind_of_retry_after_is_read() {
    const NOW: (&str, &str) = ("date", "Sun, 15 Nov 2026 08:00:00 GMT");
    let day = 24 * 3600 * 1000;
    let table: [Row; 16] = [
        (&[], None),
        (&[("retry-after", "3")], Some(3_000)),
        (&[("retry-after", " 0.25 ")], Some(250)),
        (&[("retry-after", "0")], Some(0)),
        (&[("retry-after", "-1")], None),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "")], None),
        (&[("retry-after", "NaN")], None),
        (&[("retry-after", "inf")], None),
        (&[("retry-after", "1e300")], Some(day)),
        (&[("retry-after-ms", "120")], Some(120)),
        (
            &[("retry-after-ms", "120"), ("retry-after", "9")],
            Some(120),
        ),
        (
            &[("retry-after-ms", "x"), ("retry-after", "9")],
            Some(9_000),
        ),
        (
            &[("retry-after", "Sun, 15 Nov 2026 08:00:07 GMT"), NOW],
            Some(7_000),
        ),
        (
            &[("retry-after", "Sun, 15 Nov 2026 07:00:00 GMT"), NOW],
            Some(0),
        ),
        (
            &[("retry-after", "Sun, 15 Nov 2099 08:00:00 GMT"), NOW],
            Some(day),
        ),
    ];
    for (given, expected) in table {
        let read = retry_after(&headers(given));
        assert_eq!(read, expected.map(Duration::from_millis), "{given:?}");
    }
}

#[test]
fn errors_are_classified_by_status_code_and_text() {
    let kind = |status: u16, body: &str| {
        let status = StatusCode::from_u16(status).unwrap();
        let error = of_status(status, &HeaderMap::new(), body.as_bytes(), str::to_owned);
        let name = format!("{error:?}");
        name.split([' ', '{']).next().unwrap().to_owned()
    };
    for (status, body, expected) in [
        (401, r#"{"error":{"message":"no"}}"#, "Key"),
        (403, "", "Key"),
        (429, r#"{"error":{"message":"slow"}}"#, "RateLimited"),
        (429, r#"{"error":{"code":"insufficient_quota"}}"#, "Key"),
        (500, "<html>", "Unavailable"),
        (503, "", "Unavailable"),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
            "Unavailable",
        ),
        (408, "", "Unavailable"),
        (
            400,
            r#"{"error":{"code":"context_length_exceeded"}}"#,
            "ContextOverflow",
        ),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8"}}"#,
            "ContextOverflow",
        ),
        (
            400,
            r#"{"error":{"message":"prompt is too long: 9 > 8"}}"#,
            "ContextOverflow",
        ),
        (413, "", "ContextOverflow"),
        (400, r#"{"error":{"message":"bad"}}"#, "Rejected"),
        (404, r#"{"error":"model not found"}"#, "Rejected"),
        (422, r#"{"detail":"x"}"#, "Rejected"),
        (307, "", "Rejected"),
    ] {
        assert_eq!(kind(status, body), expected, "{status} {body}");
    }
}

#[test]
fn the_text_of_an_error_is_kept() {
    let detail = |body: &str| {
        let error = of_status(
            StatusCode::BAD_REQUEST,
            &HeaderMap::new(),
            body.as_bytes(),
            str::to_owned,
        );
        error.to_string()
    };
    assert!(detail(r#"{"error":{"message":"no such tool"}}"#).ends_with(": no such tool"));
    assert!(detail(r#"{"error":"gone"}"#).ends_with(": gone"));
    let named = r#"{"error":{"message":"not supported","param":"temperature"}}"#;
    assert!(detail(named).ends_with("not supported (`temperature`)"));
    assert!(detail(r#"{"odd":1}"#).ends_with(r#"{"odd":1}"#));
    assert!(detail("<b>").ends_with("400 Bad Request: <b>"));
    assert!(detail("").ends_with("400 Bad Request"));
}
