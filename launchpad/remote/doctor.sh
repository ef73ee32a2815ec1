# doctor.sh: what doctor wants to know of a container. Behind common.sh and user.sh. It changes
# nothing and leaves nothing behind.
# The words: STATE_DIRECTORY PROFILE_DEADLINE
#
# The frame "facts" has a line "KEY VALUE" for each thing that is known.
#
# shellcheck shell=sh disable=SC2034,SC2119,SC2120,SC2154,SC3067
# (words come from stdin; -O is in all three shells)

refuse() {
  exit 1
}

# tell KEY VALUE: nothing where there is no value. A value is a line.
tell() {
  [ -z "$2" ] || printf '%s %s\n' "$1" "$2"
}

first_line() {
  IFS= read -r line && printf '%s\n' "$line"
}

tell_release() {
  while IFS='=' read -r key value; do
    value=${value#\"} value=${value%\"}
    case $key in
      PRETTY_NAME) tell os "$value" ;;
      ID) tell os_id "$value" ;;
    esac
  done
}

tell_system() {
  tell_release 2>/dev/null </etc/os-release
  { read -r hostname </proc/sys/kernel/hostname; } 2>/dev/null && tell hostname "$hostname"
  { read -r init </proc/1/comm; } 2>/dev/null && tell init "$init"
  tell bash "${BASH_VERSION-}"
  sh_path=$(readlink -f "$(command -v sh)" 2>/dev/null)
  tell sh "${sh_path##*/}"
  command -v python3 >/dev/null && tell python "$(timeout 5 python3 -V 2>&1 | first_line)"
}

tell_tools() {
  missing=
  for tool in env mkdir mkfifo mv rm od dd tr grep tail cat sleep timeout date kill; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
  done
  tell missing "${missing# }"
  for tool in setsid python3 perl nohup; do
    command -v "$tool" >/dev/null && tell session "$tool" && break
  done
  command -v base64 >/dev/null && tell base64 yes
  if setpriv --reuid=0 --regid=0 --init-groups -- true 2>/dev/null; then
    tell switch setpriv
  elif busybox su -s /bin/sh "$user" -c true </dev/null >/dev/null 2>&1; then
    tell switch su
  fi
}

# Whether a PTY can be had, only asking for one can tell; without python3 it is a guess.
tell_terminal() {
  command -v tmux >/dev/null && tell tmux "$(timeout 5 tmux -V 2>/dev/null | first_line)"
  if command -v python3 >/dev/null; then
    timeout 5 python3 -c 'import os; os.openpty()' 2>/dev/null && tell pty yes
  elif [ -c /dev/ptmx ] && grep -q '^devpts /dev/pts ' /proc/mounts 2>/dev/null; then
    tell pty yes
  fi
}

# tell_profile SECONDS: whether a login shell comes to its end, as a job's does before the program.
# By its exit code alone: what a profile leaves in the background would hold any pipe.
tell_profile() {
  login='sh'
  [ -z "${BASH_VERSION-}" ] || login=bash
  env -i "HOME=$home" "USER=$user" "LOGNAME=$user" "SHELL=$shell" "PATH=$PATH" LANG=C.UTF-8 \
    timeout -s KILL "$1" "$login" -l -c 'exit 42' </dev/null >/dev/null 2>&1
  case $? in
    42) tell profile good ;;
    137) tell profile hangs ;;
    *) tell profile left ;;
  esac
}

# tell_state DIRECTORY
tell_state() {
  state=$1
  place=$state
  while [ ! -e "$place" ] && [ "$place" != / ]; do
    place=${place%/*}
    place=${place:-/}
  done
  tell state_place "$place"
  [ -d "$place" ] && [ -w "$place" ] && tell state_writable yes
  for part in "$state" "$state/jobs"; do
    [ -e "$part" ] || [ -L "$part" ] || continue
    if [ -L "$part" ]; then
      tell state_link "$part"
    elif [ ! -O "$part" ]; then
      tell state_foreign "$part"
    fi
  done
  # The last line: df folds a long device name.
  set -f
  # shellcheck disable=SC2046
  set -- $(df -P -k "$place" 2>/dev/null | tail -n 1)
  tell free_kib "${4-}"
  tell mount_point "${6-}"
  # shellcheck disable=SC2046
  set -- $(df -P -i "$place" 2>/dev/null | tail -n 1)
  tell free_inodes "${4-}"
  set +f
}

tell_counters() {
  while read -r _ place type _; do
    case $type:$place in
      cgroup2:/sys/fs/cgroup) tell cgroup 2 ;;
      cgroup:/sys/fs/cgroup/*) tell cgroup 1 ;;
    esac
  done </proc/mounts | first_line
  for events in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    grep -q '^oom_kill ' "$events" 2>/dev/null && tell oom "$events" && break
  done
}

tell_gpus() {
  for device in /dev/nvidia[0-9]* /dev/kfd /dev/dri/renderD*; do
    [ ! -c "$device" ] || tell gpu_device "$device"
  done
  command -v nvidia-smi >/dev/null || return 0
  gpus=$(timeout -s KILL 3 nvidia-smi --format=csv,noheader,nounits \
    --query-gpu=index,name,memory.total 2>/dev/null)
  case $? in
    0) printf '%s\n' "$gpus" | while IFS= read -r gpu; do tell gpu "$gpu"; done ;;
    137) tell gpu_fault hangs ;;
    *) tell gpu_fault fails ;;
  esac
}

examine() {
  IFS=' ' read -r marker size _ || exit 1
  words=$(take "$size")
  frame "begin 1"
  eval "set -- $words"
  frame facts
  tell epoch "$(date +%s)"
  find_user ''
  tell user "$user"
  tell_system
  tell_tools
  tell_terminal
  tell_state "$1"
  tell_counters
  tell_gpus
  tell_profile "$2"
  frame "done"
}

examine
