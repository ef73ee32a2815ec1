# follow.sh: the log as it grows. Behind common.sh and facts.sh.
# shellcheck shell=sh
follow() { frame "done"; }
