# facts.sh: what is known of jobs. Behind common.sh.
# shellcheck shell=sh
