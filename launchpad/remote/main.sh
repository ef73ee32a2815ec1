# main.sh: the shell that becomes the job's main process, under the PID that is reported.
#
# Arguments, as launch.sh orders them: DIR ID UID GID NAME HOME SHELL SWITCH LOG TERMINAL.
# Descriptors: 0 the words of main (see below), 5 the supervisor's FIFO "control", 8 the FIFO "alive".
# LAUNCHPAD_MAIN is this text; LAUNCHPAD_STAGE is empty at first, "user" once we are the wanted user.
#
# Stage one is root (or whoever launched): it records who we are, then becomes the wanted user in
# an environment built from nothing, keeping the PID. Stage two reads the words, the profile, and
# at last becomes the program.
#
# Every name begins with launchpad_ because a login profile is read into this shell.
#
# shellcheck shell=sh

# launchpad_say LINE: to the launcher on 3 and to the supervisor on 5. Both are FIFOs that their
# reader also keeps open for writing, or has gone: nothing here can block or raise SIGPIPE.
launchpad_say() {
  printf '%s\n' "$1" >&3
  printf 'stage %s\n' "${1%%[ ]*}" >&5
}

# launchpad_fail CODE REASON TEXT: the job cannot start. TEXT may be anything, newlines included.
launchpad_fail() {
  printf 'failed %s %s %s' "$1" "$2" "$3" >&3
  printf 'stage failed\n' >&5
  trap - EXIT
  exit "$1"
}

launchpad_become_user() {
  # The supervisor watches descriptor 2 for its own shell's words; ours must not mix in.
  exec 2>/dev/null
  umask 077
  launchpad_dir=$1 launchpad_id=$2 launchpad_uid=$3 launchpad_gid=$4 launchpad_name=$5
  launchpad_home=$6 launchpad_shell=$7 launchpad_switch=$8 launchpad_log=$9
  launchpad_terminal=${10}
  # Read-write, so that opening never waits for a reader: whoever launched us may have died.
  exec 3<>"$launchpad_dir/start"
  launchpad_stat=
  IFS= read -r launchpad_stat <"/proc/$$/stat"
  launchpad_stat=${launchpad_stat##*") "}
  # shellcheck disable=SC2086
  set -- $launchpad_stat
  launchpad_ticks=${20} launchpad_session=$4 launchpad_parent=$2
  launchpad_boot=unknown launchpad_boot_ticks=0
  { IFS= read -r launchpad_boot </proc/sys/kernel/random/boot_id; } 2>/dev/null
  { IFS= read -r launchpad_stat </proc/1/stat; } 2>/dev/null && {
    # shellcheck disable=SC2086
    set -- ${launchpad_stat##*") "}
    launchpad_boot_ticks=${20}
  }
  launchpad_record="$$ $launchpad_ticks $launchpad_session $launchpad_boot $launchpad_boot_ticks $(date +%s) $launchpad_parent"
  # Our identity, from inside and before anything of the job runs: whatever dies from here on, the
  # job can be found.
  { printf '1 %s .\n' "$launchpad_record" >"$launchpad_dir/main.new" &&
    mv -f "$launchpad_dir/main.new" "$launchpad_dir/main"; } 2>/dev/null ||
    launchpad_fail 125 state-directory "$launchpad_dir"
  launchpad_say "up $launchpad_record"
  # "alive" wakes the launcher, which from now on watches "start", held by nobody but us.
  echo up >&8
  exec 8>&-
  # The records are private; what the job makes is its own affair.
  umask 022
  # Opened here, as root, because the job directory is closed to other users. A log elsewhere is
  # opened by the user, further down.
  { command exec 4>>"${launchpad_log:-/dev/null}"; } 2>/dev/null ||
    launchpad_fail 125 log "$launchpad_log"
  # The job's stdin. A terminal that is another session's does not become ours by opening it.
  { command exec 6<"${launchpad_terminal:-/dev/null}"; } 2>/dev/null || exec 6</dev/null

  launchpad_bash='sh'
  command -v bash >/dev/null && launchpad_bash=bash
  # shellcheck disable=SC2016 # the text is evaluated by the shell that we become
  set -- env -i "HOME=$launchpad_home" "USER=$launchpad_name" "LOGNAME=$launchpad_name" \
    "SHELL=$launchpad_shell" "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    LANG=C.UTF-8 ${launchpad_terminal:+TERM=screen} "LAUNCHPAD_JOB_ID=$launchpad_id" "LAUNCHPAD_STAGE=user" \
    "LAUNCHPAD_MAIN=$LAUNCHPAD_MAIN" "$launchpad_bash" -c 'eval "$LAUNCHPAD_MAIN"' launchpad
  # busybox su execs; its -c takes a line, so the words travel as that line's parameters. The options
  # come first and end with --: where getopt is glibc's it would look for more among the words.
  # shellcheck disable=SC2016
  case $launchpad_switch in
    none) ;;
    setpriv) set -- setpriv "--reuid=$launchpad_uid" "--regid=$launchpad_gid" --init-groups -- "$@" ;;
    su) set -- busybox su -s /bin/sh -c 'exec "$@"' -- "$launchpad_name" launchpad "$@" ;;
  esac
  # shellcheck disable=SC2093 # what follows is for the case that it cannot be executed
  exec "$@"
  launchpad_fail 125 switch-user "$launchpad_name"
}

