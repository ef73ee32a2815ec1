# limit.sh: the end of a job whose time is up. Behind common.sh, members.sh, facts.sh and end.sh.
#
# Arguments: STATE_DIRECTORY ID SECONDS. The supervisor's timer has slept that long.
#
# shellcheck shell=sh disable=SC2034,SC2154

# The grace time, as kill has it (ticks).
limit_grace=1000

# wait_for_rest: the timer began before the job did, which had a profile to read first.
wait_for_rest() {
  gather "$id" >/dev/null
  [ -n "$main" ] || exit 0
  read_ticks
  # Whole seconds will do for what is left.
  rest=$((${limit%%.*} - (clock - main_ticks) / 100))
  if [ "$rest" -gt 0 ]; then sleep "$rest"; fi
}

limit() {
  state=$1 id=$2 limit=$3 marker=limit
  begin_facts
  wait_for_rest
  end_jobs time_limit "the time limit" 15 "$limit_grace" "$id"
}

limit "$@"
