# kill.sh: the verb. Behind common.sh, members.sh, facts.sh and end.sh.
#
# The words: STATE_DIRECTORY BY SIGNAL GRACE WORD...; BY says who asks, the others as end_jobs takes
# them. Replies: what facts.sh says of the jobs before, a frame "ended" for each, the facts after.
#
# It goes to its end even if nobody listens any more: a kill that stops half-way is the worst kind.
#
# shellcheck shell=sh disable=SC2034,SC2086,SC2119,SC2120,SC2154

kill_jobs() {
  trap '' HUP INT PIPE
  IFS=' ' read -r marker size _ || exit 1
  words=$(take "$size")
  frame "begin 1"
  eval "set -- $words"
  state=$1 by=$2 signal=$3 grace=$4
  shift 4
  check_owner
  begin_facts
  end_jobs launchpad "$by" "$signal" "$grace" "$@"
  asked=
  for word; do
    gather "$word"
    asked="$asked ${word%%=*}"
  done
  # The last look of end_jobs was at all of them.
  print_found_members
  print_files no 1024 $asked
  frame "done"
}

kill_jobs