# launchpad_check_link FILE: where another user than root or us has put a link in the place of a log,
# we would append to whatever it leads to, and may be root.
launchpad_check_link() {
  [ -L "$1" ] || return 0
  case $(stat -c %u "$1") in
    0 | "$(stat -c %u "/proc/$$")") ;;
    *) launchpad_fail 125 log-link "$1" ;;
  esac
}

# launchpad_read_profile FILE: inside a function, so that a `set --` in it cannot reach our words.
launchpad_read_profile() {
  # shellcheck disable=SC1090
  [ ! -r "$1" ] || . "$1"
  set +e
  return 0
}

launchpad_login() {
  set -- "$HOME"
  launchpad_say profile
  {
    launchpad_read_profile /etc/profile
    if [ -n "${BASH_VERSION-}" ] && [ -r "$1/.bash_profile" ]; then
      launchpad_read_profile "$1/.bash_profile"
    elif [ -n "${BASH_VERSION-}" ] && [ -r "$1/.bash_login" ]; then
      launchpad_read_profile "$1/.bash_login"
    else
      launchpad_read_profile "$1/.profile"
    fi
  } >/dev/null 2>&1 </dev/null 3>&- 4>&- 5>&- 6<&-
  # A profile may have left options, aliases, functions, traps and a strange IFS behind.
  set +efuvx
  \unalias -a
  \unset -f exec export cd printf command trap set test unset 2>/dev/null
  # shellcheck disable=SC3047
  [ -z "${BASH_VERSION-}" ] || trap - DEBUG ERR RETURN
  trap 'launchpad_fail 125 shell "the shell ended before the program could start"' EXIT
  unset IFS
  launchpad_say ready
}

