use proctor_record::event::{Actor, WireKind};

use super::*;
use crate::recorder::Recorder;

fn body(text: &str) -> String {
    let tap = Recorder::nothing().open("s", Actor::Person, WireKind::Http, "x");
    shown_body(text.as_bytes(), &tap)
}

#[test]
fn a_page_is_reduced_to_its_text() {
    let nginx = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n\
        <center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx/1.25</center>\r\n</body></html>";
    assert_eq!(body(nginx), "502 Bad Gateway nginx/1.25");
    let page = "<!DOCTYPE html><style>p { color: red }</style><!-- <p>no</p> --><p>It&#39;s <b>gone</b> \
        &amp; away</p><SCRIPT>if (a < b) alert('x')</SCRIPT>";
    assert_eq!(body(page), "It's gone & away");
    assert_eq!(body("\u{feff} <html><body>open <p"), "open");
    assert_eq!(
        body("<html><body>a &unknown; &#xZZ; & b"),
        "a &unknown; &#xZZ; & b"
    );
}

#[test]
fn other_bodies_stay_on_one_line_and_printable() {
    assert_eq!(body("{\"a\": \"<html>\"}"), "{\"a\": \"<html>\"}");
    assert_eq!(body("a\n\n  b"), "a b");
    assert_eq!(body("red \u{1b}[31m"), "red \\u{1b}[31m");
    assert!(body(&"x".repeat(100_000)).len() < 600);
    let long = format!("<html>{}", "<b></b>text ".repeat(100_000));
    assert!(body(&long).len() < 600);
    // The truncated rest of a page without an end is not shown.
    let cut = format!("<html>{}", "x".repeat(1 << 20));
    assert_eq!(body(&cut), "");
}

#[test]
fn urls_are_shown_without_secrets() {
    let url = Url::parse("http://me:secret@127.0.0.1:80/mcp?key=secret#secret").unwrap();
    assert_eq!(shown_address(&url), "http://127.0.0.1/mcp");
}

#[test]
fn reasons_come_from_the_system() {
    let check = |error: io::Error, expected: &str| assert_eq!(reason(&error), expected);
    check(io::Error::from_raw_os_error(111), "connection refused");
    check(io::Error::from_raw_os_error(113), "no route to host");
    check(
        io::Error::other("failed to lookup address information: Name or service not known"),
        "the DNS lookup failed: name or service not known",
    );
    let untrusted = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
    check(
        io::Error::new(io::ErrorKind::InvalidData, untrusted),
        "the TLS handshake failed: the issuer of the certificate is not trusted",
    );
    check(
        io::Error::other(io::Error::from_raw_os_error(104)),
        "the server reset the connection",
    );
    check(io::Error::other("all \u{7}else"), "all \\u{7}else");
}
