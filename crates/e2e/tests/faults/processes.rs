//! Servers that do not want to end.

use crate::{PATIENT, check, ok, on_stdio};

#[test]
fn whatever_a_server_does_nothing_of_it_is_left() {
    for mode in ["ignores-sigterm", "ignores-stdin-close", "spawns-children"] {
        let args = ["--mode", mode];
        check(&args, &on_stdio(&args, PATIENT), &ok());
    }
    let all = [
        "--mode",
        "ignores-sigterm",
        "--mode",
        "ignores-stdin-close",
        "--mode",
        "spawns-children",
    ];
    check(&all, &on_stdio(&all, PATIENT), &ok());
}