# launchpad_find PROGRAM: which error execve(2) would give, before anything is started.
# 127 not found, 126 found but not executable, as POSIX XCU 2.8.2 has it.
launchpad_find() {
  case $1 in
    */*)
      [ -e "$1" ] || launchpad_fail 127 not-found "$1"
      [ ! -d "$1" ] || launchpad_fail 126 is-directory "$1"
      [ -x "$1" ] || launchpad_fail 126 not-executable "$1"
      launchpad_program=$1
      return
      ;;
  esac
  launchpad_program='' launchpad_blocked='' launchpad_rest=$PATH:
  while [ -n "$launchpad_rest" ]; do
    launchpad_try=${launchpad_rest%%:*}
    launchpad_rest=${launchpad_rest#*:}
    launchpad_try=${launchpad_try:-.}/$1
    [ -f "$launchpad_try" ] || continue
    if [ -x "$launchpad_try" ]; then
      launchpad_program=$launchpad_try
      return
    fi
    launchpad_blocked=${launchpad_blocked:-$launchpad_try}
  done
  [ -z "$launchpad_blocked" ] || launchpad_fail 126 not-executable "$launchpad_blocked"
  launchpad_fail 127 not-found "$1"
}

launchpad_enter() {
  command cd "$1" 2>/dev/null || launchpad_fail 125 directory "$1"
}

# The words of main: LOGIN CWD LOG MODE SHELL COUNT [NAME VALUE]... [ARGUMENT]...
#   LOGIN yes|no · CWD empty: home · LOG a path to open as the user, empty: descriptor 4 is the log
#   MODE new|append · SHELL yes: the one argument is a line for the shell · COUNT of NAME VALUE pairs
launchpad_run() {
  trap 'launchpad_fail 125 shell "the shell ended before the program could start"' EXIT
  unset LAUNCHPAD_MAIN LAUNCHPAD_STAGE
  # A profile may set HOME to something else; ~ stays what passwd says, as for the launcher.
  launchpad_home=$HOME
  export PYTHONUNBUFFERED=1
  [ "$1" = no ] || launchpad_login
  launchpad_cwd=$2 launchpad_log=$3 launchpad_mode=$4 launchpad_line=$5 launchpad_count=$6
  shift 6
  while [ "$launchpad_count" -gt 0 ]; do
    # A read-only name (bash's UID, a profile's TMOUT) ends dash at once, and is an error in bash:
    # the trap, or this line, reports it.
    launchpad_setting=$1
    trap 'launchpad_fail 125 environment "$launchpad_setting"' EXIT
    command export "$1=$2" 2>/dev/null || launchpad_fail 125 environment "$1"
    shift 2
    launchpad_count=$((launchpad_count - 1))
  done
  trap 'launchpad_fail 125 shell "the shell ended before the program could start"' EXIT

  # shellcheck disable=SC2088 # the tilde is text here, and stands for this user's home
  case $launchpad_cwd in
    '') command cd "$launchpad_home" 2>/dev/null || command cd / || exit ;;
    '~') launchpad_enter "$launchpad_home" ;;
    '~/'*) launchpad_enter "$launchpad_home/${launchpad_cwd#'~/'}" ;;
    *) launchpad_enter "$launchpad_cwd" ;;
  esac
  unset OLDPWD

  if [ "$launchpad_line" = yes ]; then
    if [ -n "${BASH_VERSION-}" ]; then set -- bash -c "$1"; else set -- sh -c "$1"; fi
  fi
  launchpad_find "$1"

  if [ -n "$launchpad_log" ]; then
    # shellcheck disable=SC2088
    case $launchpad_log in '~/'*) launchpad_log=$launchpad_home/${launchpad_log#'~/'} ;; esac
    if [ "$launchpad_mode" = new ]; then
      # noclobber opens with O_EXCL: no existing file is emptied, no planted link is followed.
      set -C
      { command exec 4>"$launchpad_log"; } 2>/dev/null || {
        [ ! -e "$launchpad_log" ] || launchpad_fail 125 log-exists "$launchpad_log"
        launchpad_fail 125 log "$launchpad_log"
      }
      set +C
      # The very file once more, to append. By its name it may be another one by now, where somebody
      # else may write in its directory.
      launchpad_opened=/proc/self/fd/4
    else
      launchpad_check_link "$launchpad_log"
      launchpad_opened=$launchpad_log
    fi
    { command exec 4>>"$launchpad_opened"; } 2>/dev/null || launchpad_fail 125 log "$launchpad_log"
  fi

  # exec in the shells takes options of its own, so a name such as -x goes by its path.
  case $1 in -*)
    shift
    set -- "$launchpad_program" "$@"
    ;;
  esac
  # shellcheck disable=SC3044
  [ -z "${BASH_VERSION-}" ] || shopt -s execfail
  trap 'launchpad_fail 126 exec "$launchpad_program"' EXIT
  launchpad_say exec
  # While a redirection of a group is in force, the shell keeps its own copies of 3 to 6 close-on-exec.
  # So they close when, and only when, the kernel has taken the program: that is the proof of exec.
  { exec "$@"; } <&6 >&4 2>&1 3>&- 4>&- 5>&- 6<&-
  launchpad_fail 126 exec "$launchpad_program"
}

if [ -z "${LAUNCHPAD_STAGE-}" ]; then
  launchpad_become_user "$@"
else
  launchpad_words=$(cat)
  exec </dev/null
  eval "set -- $launchpad_words"
  unset launchpad_words
  launchpad_run "$@"
fi
