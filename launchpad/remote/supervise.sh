# supervise.sh: behind session.sh, the one process that waits for a job and records how it ended.
#
# Arguments: DIR ID UID, then whatever main.sh wants. Environment: PATH, the two texts
# LAUNCHPAD_SUPERVISE and LAUNCHPAD_MAIN, LAUNCHPAD_SESSION_TOOL (see session.sh) and
# LAUNCHPAD_ON_EXIT (a line for the shell, or empty). Descriptors: 0 main.sh's words, 8 the write end of the
# FIFO "alive", which nobody else holds for long: its end of file is the end of this process.
#
# It costs one small shell that sleeps in wait(2).
#
# shellcheck shell=sh disable=SC3067 # -O is in all three shells

# counters: how often the kernel's OOM killer struck in this container. "c" counts are the
# container's own; "h" is /proc/vmstat, the whole host's: unchanged, it proves that it was not OOM.
counters() {
  oom=h0
  for events in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control /proc/vmstat; do
    { while read -r word count _; do
      [ "$word" = oom_kill ] || continue
      case $events in /proc/*) oom=h$count ;; *) oom=c$count ;; esac
      return 0
    done <"$events"; } 2>/dev/null
  done
}

# record_end NAME: the end is the name of an (empty) file, set by rename: that works on a full
# disk on every file system. Last resort, for a read-only one or a vanished directory: /dev/shm.
record_end() {
  mv -f "$dir/running" "$dir/$1" 2>/dev/null && return
  umask 077
  mkdir "/dev/shm/launchpad-$uid" 2>/dev/null
  [ -O "/dev/shm/launchpad-$uid" ] && [ ! -L "/dev/shm/launchpad-$uid" ] &&
    : >"/dev/shm/launchpad-$uid/$id,$1" 2>/dev/null
}

supervise() {
  dir=$1 id=$2 uid=$3
  cd / || exit 1
  # A clean stop of the container sends TERM to everybody. We outlive it long enough to record it.
  stopped=-
  trap 'stopped=stopped' TERM
  # As nohup does. The job inherits it; a program that wants HUP installs its own handler.
  trap '' HUP

  # The FIFO "control" is a buffer in memory, which no full disk can refuse: main.sh says on it how
  # far it came, and this shell's own "Killed" or "Terminated" lands there too.
  mkfifo "$dir/control" && exec 5<>"$dir/control" && rm -f "$dir/control" || exit 1
  counters
  oom_before=$oom

  # In the foreground, without "&": an asynchronous list would leave SIGINT and SIGQUIT ignored in
  # the job, in dash and ash for good. As we lead our group, our child does not, so setsid(1) need
  # not fork and the job's main process is our child.
  # No redirection may stand on this line: dash makes it in itself, and would write "Killed" there.
  exec 2>&5
  # shellcheck disable=SC2016
  in_session "$LAUNCHPAD_SESSION_TOOL" sh -c 'eval "$LAUNCHPAD_MAIN"' launchpad "$@"
  code=$?
  exec 2>/dev/null
  echo . >&5

  # A real signal makes the shell print a line; `exit 137` does not. (INT and PIPE print nothing.)
  reached='' signalled=''
  while IFS= read -r line <&5; do
    case $line in
      .) break ;;
      "stage "*) reached=${line#stage } ;;
      ?*) signalled=yes ;;
    esac
  done
  if [ "$reached" != exec ]; then
    # It never became the program: nothing ran, so nothing stays.
    rm -rf "$dir"
    exit 1
  fi

  # cat is new-born: its start ticks are "now" in the clock that also stamped the job's start, which
  # no clock jump and no virtual /proc/uptime can bend.
  now=$(date +%s)
  ticks_now=$(cat /proc/self/stat)
  ticks_now=${ticks_now##*") "}
  # shellcheck disable=SC2046,SC2086
  ticks_now=$(set -- $ticks_now && echo "${20}")
  counters
  state=exited
  if [ "$code" -gt 128 ] && [ -n "$signalled" ]; then
    state=killed
    code=$((code - 128))
  fi
  record_end "end,1,$state,$code,$now,$ticks_now,$oom_before,$oom,$stopped,."
  [ -z "${LAUNCHPAD_ON_EXIT-}" ] || {
    on_exit=$LAUNCHPAD_ON_EXIT
    unset LAUNCHPAD_MAIN LAUNCHPAD_SUPERVISE LAUNCHPAD_ON_EXIT
    LAUNCHPAD_ENDED_JOB=$id LAUNCHPAD_STATE=$state LAUNCHPAD_CODE=$code LAUNCHPAD_LOG=$dir/log \
      timeout 60 sh -c "$on_exit" </dev/null >/dev/null 2>&1 5>&- 8>&-
  }
}

supervise "$@"
