#!/bin/sh
# Whether the note $NOTE was corrected.
set -e
cd "$PROCTOR_TRIAL_DIR"
grep -q 'buy tea' "$NOTE"
! grep -q milk "$NOTE"
