# tail.sh: a job's log, the whole of it or its end, followed or not. Behind common.sh, members.sh,
# facts.sh and follow.sh, which describes the reply. `unknown` in place of it: no such job here.
#
# shellcheck shell=sh disable=SC2034,SC2119,SC2120,SC2154 # variables and words come from elsewhere

block=65536

# slice FROM TO: these bytes of descriptor 5's file. FROM is a multiple of $block.
slice() {
  slice_rest=$((($2 - $1) % block))
  {
    dd bs="$block" skip="$(($1 / block))" count="$((($2 - $1) / block))"
    [ "$slice_rest" = 0 ] || dd bs="$slice_rest" count=1
  } <"/proc/$$/fd/5" 2>/dev/null
}

# line_from_end COUNT SIZE: sets start to where the last COUNT lines of the first SIZE bytes begin. It
# reads from the end, in windows that grow. (busybox's tail assumes that a line has 1 KiB at most.)
line_from_end() {
  window=$block start=$2
  [ "$1" -gt 0 ] && [ "$2" -gt 0 ] || return 0
  while :; do
    start=$(($2 > window ? ($2 - window) / block * block : 0))
    # The newline of the very last byte ends a line and begins none.
    newlines=$(slice "$start" "$(($2 - 1))" | tr -dc '\n' | wc -c)
    if [ "$newlines" -ge "$1" ]; then
      rest=$(slice "$start" "$2" | tail -n "+$((newlines - $1 + 2))" | wc -c)
      start=$(($2 - rest))
      return
    fi
    [ "$start" -gt 0 ] || return 0
    window=$((window * 8))
  done
}

# line_from_start NUMBER SIZE: sets start to where line NUMBER begins, as far as there are SIZE bytes.
line_from_start() {
  start=0
  [ "$1" -gt 1 ] || return 0
  rest=$(slice 0 "$2" | tail -n "+$1" | wc -c)
  start=$(($2 - rest))
}

# find_start WHERE NUMBER: sets start and size for the log as it is now.
find_start() {
  start=0 size=0
  know_main
  open_log 0
  size=$(stat -L -c %s "/proc/$$/fd/5" 2>/dev/null) || size=0
  case $1 in
    last) line_from_end "$2" "$size" ;;
    line) line_from_start "$2" "$size" ;;
  esac
}

# dump START SIZE: what stands there now and nothing more.
dump() {
  begin_log "$1"
  # Large and aligned reads, but never past SIZE: a job that writes faster than we can send would keep
  # a plain `cat` busy for ever.
  dump_rest=$(($2 - $1))
  {
    dd bs=262144 count="$((dump_rest / 262144))" &&
      { [ "$((dump_rest % 262144))" = 0 ] || dd bs="$((dump_rest % 262144))" count=1; }
  } <&5 2>/dev/null || break_off
  event end
  finish
}

# The words: WORD STATE_DIRECTORY FOLLOW WHERE NUMBER [HEX]
#   WORD as gather in facts.sh takes it: the job's id, and the identity that is known
#   FOLLOW yes|no
#   WHERE last: NUMBER lines from the end · line: from line NUMBER on · byte: from that offset on,
#   where HEX are the bytes before it as hex_before gives them
tail_log() {
  IFS=' ' read -r marker size _ || exit 1
  words=$(take "$size")
  frame "begin 1"
  eval "set -- $words"
  word=$1 id=${1%%=*} state=$2
  dir=$state/jobs/$id
  cd / || exit 1
  if [ ! -d "$dir" ]; then
    frame unknown
    frame "done"
    exit 0
  fi
  find_start "$4" "$5"
  [ "$4" != byte ] || start=$5
  if [ "$3" = yes ]; then
    follow "$start" "${6-}"
  else
    dump "$start" "$size"
  fi
}

tail_log
