use super::*;

#[test]
fn trials_run_in_order_and_parallel_ones_together() {
    let check = |parallel: &[bool], width: Parallelism, expected: &[(usize, &[u32])]| {
        let trials: TrialList = parallel
            .iter()
            .map(|parallel| TrialSpec {
                case: 0,
                agent: 0,
                repeat: 1,
                attempt: 1,
                limits: Limits::default(),
                parallel: *parallel,
                known_failure: false,
            })
            .collect();
        let expected: Vec<TrialBatch> = expected
            .iter()
            .map(|(width, trials)| TrialBatch {
                width: *width,
                trials: trials.iter().copied().collect(),
            })
            .collect();
        assert_eq!(batches(&trials, width), expected, "{parallel:?} {width:?}");
    };
    check(&[], Parallelism::Any(4), &[]);
    check(&[true, false], Parallelism::Willing(1), &[(1, &[0, 1])]);
    check(
        &[true, false, true, false],
        Parallelism::Willing(3),
        &[(1, &[1, 3]), (3, &[0, 2])],
    );
    check(&[true, true], Parallelism::Willing(2), &[(2, &[0, 1])]);
    check(
        &[false, true, false],
        Parallelism::Any(2),
        &[(2, &[0, 1, 2])],
    );
    check(&[false], Parallelism::Any(0), &[(1, &[0])]);
}
