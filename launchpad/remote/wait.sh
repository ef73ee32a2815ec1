# wait.sh: tells how each of several jobs ended, at the moment when it does. Behind common.sh,
# members.sh, facts.sh and follow.sh. stdin carries heartbeats.
#
# The reply: the frame `waiting`, then for each job, as it ends, what job_facts says of it, and
# `done`. It ends with the last of them.
#
# A quarter of a second after its end record a job has been told; nothing is forked meanwhile.
#
# shellcheck shell=sh disable=SC2034,SC2086,SC2119,SC2120,SC2154

# has_ended WORD: whether nothing more will become of it (or nothing can be known of it).
has_ended() {
  id=${1%%=*}
  [ -e "$state/jobs/$id/running" ] || return 0
  [ "$((turn % turns_per_look))" = 0 ] || return 1
  know_main
  if [ -n "$main_pid" ]; then
    ! main_lives
  elif [ -e "$state/jobs/$id/main" ]; then
    return 0
  else
    # A start on its way, or one that broke off: facts.sh can tell after a while.
    [ "$turn" -ge "$((60 * turns_per_look))" ]
  fi
}

# The words: STATE_DIRECTORY WORD..., as gather in facts.sh takes them
wait_for_jobs() {
  IFS=' ' read -r marker size _ || exit 1
  words=$(take "$size")
  frame "begin 1"
  eval "set -- $words"
  state=$1
  shift
  cd / || exit 1
  frame waiting
  frame "done"
  start_guard
  turn=0 dir=/dev/shm
  choose_pace
  step=0.25 turns_per_look=4
  while :; do
    left=
    for waited; do
      if has_ended "$waited"; then
        job_facts "$waited"
        frame "done"
      else
        left="$left $waited"
      fi
    done
    # Words are ids and numbers.
    set -- $left
    [ "$#" -gt 0 ] || break
    turn=$((turn + 1))
    pause
  done
  stop_guard
}

wait_for_jobs
