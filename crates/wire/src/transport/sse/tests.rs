use super::*;

fn events(chunks: &[&str], limit: usize) -> Vec<(String, Result<String, u64>)> {
    let mut events = Events::new(limit);
    chunks
        .iter()
        .flat_map(|chunk| events.take(chunk.as_bytes()))
        .map(|e| {
            let data = e.data.map(|d| String::from_utf8(d).unwrap());
            (e.name, data.map_err(|cut| cut.bytes))
        })
        .collect()
}

fn message(data: &str) -> (String, Result<String, u64>) {
    ("message".to_owned(), Ok(data.to_owned()))
}

#[test]
fn events_end_at_blank_lines() {
    assert_eq!(events(&["data: a\n\n"], 99), [message("a")]);
    assert_eq!(
        events(&["data:a\r\n\r\ndata: b\r\r"], 99),
        [message("a"), message("b")]
    );
    assert_eq!(
        events(&["data: a\ndata:  b\ndata\n\n"], 99),
        [message("a\n b\n")]
    );
    assert_eq!(
        events(&["event: endpoint\nid: 1\n: comment\ndata: /x\n\n"], 99),
        [("endpoint".to_owned(), Ok("/x".to_owned()))]
    );
    assert_eq!(events(&["event: x\n\ndata: y\n\n"], 99), [message("y")]);
    assert_eq!(events(&["data: unfinished\n"], 99), []);
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_first_line() {
    let text = "\u{feff}data: a\n\n\u{feff}data: b\n\n";
    assert_eq!(events(&[text], 99), [message("a")]);
    let cut = |text: &str| {
        let mut events = Events::new(99);
        let all = text.as_bytes().chunks(1);
        all.flat_map(|byte| events.take(byte)).count()
    };
    assert_eq!(cut(text), 1);
    let mut half = Events::new(99);
    assert_eq!(half.take(b"\xef\xbbdata: a\n\n"), []);
    assert_eq!(half.take(b"data: a\n\n").len(), 1);
}

#[test]
fn event_ids_and_retry_delays_are_kept() {
    let after = |text: &str| {
        let mut events = Events::new(99);
        events.take(text.as_bytes());
        let id = events
            .last_id()
            .map(|id| String::from_utf8(id.to_vec()).unwrap());
        (id, events.retry().map(|time| time.as_millis()))
    };
    let id = |id: &str| Some(id.to_owned());
    assert_eq!(after("data: a\n\n"), (None, None));
    assert_eq!(after("id: 7\nretry: 250\ndata: \n\n"), (id("7"), Some(250)));
    assert_eq!(after("id:7\n\n"), (id("7"), None));
    // An incomplete event may have to be sent again.
    assert_eq!(after("id: 1\ndata: a\n\nid: 2\ndata: b\n"), (id("1"), None));
    assert_eq!(after("id: 1\n\nid\ndata: a\n\n"), (None, None));
    assert_eq!(after("id: 1\n\ndata: a\n\n"), (id("1"), None));
    assert_eq!(after("id: a\0b\nretry: soon\n\nidle: 1\n\n"), (None, None));
}

#[test]
fn an_incomplete_last_event_is_returned() {
    let rest = |text: &str| {
        let mut events = Events::new(5);
        events.take(text.as_bytes());
        events.end().map(|rest| rest.map_err(|cut| cut.bytes))
    };
    assert_eq!(rest("data: a\n\n"), None);
    assert_eq!(rest("data: a\n"), Some(Ok(b"a".to_vec())));
    assert_eq!(rest("data: a\ndata: b"), Some(Ok(b"a\nb".to_vec())));
    assert_eq!(rest("data: abcdef"), Some(Err(6)));
    assert_eq!(rest("even"), Some(Ok(b"even".to_vec())));
}

#[test]
fn oversized_data_is_counted_and_does_not_affect_the_next() {
    let large = format!("data: {}\n\ndata: ok\n\n", "x".repeat(1_000));
    assert_eq!(
        events(&[&large], 100),
        [("message".to_owned(), Err(1_000)), message("ok")]
    );
}

#[test]
fn chunks_may_end_anywhere() {
    let text = "event: e\r\ndata: one\r\ndata: two\r\n\r\ndata:x\n\n: c\n\ndata\n\n";
    let expected = events(&[text], 99);
    assert_eq!(expected.len(), 3);
    for at in 0..=text.len() {
        assert_eq!(
            events(&[&text[..at], &text[at..]], 99),
            expected,
            "split at {at}"
        );
    }
    let bytes: Vec<String> = text.chars().map(String::from).collect();
    let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
    assert_eq!(events(&bytes, 99), expected);
}
