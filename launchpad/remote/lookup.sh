# lookup.sh: what became of a start whose answer was lost. Behind common.sh and facts.sh.
#
# It first forbids the start (see make_directory in launch.sh): if there is no job directory now,
# there never will be one, however late the bytes of the launch arrive. If there is one, it waits
# until the launch has come to its end, one way or the other.
#
# Replies: `absent` (nothing runs, and nothing will), or what job_facts says; then `done`. Or
#          `refused state-owner` (see check_owner in facts.sh).
#
# shellcheck shell=sh disable=SC2034,SC2094,SC2119,SC2120,SC2154
# (variables of common.sh; words come from stdin; FIFOs are opened from both sides)

absent() {
  frame absent
  frame "done"
  exit 0
}

# settle: returns when main.sh is the program or is gone; within DEADLINE seconds in any case.
settle() {
  tries=0
  # No "main" yet: the launch is at its beginning, or was killed there.
  while [ -d "$dir" ] && [ ! -e "$dir/main" ] && [ "$tries" -lt "$deadline" ]; do
    sleep 1
    tries=$((tries + 1))
  done
  # Only main.sh holds "start": its end of file is the proof of exec, or of main.sh's end.
  if [ -p "$dir/start" ] && { command exec 6<>"$dir/start" 9<"$dir/start" 6>&-; } 2>/dev/null; then
    # The launch takes it away then, and may have been killed before that: whoever asks later would
    # take the job for one that is still starting.
    timeout "$deadline" cat <&9 >/dev/null && rm -f "$dir/start" "$dir/control"
    exec 9<&-
  fi
  # A refused start is cleared up by the supervisor, which then goes: wait for that.
  read_record "$dir/main" || return
  # shellcheck disable=SC2086
  set -- $record
  is_process "$1" "$2" && return
  if [ -p "$dir/alive" ] && { command exec 6<>"$dir/alive" 7<"$dir/alive" 6>&-; } 2>/dev/null; then
    timeout "$deadline" cat <&7 >/dev/null
    exec 7<&-
  fi
}

# The words: ID STATE_DIRECTORY DEADLINE
lookup() {
  IFS=' ' read -r marker size _ || exit 1
  words=$(take "$size")
  frame "begin 1"
  eval "set -- $words"
  id=$1 state=$2 deadline=$3
  dir=$state/jobs/$id
  check_owner
  # Without a state directory a launch may still be about to make it: the fence comes first.
  umask 077
  mkdir -p "$state/fences" 2>/dev/null
  true >"$state/fences/$id" 2>/dev/null || fence_failed=yes
  [ -d "$dir" ] || {
    [ -z "${fence_failed-}" ] || {
      frame unknown
      frame "done"
      exit 0
    }
    absent
  }
  rm -f "$state/fences/$id"
  settle
  [ -d "$dir" ] || absent
  job_facts "$id"
  frame "done"
}

lookup
