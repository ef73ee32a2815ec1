# supervise.sh: behind session.sh, the one process that waits for a job and records how it ended.
#
# Arguments: DIR ID UID GID USER HOME SHELL SWITCH, then whatever else main.sh wants. Environment:
# PATH, the texts LAUNCHPAD_SUPERVISE and LAUNCHPAD_MAIN, LAUNCHPAD_SESSION_TOOL (see session.sh),
# LAUNCHPAD_ON_EXIT (a line for the shell, or empty), LAUNCHPAD_TIMER (the text of limit.sh and what
# it needs, or empty) and LAUNCHPAD_TIME_LIMIT (seconds). Descriptors: 0 main.sh's words, 8 the write
# end of the FIFO "alive", which nobody else holds for long: its end of file is the end of this process.
#
# It costs one small shell that sleeps in wait(2), and with a time limit one more, and its sleep.
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
# disk on every file system. Last resort, for a read-only one or a vanished directory: /dev/shm. Where
# nothing has mounted that (busybox's init does not), /dev itself is a file system in memory.
record_end() {
  mv -f "$dir/running" "$dir/$1" 2>/dev/null && return
  umask 077
  # Ours, and not the job's user's: facts.sh looks for it there. Whoever becomes another user is root.
  fallback=/dev/shm/launchpad-0
  [ "$switch" != none ] || fallback=/dev/shm/launchpad-$uid
  [ -d /dev/shm ] || mkdir -m 1777 /dev/shm 2>/dev/null
  mkdir "$fallback" 2>/dev/null
  [ -O "$fallback" ] && [ ! -L "$fallback" ] && : >"$fallback/$id,$1" 2>/dev/null
}

# make_cgroup: a cgroup of the job's own, below ours, if one can be had: no member can leave it by
# accident, whatever becomes of its session, its parent and its environment. It limits nothing.
make_cgroup() {
  for wanted in '' freezer; do
    while IFS=: read -r _ controllers path; do
      [ "$controllers" = "$wanted" ] || continue
      # A path with blanks fits into no record; one outside of our namespace begins with "/..".
      case $path in *[!A-Za-z0-9._/@:-]* | *..*) continue ;; esac
      for mount in "/sys/fs/cgroup/${wanted:-unified}" /sys/fs/cgroup; do
        cgroup=$mount${path%/}/launchpad-$id
        { [ -f "${cgroup%/*}/cgroup.procs" ] && mkdir "$cgroup"; } || continue
        if [ -w "$cgroup/cgroup.procs" ] && printf '1 %s .\n' "$cgroup" >"$dir/cgroup"; then
          return 0
        fi
        rmdir "$cgroup"
      done
    done </proc/self/cgroup
  done 2>/dev/null
  cgroup=
}

# remove_cgroup: if nobody is left in it.
remove_cgroup() {
  [ -z "$cgroup" ] || { rmdir "$cgroup" && rm -f "$dir/cgroup"; } 2>/dev/null
}

# start_timer: sleeps, then ends the job as kill does. Told to go, it takes its sleep along.
start_timer() {
  timer=
  [ -n "${LAUNCHPAD_TIMER-}" ] || return 0
  (
    trap 'kill "$!" 2>/dev/null; exit 0' TERM
    sleep "$LAUNCHPAD_TIME_LIMIT" &
    wait "$!"
    trap '' TERM
    set -- "${dir%/jobs/*}" "$id" "$LAUNCHPAD_TIME_LIMIT"
    eval "$LAUNCHPAD_TIMER"
  ) </dev/null >/dev/null 2>&1 5>&- 8>&- &
  timer=$!
}

# stop_timer: unless it has struck, and is about to end what the main process left behind.
stop_timer() {
  [ -n "$timer" ] || return 0
  for struck in "$dir"/kill,1,time_limit,*; do
    [ ! -e "$struck" ] || return 0
  done
  kill "$timer" 2>/dev/null
}

# run_on_exit STATE CODE: the user's own line, as the job's user, in an environment built from
# nothing; 60 seconds at most. LAUNCHPAD_JOB_ID is not in it: it is no part of the job.
run_on_exit() {
  [ -n "${LAUNCHPAD_ON_EXIT-}" ] || return 0
  exit_code=$2 exit_signal=
  [ "$1" = exited ] || exit_code='' exit_signal=$2
  on_exit_shell="sh"
  command -v bash >/dev/null && on_exit_shell=bash
  # shellcheck disable=SC2154 # supervise has set them
  set -- env -i "HOME=$home" "USER=$user" "LOGNAME=$user" "SHELL=$shell" "PATH=$PATH" LANG=C.UTF-8 \
    "LAUNCHPAD_ENDED_JOB=$id" "LAUNCHPAD_STATE=$1" "LAUNCHPAD_CODE=$2" \
    "LAUNCHPAD_EXIT_CODE=$exit_code" "LAUNCHPAD_SIGNAL=$exit_signal" "LAUNCHPAD_LOG=$dir/log" \
    "$on_exit_shell" -c "$LAUNCHPAD_ON_EXIT"
  # shellcheck disable=SC2016
  case $switch in
    setpriv) set -- setpriv "--reuid=$uid" "--regid=$gid" --init-groups -- "$@" ;;
    su) set -- busybox su -s /bin/sh -c 'exec "$@"' -- "$user" launchpad "$@" ;;
  esac
  # What it prints is kept, for whoever wonders why it did nothing.
  said=$dir/on-exit
  { true >"$said"; } 2>/dev/null || said=/dev/null
  cd "$home" 2>/dev/null || cd /
  umask 022
  timeout -s KILL 60 "$@" </dev/null >"$said" 2>&1 5>&- 8>&-
}

supervise() {
  dir=$1 id=$2 uid=$3 gid=$4 user=$5 home=$6 shell=$7 switch=$8
  cd / || exit 1
  # A clean stop of the container sends TERM to everybody. We outlive it long enough to record it.
  stopped=-
  trap 'stopped=stopped' TERM
  # As nohup does. The job inherits it; a program that wants HUP installs its own handler.
  trap '' HUP

  # The FIFO "control" is a buffer in memory, which no full disk can refuse: main.sh says on it how
  # far it came, and this shell's own "Killed" or "Terminated" lands there too. Its name goes with
  # that of "start".
  exec 5<>"$dir/control" || exit 1
  counters
  oom_before=$oom
  make_cgroup
  start_timer

  # In the foreground, without "&": an asynchronous list would leave SIGINT and SIGQUIT ignored in
  # the job, in dash and ash for good. As we lead our group, our child does not, so setsid(1) need
  # not fork and the job's main process is our child.
  # No redirection may stand on this line: dash makes it in itself, and would write "Killed" there.
  exec 2>&5
  export cgroup
  # shellcheck disable=SC2016
  in_session "$LAUNCHPAD_SESSION_TOOL" sh -c '
    [ -z "$cgroup" ] || { echo 0 >"$cgroup/cgroup.procs"; } 2>/dev/null
    eval "$LAUNCHPAD_MAIN"' launchpad "$@"
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
  stop_timer
  remove_cgroup
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
  run_on_exit "$state" "$code"
}

supervise "$@"
