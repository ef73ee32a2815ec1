# facts.sh: what is known of jobs, raw. Behind common.sh and members.sh. What it means is decided
# by the client. Wants $marker and $state (the state directory).
#
# The frames, in this order:
#   now EPOCH TICKS BOOT_ID BOOT_TICKS OOM LIMIT PEAK
#                   TICKS: of a process born now; OOM as in end records; the container's memory in
#                   bytes, what it may have and what it had at most; - where that cannot be seen
#   job ID        payload, a line each, where it applies:
#                   directory                 it has one
#                   launching                 its main process was not seen to be its program yet
#                   main WORDS…               its main record (main damaged: not readable)
#                   launcher NAME REASON…     how it was detached, where that was not as wanted
#                   emptied BYTES EPOCH       that a follower saw its log lose so many bytes, and when
#                   end NAME, kill NAME       its records that are file names
#                   asker WHO                 who asked for the kill, behind its record
#                   process running | zombie STATUS | gone      the main process, STATUS as wait(2)'s
#                   supervisor living | gone
#                   known WORDS…              the identity that the caller knew, no record being there
#   members       payload: "ID PID TICKS STATE CPU_TICKS PAGES NAME", a line for each living process
#                   of any job, also of one that has no directory any more
#   specs NOISE   payload: headers "==> ID NOISE/spec <==" as of tail -v, what stands in the files
#   sizes NOISE   payload: "BYTES MTIME ID NOISE/log" and the same for spec, a line each
#   logs NOISE    payload: as specs, for the last bytes of the logs
#
# A file that should not be there, or is damaged, never hides another job; what is not a regular
# file is never opened, because opening a FIFO may take for ever.
#
# shellcheck shell=sh disable=SC2016,SC2034,SC2086,SC2154,SC3067

# How much of a spec, and of a log's end, is of interest (bytes).
spec_limit=262144

# counters: how often the kernel's OOM killer struck in this container; see supervise.sh.
count_oom() {
  oom=h0
  for events in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control /proc/vmstat; do
    { while read -r word count _; do
      [ "$word" = oom_kill ] || continue
      case $events in /proc/*) oom=h$count ;; *) oom=c$count ;; esac
      return 0
    done <"$events"; } 2>/dev/null
  done
}

# read_memory: what the container may have and what it had at most; "max" or a number near 2^63: all.
read_memory() {
  memory_limit=- memory_peak=-
  for memory in /sys/fs/cgroup/memory.max:/sys/fs/cgroup/memory.peak \
    /sys/fs/cgroup/memory/memory.limit_in_bytes:/sys/fs/cgroup/memory/memory.max_usage_in_bytes; do
    { IFS= read -r memory_limit <"${memory%:*}"; } 2>/dev/null || continue
    { IFS= read -r memory_peak <"${memory#*:}"; } 2>/dev/null
    return 0
  done
}

read_now() {
  read_boot
  count_oom
  read_memory
  now_epoch=$(date +%s)
  # The substitution's process is new-born: its start ticks are "now" in the clock of all others.
  now_ticks=$(cat /proc/self/stat)
  now_ticks=${now_ticks##*") "}
  now_ticks=$(set -- $now_ticks && echo "${20}")
}

is_number() {
  case $1 in '' | *[!0-9]*) return 1 ;; esac
}

# read_main ID: its main record in the variables main_*; false where there is none that is whole.
read_main() {
  { [ -f "$state/jobs/$1/main" ] && read_record "$state/jobs/$1/main"; } || return 1
  set -f
  set -- $record
  set +f
  use_identity "$1" "$2" "$3" "$4" "$5" && main_epoch=${6-} main_supervisor=${7-}
  is_number "$main_epoch" && is_number "$main_supervisor"
}

# use_identity PID TICKS SESSION BOOT_ID BOOT_TICKS: false where they cannot be that.
use_identity() {
  { is_number "${1-}" && is_number "${2-}" && is_number "${3-}" && is_number "${5-}"; } || return 1
  case ${4-} in '' | *[!A-Za-z0-9-]*) return 1 ;; esac
  main_pid=$1 main_ticks=$2 main_session=$3 main_boot=$4 main_boot_ticks=$5
  main_epoch=0 main_supervisor=0
}

# read_names ID: its records that are names of files, as lines in names; end is the last end record.
read_names() {
  names='' end=
  for file in "$state/jobs/$1"/end,* "$state/jobs/$1"/kill,* \
    ${fallback:+"$fallback/$1",end,*}; do
    name=${file##*/}
    name=${name#"$1,"}
    case $name in
      *'*') continue ;;
      *[!A-Za-z0-9_,.-]*) name=${name%%,*},damaged ;;
    esac
    case $name in end,*) end=$name ;; esac
    names="$names${name%%,*} $name$newline"
    # Its only line says who asked: see note_request in end.sh.
    case $name in kill,1,*)
      asker=
      { [ -f "$file" ] && IFS= read -r asker <"$file"; } 2>/dev/null
      [ -z "$asker" ] || names="${names}asker $asker$newline"
      ;;
    esac
  done
}

