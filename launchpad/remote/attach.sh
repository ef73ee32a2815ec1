# attach.sh: the terminal of a job with --tmux. Behind common.sh, descriptors.sh and terminal.sh. stdin
# is a terminal; the call stands behind the script.
#
# Replies as exec.sh does: frame "begin PID TICKS", then tmux, then \036MARKER exit CODE\036; or frame
# "failed CODE REASON", then "done". REASON: no-job, no-tmux, no-server (it was there, or never was).
#
# shellcheck shell=sh disable=SC2034,SC2154 # variables of common.sh and terminal.sh

fail() {
  frame "failed 125 $1"
  frame "done"
  exit 125
}

# attach_words MARKER STATE_DIRECTORY ID TERM
attach_words() {
  marker=$1 dir=$2/jobs/$3 type=$4
  close_inherited
  cd / || exit 1
  [ -d "$dir" ] || fail no-job
  command -v tmux >/dev/null || fail no-tmux
  # Its own server: the name of another one's session could be the same.
  set -- tmux -u -S "$dir/tmux" -f /dev/null
  { [ -S "$dir/tmux" ] && "$@" has-session -t job 2>/dev/null </dev/null; } || fail no-server
  known_terminal "$type"
  # Ctrl-C is a key for tmux, and must not end us before it.
  trap : INT QUIT
  read_stat $$
  frame "begin $$ $ticks"
  env -i "PATH=$PATH" "TERM=$term" LANG=C.UTF-8 "$@" attach-session -t job
  printf '\036%s exit %s\036' "$marker" "$?"
}
