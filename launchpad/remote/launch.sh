# launch.sh: starts one job and proves it. Behind common.sh, user.sh, descriptors.sh, session.sh and
# follow.sh.
#
# stdin, behind the script:
#   MARKER N _       one line: the frame marker, the size in bytes of what follows
#   N bytes          the words of the launch, quoted (see launch below)
#   then heartbeats, if the log is followed
#
# Replies: `refused REASON CODE` with the detail as payload; or `existing ID` where another job has
#          the idempotency key; or `launched PID TICKS SESSION BOOT_ID BOOT_TICKS EPOCH SUPERVISOR LAUNCHER`
#          with the path of the log and the reason for the launcher as payload, each a line;
#          then `done` or follow's.
#
# The processes: this shell → setsid → setsid → supervise.sh → setsid → main.sh = the job.
# The first setsid makes a session, so the second one has to fork, and the supervisor belongs to
# nobody here: when we go, ssh goes.
#
# shellcheck shell=sh disable=SC2016,SC2034,SC2094,SC2119,SC2120,SC2154,SC3067
# (variables of common.sh; words come from stdin; FIFOs are opened from both sides; -O is in all
# three shells)

# refuse REASON CODE TEXT: nothing was started.
refuse() {
  release_key
  frame "refused $1 $2"
  printf '%s' "$3"
  frame "done"
  exit "$2"
}

# claim_key: one link for each idempotency key, made exclusively, names the job that has it. A link
# to a job that is gone (refused, pruned) is free again.
claim_key() {
  [ -n "$key" ] || return 0
  problem=$(mkdir -p "$state/keys" 2>&1) || refuse state-directory 125 "$problem"
  for attempt in 1 2 3; do
    # -n: without it the link would go into the directory that an existing one leads to.
    ln -sn "../jobs/$id" "$state/keys/$key" 2>/dev/null && key_claimed=yes && return
    # A claim comes before its job directory: give a launch beside us the time to make it.
    for patience in 1 2 3 4 5; do
      [ ! -d "$state/keys/$key/." ] || break
      [ "$patience" = 5 ] || sleep 1
    done
    if [ -d "$state/keys/$key/." ]; then
      holder=$(cd -P "$state/keys/$key" && pwd) && {
        frame "existing ${holder##*/}"
        frame "done"
        exit 0
      }
    fi
    rm -f "$state/keys/$key"
  done
  refuse state-directory 125 "$state/keys/$key"
}

release_key() {
  [ -z "${key_claimed-}" ] || rm -f "$state/keys/$key"
}

# make_state: the state directory, before anything is made or removed in it.
make_state() {
  umask 077
  # Only the first start has anything to make.
  ! is_ours "$state" "$state/jobs" || return 0
  for place in "$state" "$state/jobs"; do
    problem=$(mkdir -p "$place" 2>&1) || refuse state-directory 125 "$problem"
    is_ours "$place" || refuse state-owner 125 "$place"
  done
}

# make_directory: the job directory and all in it; DIRECTORY is made exclusively.
make_directory() {
  dir=$state/jobs/$id
  problem=$(mkdir "$dir" 2>&1) || {
    [ ! -d "$dir" ] || refuse duplicate 125 "$id"
    refuse state-directory 125 "$problem"
  }
  # lookup.sh forbids a start whose client has given up on it. It makes the fence and then looks for
  # the directory, we make the directory and then look for the fence: one of us sees the other.
  [ ! -e "$state/fences/$id" ] || abandon forbidden 125 "$id"
  problem=$({
    printf '%s\n' "$spec" >"$dir/spec" &&
      : >"$dir/running" &&
      : >"$dir/unasked" &&
      mkfifo "$dir/alive" "$dir/start" "$dir/control"
  } 2>&1) || abandon state-directory 125 "$problem"
  if [ -n "$log" ]; then
    # Everything finds the log under one name; the file itself is opened by the user.
    problem=$(ln -s "$log" "$dir/log" 2>&1) || abandon state-directory 125 "$problem"
    own_log=
  else
    own_log=$dir/log
    problem=$({ : >"$own_log" && { [ "$switch" = none ] || chown "$uid:$gid" "$own_log"; }; } 2>&1) ||
      abandon state-directory 125 "$problem"
  fi
}