# look_at_main: sets process: running, gone, or "zombie STATUS".
look_at_main() {
  process=gone
  is_process "$main_pid" "$main_ticks" || return 0
  process=running
  is_living "$main_pid" "$process_state" && return
  set -- $stat_line
  process="zombie ${50-}"
}

# look_at_supervisor: it led its session before the job began, so whoever began later is not it.
look_at_supervisor() {
  supervisor=gone
  [ "$main_supervisor" -gt 1 ] && read_stat "$main_supervisor" && [ "$ticks" -le "$main_ticks" ] &&
    case $process_state in Z | X) false ;; esac && supervisor=living
}

# gather WORD: prints what is known of a job, all but its processes, and sets job, main_*, and
# current if it is of this run of the container. WORD: its id, with
# "=PID,TICKS,SESSION,BOOT_ID,BOOT_TICKS" behind it where the caller knows what it was.
gather() {
  job=${1%%=*} identity=
  case $1 in *=*) identity=${1#*=} ;; esac
  lines=
  if [ -d "$state/jobs/$job" ] && [ ! -L "$state/jobs/$job" ]; then lines=directory$newline; fi
  main=
  if read_main "$job"; then
    main="main $record"
  else
    [ ! -e "$state/jobs/$job/main" ] || lines="${lines}main damaged$newline"
    IFS=,
    set -- $identity
    unset IFS
    if use_identity "$@"; then main="known $*"; fi
  fi
  [ -z "$main" ] || lines=$lines$main$newline
  [ ! -f "$state/jobs/$job/launcher" ] || ! read_record "$state/jobs/$job/launcher" ||
    lines="${lines}launcher $record$newline"
  [ ! -f "$state/jobs/$job/emptied" ] || ! read_record "$state/jobs/$job/emptied" ||
    lines="${lines}emptied $record$newline"
  # The launch takes it away when the job has become its program, or will never.
  [ ! -e "$state/jobs/$job/start" ] || lines="${lines}launching$newline"
  read_names "$job"
  current='' job_cgroup=''
  if [ -n "$main" ] && [ "$main_boot $main_boot_ticks" = "$boot_id $boot_ticks" ]; then
    current=yes
    [ -n "$end" ] || await_end "$job"
    end_ticks=-
    case $end in end,1,*)
      end_ticks=${end#end,1,*,*,*,}
      end_ticks=${end_ticks%%,*}
      is_number "$end_ticks" || end_ticks=-
      ;;
    esac
    expect_job "$job" "$main_pid" "$main_ticks" "$main_session" "$end_ticks"
    remember_members "$job"
    find_cgroup "$job"
  fi
  frame "job $job"
  printf '%s' "$lines$names"
}

# await_end ID: the job has no end record. The order of looking matters: where the supervisor was
# gone before we looked for its record, there will never be one; where it lives and the main process
# does not, it is about to write one. (If it does not within three seconds, something holds it, and
# the jobs behind this one are not waited for as well.)
await_end() {
  for patience in ${no_patience:-0 0.05 0.1 0.2 0.4 0.8 1.6} -; do
    look_at_supervisor
    look_at_main
    read_names "$1"
    { [ -z "$end" ] && [ "$process" != running ] && [ "$supervisor" = living ] &&
      [ "$patience" != - ]; } || break
    sleep "$patience" 2>/dev/null || break
  done
  [ "$patience" != - ] || no_patience=0
  lines="${lines}process $process${newline}supervisor $supervisor$newline"
}

# remember_members ID: those that were seen before, from the record that kill and status keep.
remember_members() {
  { [ -f "$state/jobs/$1/members" ] && read_record "$state/jobs/$1/members"; } || return 0
  remembered_job=$1
  set -f
  set -- $record
  set +f
  while [ "$#" -ge 2 ] && is_number "$1" && is_number "$2"; do
    remember_member "$remembered_job" "$1" "$2"
    shift 2
  done
}

