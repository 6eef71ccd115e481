use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn waits_of_concurrent_requests_overlap() {
    let now = Instant::now();
    let longest = 120 * SECOND;
    let mut failing = FailureStreak::new(now);
    assert_eq!(failing.put_off(now, 10 * SECOND, longest), 10 * SECOND);
    assert_eq!(
        failing.put_off(now + SECOND, 10 * SECOND, longest),
        SECOND,
        "the rest is part of the first wait"
    );
    assert_eq!(failing.put_off(now, SECOND, longest), Duration::ZERO);
    assert_eq!(failing.since, now + 11 * SECOND);
    let later = now + 30 * SECOND;
    assert_eq!(failing.put_off(later, 5 * SECOND, longest), 5 * SECOND);
}

#[test]
fn the_total_wait_for_failures_is_limited() {
    let mut now = Instant::now();
    let mut failing = FailureStreak::new(now);
    let mut waited = Duration::ZERO;
    for _ in 0..1000 {
        waited += failing.put_off(now, SECOND, 120 * SECOND);
        now += SECOND;
    }
    assert_eq!(waited, 120 * SECOND);
    assert!(failing.since + LONG_PATIENCE < now);
}
