# members.sh: which processes belong to which job. Behind common.sh.
#
# This is the only place that decides it; status shows what it finds and kill signals it. Several
# marks together find a member, because each of them can be lost:
#   - it is the main process, or was seen before as a member: PID and start ticks (remembered)
#   - it is in the job's session (survives the end of its parent; lost with setsid)
#   - LAUNCHPAD_JOB_ID=<id> stands in its environment (survives setsid and double forks; lost where
#     a program writes its title over its environment, or starts others with an environment of its own)
#   - it is in the job's cgroup, where one could be made (lost when it is moved on purpose)
#   - its parent is a member (lost when the parent ends)
# A command line is never looked at.
#
# One pass over /proc serves all jobs. Its findings are shell variables named after PIDs, which are
# digits, so that eval sees nothing but names and words of our own making.
#
# shellcheck shell=sh disable=SC2034,SC2086,SC2154

# make_noise: sets noise, a part of a path that leads nowhere ("/.//./…") and that nobody can
# guess. Programs that print file names print it too, so a header with it in it is a real one,
# whatever the files contain: frames, without a process per file.
make_noise() {
  noise='' noise_digits=
  { IFS= read -r noise_digits </proc/sys/kernel/random/uuid; } 2>/dev/null
  noise_digits=${noise_digits:-${marker#*-}}
  while [ -n "$noise_digits" ]; do
    case $noise_digits in [02468ace]*) noise=$noise/ ;; *) noise=$noise/. ;; esac
    case $noise_digits in [014589cd]*) noise=$noise/ ;; *) noise=$noise/. ;; esac
    noise_digits=${noise_digits#?}
  done
}

newline='
'
soh=$(printf '\001')

# expect_job ID PID TICKS SESSION END: a job that ran or runs since this start of the container.
# END: the ticks at which its main process had ended, or "-". All but ID are numbers, checked.
expect_job() {
  [ "$2" -gt 1 ] || return 0
  eval "known_$2=\"\${known_$2-} $1:$3\""
  [ "$4" = "$2" ] || return 0
  eval "leader_$2=\"\${leader_$2-} $1:$3:$5\""
}

# remember_member ID PID TICKS: it was found to be a member before.
remember_member() {
  [ "$2" -gt 1 ] || return 0
  eval "known_$2=\"\${known_$2-} $1:$3\""
}

# print_each FILE: /proc/PID/FILE of every process, behind headers that nobody can forge.
print_each() {
  # One argument vector holds 2 MB.
  case $process_count in ? | ?? | ???) set -- "$1" '[0-9]*' ;; *)
    set -- "$1" '1*' '2*' '3*' '4*' '5*' '6*' '7*' '8*' '9*'
    ;;
  esac
  file=$1
  shift
  for pattern; do
    # So that the first header begins a line, too.
    echo
    # A process that hangs in the kernel can hold its own files back.
    timeout -s KILL 5 tail -v -c +1 /proc$noise/$pattern/$file 2>/dev/null
  done
}