# find_cgroup ID: the one that the supervisor made, if the record names one that can be that.
find_cgroup() {
  job_cgroup=
  { [ -f "$state/jobs/$1/cgroup" ] && read_record "$state/jobs/$1/cgroup"; } || return 0
  case $record in
    *..* | *[!A-Za-z0-9._/@:-]*) ;;
    /sys/fs/cgroup/*/launchpad-"$1" | /sys/fs/cgroup/launchpad-"$1")
      [ ! -f "$record/cgroup.procs" ] || job_cgroup=$record
      ;;
  esac
  [ -z "$job_cgroup" ] || expect_cgroup "$1" "$job_cgroup"
}

# print_members: looks for members; the frame members.
print_members() {
  find_members
  print_found_members
}

print_found_members() {
  frame members
  fleeting='' fresh=''
  for pid in $owned; do
    eval "owner=\${owner_$pid-} why=\${why_$pid-}"
    split_stat "$pid"
    is_living "$pid" "$process_state" || continue
    name=
    { IFS= read -r name <"/proc/$pid/comm"; } 2>/dev/null
    printf '%s\n' "$owner $pid $ticks $process_state $cpu_ticks $pages $name"
    case $why in known | descent) fleeting="$fleeting $owner:$pid:$ticks" ;; esac
    [ "$why" != descent ] || fresh="$fresh $owner"
  done
  [ -z "$fresh" ] || keep_members
}

# keep_members: nothing but its parent tells that such a process is a member; when that one ends,
# this record will. Best effort.
keep_members() {
  for owner in $fresh; do
    pairs=
    for entry in $fleeting; do
      case $entry in "$owner":*)
        entry=${entry#*:}
        pairs="$pairs ${entry%:*} ${entry#*:}"
        ;;
      esac
    done
    # Others may be asking at the same time.
    record_file=$state/jobs/$owner/members
    [ -d "${record_file%/*}" ] && printf '1%s .\n' "$pairs" >"$record_file.$$" &&
      mv -f "$record_file.$$" "$record_file"
  done 2>/dev/null
}

# print_files SPECS TAIL ID...: the frames specs (if yes), sizes, and logs with the last TAIL bytes.
# In a shell of its own with a deadline: a log may lie on a dead mount.
print_files() {
  specs=$1 tail_bytes=$2
  shift 2
  timeout -s KILL 3 sh -c '
    marker=$1 noise=$2 specs=$3 limit=$4 tail=$5
    cd "$6" || exit
    shift 6
    records= logs=
    for job; do
      [ ! -f "$job/spec" ] || records="$records $job$noise/spec"
      [ ! -f "$job/log" ] || logs="$logs $job$noise/log"
    done
    if [ "$specs" = yes ]; then
      printf "\n%s specs %s\n" "$marker" "$noise"
      [ -z "$records" ] || tail -v -c "$limit" $records
    fi
    printf "\n%s sizes %s\n" "$marker" "$noise"
    [ -z "$records$logs" ] || stat -L -c "%s %Y %n" $records $logs
    [ "$tail" -gt 0 ] || exit 0
    printf "\n%s logs %s\n" "$marker" "$noise"
    [ -z "$logs" ] || tail -v -c "$tail" $logs
  ' launchpad "$marker" "$noise" "$specs" "$spec_limit" "$tail_bytes" "$state/jobs" "$@" 2>/dev/null
}

# check_owner: refuses to go on where the state directory is not ours alone.
check_owner() {
  ! is_ours "$state" "$state/jobs" || return 0
  for place in "$state" "$state/jobs"; do
    { [ -e "$place" ] || [ -L "$place" ]; } || continue
    ! is_ours "$place" || continue
    frame "refused state-owner 125"
    printf '%s' "$place"
    frame "done"
    exit 125
  done
}

begin_facts() {
  make_noise
  read_now
  read_own_uid
  fallback=/dev/shm/launchpad-$own_uid
  is_ours "$fallback" || fallback=
  frame "now $now_epoch $now_ticks $boot_id $boot_ticks $oom $memory_limit $memory_peak"
}

read_own_uid() {
  own_uid=0
  { while read -r key value _; do
    [ "$key" != Uid: ] || own_uid=$value
  done <"/proc/$$/status"; } 2>/dev/null
}

# job_facts WORD...: the facts about these jobs (words as gather takes them), without their specs.
job_facts() {
  begin_facts
  asked=
  for word; do
    gather "$word"
    asked="$asked ${word%%=*}"
  done
  print_members
  print_files no 4096 $asked
}
