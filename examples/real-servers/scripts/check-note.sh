#!/bin/sh
# Whether the note $NOTE of the workspace was corrected.
set -e
cd ../workspace
grep -q 'buy tea' "$NOTE"
! grep -q milk "$NOTE"
