# screen.sh: what runs in the tmux pane of a job with --tmux. Argument: the job directory.
#
# The job itself never depends on tmux: it has a session of its own, its output goes to the log as
# always. The pane lends it a terminal as stdin, shows the log, and hands on Ctrl-C and Ctrl-\. If
# tmux dies, the job loses its stdin and nothing else.
#
# shellcheck shell=sh disable=SC2094

screen() {
  dir=$1
  cd / || exit 1
  trap '' TSTP INT QUIT
  # The launch is at work: it takes "start" away when it has ended, one way or the other.
  while [ -e "$dir/start" ]; do sleep 0.1 2>/dev/null || sleep 1; done
  pid='' supervisor=''
  # 1 PID TICKS SESSION BOOT_ID BOOT_TICKS EPOCH SUPERVISOR .
  { IFS=' ' read -r _ pid _ _ _ _ _ supervisor _ <"$dir/main"; } 2>/dev/null
  [ -n "$supervisor" ] || exit 0
  trap 'kill -INT "-$pid" 2>/dev/null' INT
  trap 'kill -QUIT "-$pid" 2>/dev/null' QUIT
  # In the background it ignores Ctrl-C, which is right: that is meant for the job.
  tail -n +1 -f "$dir/log" &
  shown=$!
  # Opened read-write first, so that opening does not wait for a writer that may be gone.
  exec 6<>"$dir/alive" 7<"$dir/alive" 6>&-
  # End of file is the supervisor's end; a signal that is handed on ends `read` as well.
  while ! read -r _ <&7 && [ -e "$dir/running" ] && kill -0 "$supervisor" 2>/dev/null; do :; done
  sleep 1
  kill "$shown" 2>/dev/null
}

screen "$@"
