# prune.sh: removes the directories of ended jobs, and what else has had its day. Behind common.sh,
# members.sh and facts.sh.
#
# The client has judged which jobs have ended; whether one of them has living processes is looked at
# again here. A log of --log is a link in the job directory, and only the link goes.
#
# Replies, behind the facts about the jobs: for each one a frame `pruned ID`, `kept ID` (processes
# live), or `failed ID` with the detail as payload; then `done`.
#
# shellcheck shell=sh disable=SC2034,SC2086,SC2119,SC2120,SC2154

# How old a fence (see lookup.sh), an idempotency key without a job, or a start that broke off must be
# before nobody can want it any more (seconds).
keeping_time=86400

# discard ID: first out of everybody's sight by one rename: no half-removed job is ever seen.
discard() {
  place=$state/jobs/$1
  if [ ! -d "$place" ] || [ -L "$place" ]; then
    frame "pruned $1"
    return
  fi
  members_of "$1"
  if [ -n "$members" ]; then
    frame "kept $1"
    return
  fi
  # Its terminal outlives a job, for whoever still looks at it.
  [ ! -S "$place/tmux" ] || tmux -S "$place/tmux" kill-server </dev/null >/dev/null 2>&1
  find_cgroup "$1"
  [ -z "$job_cgroup" ] || rmdir "$job_cgroup" 2>/dev/null
  if problem=$(mv "$place" "$trash/$1" 2>&1); then
    [ -z "$fallback" ] || rm -f "$fallback/$1",*
    frame "pruned $1"
  else
    frame "failed $1"
    printf '%s' "$problem"
  fi
}

# old_ones FILE...: those that are old enough, a line each; names without blanks only.
old_ones() {
  stat -c '%Y %n' "$@" 2>/dev/null | while IFS=' ' read -r changed place; do
    [ "$((now_epoch - changed))" -le "$keeping_time" ] || printf '%s\n' "$place"
  done
}

# tidy: what starts leave behind that were given up, refused or broken off.
tidy() {
  for place in $(old_ones "$state/fences"/*); do
    rm -f "$place"
  done
  for place in $(old_ones "$state/keys"/*); do
    { [ -L "$place" ] && [ ! -d "$place/." ]; } && rm -f "$place"
  done
  for place in "$state/jobs"/*; do
    # The first thing that a start writes is the spec, the second one the main record.
    { [ ! -e "$place/spec" ] && [ ! -e "$place/main" ]; } || continue
    case ${place##*/} in
      *[!A-Za-z0-9._-]* | *[!a-z2-7] | [!A-Za-z0-9]*) continue ;;
    esac
    [ -z "$(old_ones "$place")" ] || mv "$place" "$trash/" 2>/dev/null
  done
}

# The words: STATE_DIRECTORY ID...
prune() {
  IFS=' ' read -r marker size _ || exit 1
  words=$(take "$size")
  frame "begin 1"
  eval "set -- $words"
  state=$1
  shift
  check_owner
  begin_facts
  for id; do
    gather "$id"
  done
  print_members
  # Of its own, so that two at once do not meet; what is left of one that was killed goes too.
  trash=$state/pruned.$$
  problem=$(umask 077 && mkdir -p "$trash" 2>&1) || {
    frame "refused state-directory 125"
    printf '%s' "$problem"
    frame "done"
    exit 125
  }
  for id; do
    discard "$id"
  done
  tidy
  for place in "$state"/pruned.*; do
    rm -rf "$place" 2>/dev/null
  done
  frame "done"
}

prune