# read_processes: one look at each process. Sets processes (the PIDs), stat_PID (its fields behind
# the name, see proc(5)), children_PID, and suspects: those that something hints at.
read_processes() {
  for pid in ${processes-} 0; do
    unset "stat_$pid" "children_$pid" "mark_$pid" "group_$pid" "owner_$pid" "why_$pid"
  done
  set -- /proc/[0-9]*
  processes='' suspects='' process_count=$#
  header="==> /proc$noise/"
  stats="$(print_each stat)$newline$header"
  pid='' whole=''
  set -f
  IFS=$newline
  # What is done here is done for every process of the container: no pattern that searches far.
  for line in $stats; do
    place=$line
    case $line in "==> "*) place=${line#"$header"} ;; esac
    if [ "$place" = "$line" ]; then
      whole="$whole $line"
      continue
    fi
    [ -z "$whole" ] || note_process
    whole='' pid=${place%%/*}
  done
  unset IFS
  set +f
}

# note_process: takes in the line(s) of $pid. The name in it may hold blanks, parentheses, newlines.
note_process() {
  whole=${whole#*") "}
  case $whole in *") "*) whole=${whole##*") "} ;; esac
  # The state letter, parent, group, session, and what else.
  rest=${whole#* }
  parent=${rest%% *}
  rest=${rest#* }
  rest=${rest#* }
  rest=${rest%% *}
  case $parent:$rest in *[!0-9:]* | :* | *:) return 0 ;; esac
  processes="$processes $pid"
  eval "stat_$pid=\$whole children_$parent=\"\${children_$parent-} $pid\"
    hints=\${known_$pid-}\${leader_$rest-}"
  [ -z "$hints" ] || suspects="$suspects $pid"
}

# read_marks: sets mark_PID to the job that stands in the environment of PID. Newlines in values
# become \001 when NUL becomes newline, so that a line is a variable and nothing else is.
read_marks() {
  marks=$(print_each environ | tr '\000\n' '\n\001' |
    grep -e '/environ <==' -e '^LAUNCHPAD_JOB_ID=')
  pid=
  header="$soh==> /proc$noise/"
  set -f
  IFS=$newline
  for line in $marks; do
    case $line in
      "$header"*"$header"* | [!"$soh"]*"$header"*)
        # Empty environments; or one that does not end in NUL, and runs into the next header.
        note_mark "${line%%"$soh"*}"
        pid=${line##*"$header"}
        ;;
      "$header"*) pid=${line#"$header"} ;;
      *)
        note_mark "$line"
        continue
        ;;
    esac
    case $pid in *"${soh}LAUNCHPAD_JOB_ID="*)
      line=${pid#*"$soh"}
      pid=${pid%%/*}
      note_mark "$line"
      ;;
    esac
    pid=${pid%%/*}
  done
  unset IFS
  set +f
}

note_mark() {
  case $1 in LAUNCHPAD_JOB_ID=*) ;; *) return 0 ;; esac
  case ${1#*=}:$pid in
    *[!A-Za-z0-9._:-]* | :* | *:) return 0 ;;
  esac
  eval "mark_$pid=${1#*=}"
  suspects="$suspects $pid"
}

# expect_cgroup ID PATH: the job has a cgroup of its own.
expect_cgroup() {
  cgroups="${cgroups-} $1:$2"
}

# read_cgroups: sets group_PID to the job in whose cgroup PID is.
read_cgroups() {
  for entry in ${cgroups-}; do
    { while read -r pid; do
      eval "group_$pid=${entry%%:*}"
      suspects="$suspects $pid"
    done <"${entry#*:}/cgroup.procs"; } 2>/dev/null
  done
}

# split_stat PID: sets the fields that read_stat sets, and more, from the last look.
split_stat() {
  eval "set -- \${stat_$1-}"
  [ "$#" -ge 22 ] || return 1
  process_state=$1 parent=$2 group=$3 session=$4 ticks=${20}
  # With the time of the children that it has waited for.
  cpu_ticks=$((${12} + ${13} + ${14} + ${15})) pages=${22} exit_status=${50-}
}

# judge PID: sets owner_PID to the job it belongs to by a mark of its own.
judge() {
  split_stat "$1" || return 0
  owner='' why=''
  eval "known=\${known_$1-} candidates=\${leader_$session-} mark=\${mark_$1-} grouped=\${group_$1-}"
  for word in $known; do
    [ "${word#*:}" = "$ticks" ] && owner=${word%%:*} why=known
  done
  [ -n "$owner" ] || [ -z "$candidates" ] || judge_session
  # These were read after the process itself: its number could be another one's by then.
  if [ -z "$owner" ] && [ -n "$grouped$mark" ] && is_process "$1" "$ticks"; then
    owner=${grouped:-$mark} why=mark
  fi
  [ -z "$owner" ] || {
    eval "owner_$1=\$owner why_$1=\$why"
    owned="$owned $1"
  }
}

# judge_session: the session's number is the PID of a job's main process. That one, or a recycled one?
judge_session() {
  own_ticks=$ticks best=-1
  if split_stat "$session"; then leader_ticks=$ticks; else leader_ticks=; fi
  ticks=$own_ticks
  for word in $candidates; do
    job_ticks=${word#*:} && end_ticks=${job_ticks#*:} && job_ticks=${job_ticks%%:*}
    if [ -n "$leader_ticks" ]; then
      [ "$leader_ticks" != "$job_ticks" ] || owner=${word%%:*} why=session
    # The leader is gone. While its session lives its number is taken; but the session may be
    # another one with a recycled number, unless the process began while our leader lived.
    elif [ "$job_ticks" -le "$ticks" ] && [ "$job_ticks" -gt "$best" ] &&
      { [ "$end_ticks" = - ] || [ "$ticks" -le "$end_ticks" ]; }; then
      owner=${word%%:*} why=session best=$job_ticks
    fi
  done
}

# find_members: sets owner_PID, why_PID for every process that belongs to a job, and owned to their
# PIDs. What we are ourselves, and started, belongs to nobody even if a job started us.
find_members() {
  read_processes
  read_marks
  read_cgroups
  owned=
  for pid in $suspects; do
    eval "owner=\${owner_$pid-}"
    [ -n "$owner" ] || [ "$pid" = $$ ] || judge "$pid"
  done
  add_descendants $owned
}

# add_descendants PID...: the children of members are members, unless they bear another job's mark.
add_descendants() {
  while [ "$#" -gt 0 ]; do
    eval "owner=\${owner_$1-} children=\${children_$1-}"
    parent_pid=$1
    shift
    for pid in $children; do
      eval "taken=\${owner_$pid-}"
      { [ -z "$taken" ] && [ "$pid" != $$ ] && split_stat "$pid" && [ "$parent" = "$parent_pid" ]; } ||
        continue
      eval "owner_$pid=\$owner why_$pid=descent"
      owned="$owned $pid"
      set -- "$@" "$pid"
    done
  done
}

# is_living PID STATE: not a zombie, or one with a thread that still runs and holds what it holds.
is_living() {
  case $2 in Z | X) ;; *) return 0 ;; esac
  for task in "/proc/$1/task"/*/stat; do
    task_line=
    { IFS= read -r task_line <"$task"; } 2>/dev/null
    task_line=${task_line##*") "}
    case $task_line in Z* | X* | '') ;; *) return 0 ;; esac
  done
  return 1
}

# members_of ID: sets members to the PIDs of its living processes, after find_members.
members_of() {
  members=
  for pid in $owned; do
    eval "owner=\${owner_$pid-}"
    [ "$owner" = "$1" ] || continue
    split_stat "$pid"
    if is_living "$pid" "$process_state"; then members="$members $pid"; fi
  done
}