# abandon REASON CODE TEXT: refuse, and leave no half-made job. Only before the supervisor exists:
# afterwards the directory is the supervisor's to remove.
abandon() {
  rm -rf "$dir"
  refuse "$@"
}

# choose_session: the tool that makes sessions here (see session.sh), and why it is not setsid(1).
choose_session() {
  for tool in setsid python3 perl nohup; do
    command -v "$tool" >/dev/null || continue
    case $tool in
      setsid) ;;
      nohup) launcher=nohup launcher_reason='no setsid, python3 or perl in the container' ;;
      *) launcher_reason="no setsid in the container: ${tool}'s was used" ;;
    esac
    return 0
  done
  abandon no-setsid 125 "$PATH"
}

# lend_terminal: a tmux server of the job's own, so that no older server's environment leaks in.
# Sets terminal, or launcher_reason where no terminal can be had. It is made before the job, and
# proven by asking for it: opening /dev/ptmx succeeds even where no PTY can be had.
lend_terminal() {
  terminal=
  command -v tmux >/dev/null || {
    launcher_reason='no tmux in the container'
    return
  }
  # sockaddr_un(7): a path has 107 bytes at most.
  [ "${#dir}" -le 100 ] || {
    launcher_reason='the state directory is too long for a tmux socket'
    return
  }
  problem=$(env -i "PATH=$PATH" TERM=xterm LANG=C.UTF-8 "LAUNCHPAD_SCREEN=$screen" \
    tmux -S "$dir/tmux" -f /dev/null new-session -d -s job -x 200 -y 50 \
    sh -c 'eval "$LAUNCHPAD_SCREEN"' launchpad "$dir" 2>&1 </dev/null) &&
    terminal=$(env -i "PATH=$PATH" TERM=xterm LANG=C.UTF-8 tmux -S "$dir/tmux" -f /dev/null \
      display-message -p -t job: '#{pane_tty}' 2>/dev/null </dev/null)
  [ ! -c "$terminal" ] || {
    launcher=tmux
    return
  }
  terminal=
  env -i "PATH=$PATH" tmux -S "$dir/tmux" -f /dev/null kill-server >/dev/null 2>&1 </dev/null
  rm -f "$dir/tmux"
  launcher_reason="tmux: ${problem:-its session did not stay}"
}

# The words: ID STATE_DIRECTORY SPEC USER LOG ON_EXIT PROFILE_DEADLINE FOLLOW KEY LAUNCHER SUPERVISE
# MAIN SCREEN TIME_LIMIT TIMER MAIN_WORDS
#   KEY: the idempotency key as a file name, or empty · FOLLOW yes|no · LAUNCHER setsid|tmux, as wanted
#   SUPERVISE, MAIN, SCREEN: the texts of those scripts
#   TIME_LIMIT: seconds, or empty · TIMER: the text of limit.sh and what it needs, or empty
#   MAIN_WORDS: the words of main.sh, quoted; passed on unread, for they may hold secrets
launch() {
  IFS=' ' read -r marker size _ || exit 1
  words=$(take "$size")
  frame "begin 1"
  eval "set -- $words"
  [ "$#" = 16 ] || refuse cut-off 125 "$#"
  id=$1 state=$2 spec=$3 wanted_user=$4 log=$5 on_exit=$6 profile_deadline=$7 follow=$8
  key=$9 wanted_launcher=${10} supervise=${11} main=${12} screen=${13}
  time_limit=${14} timer=${15} main_words=${16}
  set --
  words=
  close_inherited
  cd / || exit 1
  find_user "$wanted_user"
  # shellcheck disable=SC2088 # the tilde is text, and stands for the container user's home
  case $log in '~/'*) log=$home/${log#'~/'} ;; esac
  make_state
  claim_key
  make_directory
  launcher=setsid launcher_reason='' terminal=
  choose_session
  [ "$wanted_launcher" != tmux ] || lend_terminal
  # What was wanted stands in the spec; what came of it only where it is something else.
  [ "$launcher,$launcher_reason" = "$wanted_launcher," ] ||
    write_record "$dir/launcher" "$launcher" "$(printf '%s' "$launcher_reason" | tr '\n' ' ')" 2>/dev/null

  # A log that is appended to is shown from where this job begins.
  offset=
  [ -z "$log" ] || offset=$(stat -L -c %s "$log" 2>/dev/null)

  # Opened read-write first, so that neither open waits for the other side; then one end each.
  exec 6<>"$dir/alive" 7<"$dir/alive" 8>"$dir/alive" 6>&-
  exec 6<>"$dir/start" 9<"$dir/start" 6>&-
  # printf is built in, and the words go through a pipe: no argument vector, no file, no
  # environment ever holds them.
  printf '%s' "$main_words" |
    detached "$tool" env -i "PATH=$PATH" LC_ALL=C "LAUNCHPAD_SUPERVISE=$supervise" "LAUNCHPAD_MAIN=$main" \
      "LAUNCHPAD_ON_EXIT=$on_exit" "LAUNCHPAD_SESSION_TOOL=$tool" \
      "LAUNCHPAD_TIME_LIMIT=$time_limit" "LAUNCHPAD_TIMER=$timer" \
      sh -c 'eval "$LAUNCHPAD_SUPERVISE"' launchpad \
      "$dir" "$id" "$uid" "$gid" "$user" "$home" "$shell" "$switch" "$own_log" "$terminal" \
      >/dev/null 2>&1 7<&- 9<&-
  exec 8>&-
  main_words=

  # One line when main.sh has opened "start"; end of file when it and the supervisor are dead.
  if ! IFS= read -r _ <&7; then
    rm -rf "$dir"
    refuse launcher-died 125 "$dir"
  fi
  # End of file when the kernel has taken the program, or when main.sh has ended without.
  report=$(timeout "$profile_deadline" cat <&9)
  timed_out=$?
  exec 9<&-
  rm -f "$dir/start" "$dir/control"
  newline='
'
  identity=${report%%"$newline"*}
  identity=${identity#"up "}
  pid=${identity%% *}
  case $report in
    *"${newline}failed "*)
      await_supervisor
      detail=${report#*"${newline}failed "}
      code=${detail%% *} detail=${detail#* }
      refuse "${detail%% *}" "$code" "${detail#* }"
      ;;
    *"${newline}exec"*) [ "$timed_out" = 0 ] || end_launch exec-hangs ;;
    *"${newline}profile") if [ "$timed_out" = 0 ]; then end_launch profile-left; else end_launch profile-hangs; fi ;;
    *) end_launch launcher-died ;;
  esac
  frame "launched $identity $launcher"
  printf '%s\n%s' "${log:-$dir/log}" "$launcher_reason"
  exec 7<&-
  if [ "$follow" = yes ]; then
    follow "${offset:-0}"
  else
    frame "done"
  fi
}

# await_supervisor: it removes the directory of a job that did not start; only then is it true that
# nothing is left. If it was killed first, that is up to us.
await_supervisor() {
  cat <&7 >/dev/null
  [ ! -d "$dir" ] || rm -rf "$dir"
}

# end_launch REASON: main.sh hangs in the profile, or became something else there. It leads its own
# session: end that, and let the supervisor clear up before we answer.
end_launch() {
  kill -KILL "-$pid" "$pid" 2>/dev/null
  await_supervisor
  refuse "$1" 125 "$profile_deadline"
}

launch
