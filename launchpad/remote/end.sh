# end.sh: ends jobs, wholly. Behind common.sh, members.sh and facts.sh.
#
# The plan for each job, all jobs of a call side by side:
#   main   its main process was sent the signal, and it alone: what saves its state still needs
#          its workers. Until it has ended, or half of the grace time is over.
#   rest   the others were sent TERM. Until nothing is left, or the grace time is over.
#   kill   all are stopped until no new ones appear (whoever forks faster than it can be killed
#          cannot fork while it is stopped), then sent KILL. Looked at again until nothing is left.
#
# Members once seen are remembered by PID and start ticks, here and in the job directory, because
# their marks may vanish with their parents. A PID is compared with its ticks right before it is
# signalled, so a number that was recycled is safe.
#
# A job has the number N here (shell names cannot hold ids); its variables are named x_N, those of
# a process seen_PID_TICKS.
#
# shellcheck shell=sh disable=SC2034,SC2086,SC2154

# How long after KILL a process is waited for (ticks). What is left then sits in the kernel.
kill_patience=500
# How long new members may go on to appear while all that are seen are stopped (ticks).
stop_patience=1000

# read_ticks: sets clock to now, in ticks, by a process born for it.
read_ticks() {
  clock=$(cat /proc/self/stat)
  clock=${clock##*") "}
  set -- $clock
  clock=${20}
}

# pause: until the next look; longer the longer it takes. A sleep without fractions sleeps longer.
pause() {
  pauses=$((pauses + 1))
  if [ "$pauses" -lt 5 ]; then
    nap=0.02
  elif [ "$pauses" -lt 100 ]; then
    nap=0.1
  else
    nap=0.3
  fi
  sleep "$nap" 2>/dev/null || sleep 1
}

# signal_process NUMBER PID TICKS: if it is still that one. A stopped one is woken, else it could
# not act on it.
signal_process() {
  { [ "$2" -gt 1 ] && is_process "$2" "$3"; } || return 0
  kill "-$1" "$2" 2>/dev/null || return 0
  eval "seen_$2_$3=$1"
  case $1:$process_state in
    9:* | *:[!Tt]) ;;
    *) kill -CONT "$2" 2>/dev/null ;;
  esac
}

# note_request N: who asks, before anything is signalled: a file name, set by rename as the end is.
# The content is for people; a full disk may refuse it.
note_request() {
  eval "note_dir=\$state/jobs/\$id_$1"
  note_signal=15
  case $grace:$end_signal in once:* | *:9) note_signal=$end_signal ;; esac
  for note_file in "$note_dir"/kill,1,* "$note_dir/unasked"; do
    [ -f "$note_file" ] || continue
    # A single signal does not undo that the whole job was asked to end.
    case $note_signal:$note_file in
      9:* | 15:* | *"/unasked") ;;
      *,9,* | *,15,*) return 0 ;;
    esac
    printf '%s\n' "$asked_by" 2>/dev/null >"$note_file"
    mv -f "$note_file" "$note_dir/kill,1,$end_reason,$note_signal,$(date +%s),." 2>/dev/null
    return 0
  done
}

# take_in N: puts the members that were found now among those that job N has ever had.
take_in() {
  eval "members_of \"\$id_$1\"; ever=\$ever_$1 living=\$living_$1"
  for pid in $members; do
    eval "set -- $1 \${stat_$pid}"
    ticks=${21}
    case " $ever " in *" $pid:$ticks "*) continue ;; esac
    [ "$pid" != $$ ] || continue
    ever="$ever $pid:$ticks" living="$living $pid:$ticks"
    eval "seen_${pid}_$ticks=0"
    remember_member "$job" "$pid" "$ticks"
  done
  eval "ever_$1=\$ever living_$1=\$living"
}

# look N: which of the members are left; counts those that have ended since.
look() {
  left=
  eval "set -- $1 \$living_$1"
  number=$1
  shift
  for word; do
    pid=${word%:*} ticks_then=${word#*:}
    if is_process "$pid" "$ticks_then" && is_living "$pid" "$process_state"; then
      left="$left $word"
      continue
    fi
    eval "last=\$seen_${pid}_$ticks_then main=\$main_$number"
    if [ "$word" = "$main" ]; then
      eval "main_end_$number=\"$last $((clock - began))\""
    else
      case $last in 0) last=none ;; 9) last="kill" ;; *) last=term ;; esac
      eval "${last}_$number=\$((\${${last}_$number} + 1))"
    fi
  done
  eval "living_$number=\$left"
}

# is_quiet N: nothing was left in two looks, one after the other. In one of them, a process that is
# becoming another program (execve(2)) may have no environment, and so no mark.
is_quiet() {
  [ "$searched" != "$clock" ] || return 1
  look_again "$1"
  eval "living=\$living_$1"
  if [ -n "$living" ]; then
    eval "quiet_$1=0"
    return 1
  fi
  eval "quiet_$1=\$((quiet_$1 + 1)); quiet=\$quiet_$1"
  [ "$quiet" -ge 2 ]
}

# look_again N: look, and search for members that nobody has seen yet.
look_again() {
  if [ "$searched" != "$clock" ]; then
    find_members
    searched=$clock
  fi
  eval "job=\$id_$1"
  take_in "$1"
  look "$1"
}

# signal_rest NUMBER N: all members that are left and were not sent that one yet.
signal_rest() {
  eval "set -- $1 \$living_$2"
  rest_signal=$1
  shift
  for word; do
    eval "last=\$seen_${word%:*}_${word#*:}"
    [ "$last" = "$rest_signal" ] || signal_process "$rest_signal" "${word%:*}" "${word#*:}"
  done
}

# stop_all N: SIGSTOP until no new members appear.
stop_all() {
  stopped=' ' stop_since=$clock
  while [ "$((clock - stop_since))" -lt "$stop_patience" ]; do
    fresh=
    eval "set -- \$living_$1 -- $1; ever=\$ever_$1"
    while [ "$1" != -- ]; do
      case $stopped in *" $1 "*) ;; *)
        stopped="$stopped$1 " fresh=yes
        if is_process "${1%:*}" "${1#*:}" && [ "${1%:*}" -gt 1 ]; then
          kill -STOP "${1%:*}" 2>/dev/null
          signal_group STOP
        fi
        ;;
      esac
      shift
    done
    shift
    [ -n "$fresh" ] || return 0
    read_ticks
    look_again "$1"
  done
}

# signal_group SIGNAL: the whole group of the process that was looked at last, because the kernel
# lets no fork slip through while it signals a group. Only in a session that a member leads: all in
# it descend from that one.
signal_group() {
  [ "$group" -gt 1 ] || return 0
  case " $ever" in *" $session:"*) kill "-$1" "-$group" 2>/dev/null ;; esac
  return 0
}

# kill_tree N: all of it, whatever it does meanwhile.
kill_tree() {
  eval "tree_cgroup=\$cgroup_$1"
  if [ -n "$tree_cgroup" ] && [ -w "$tree_cgroup/cgroup.kill" ]; then
    # cgroups(7), version 2: the kernel ends all of it at once, and nothing can fork away.
    eval "set -- $1 \$living_$1"
    tree=$1
    shift
    for word; do eval "seen_${word%:*}_${word#*:}=9"; done
    { echo 1 >"$tree_cgroup/cgroup.kill"; } 2>/dev/null
    set -- "$tree"
  fi
  stop_all "$1"
  kill_all "$1"
}

kill_all() {
  eval "set -- \$living_$1; ever=\$ever_$1"
  for word; do
    is_process "${word%:*}" "${word#*:}" || continue
    signal_process 9 "${word%:*}" "${word#*:}"
    signal_group KILL
  done
}

# remember_all N: for whoever looks later, when the marks may be gone. Best effort.
remember_all() {
  eval "job=\$id_$1 set_=\$living_$1"
  pairs=
  for word in $set_; do
    pairs="$pairs ${word%:*} ${word#*:}"
  done
  [ -n "$pairs" ] && [ -d "$state/jobs/$job" ] || return 0
  write_record "$state/jobs/$job/members" $pairs 2>/dev/null
}

# begin_end N WORD: looks at a job for the first time.
begin_end() {
  gather "$2"
  eval "id_$1=\$job ever_$1= living_$1= none_$1=0 term_$1=0 kill_$1=0 main_end_$1= main_$1=-"
  eval "quiet_$1=0 asked_$1=0"
  eval "cgroup_$1=\${job_cgroup-}"
  if [ "$current" = yes ]; then eval "main_$1=\$main_pid:\$main_ticks"; fi
}

# begin_signals N: the first signal, once its members are known.
begin_signals() {
  look_again "$1"
  eval "main=\$main_$1 living=\$living_$1"
  remember_all "$1"
  plan=rest
  case " $living " in
    *" $main "*)
      note_request "$1"
      plan=main
      # KILL is for the whole tree at once.
      [ "$end_signal" = 9 ] || signal_process "$end_signal" "${main%:*}" "${main#*:}"
      ;;
  esac
  if [ "$grace" = once ]; then
    # One signal for the main process, and nothing more.
    [ "$plan" = main ] && eval "once_$1=$end_signal"
    plan='done'
  elif [ "$end_signal" = 9 ]; then
    plan="kill"
    kill_tree "$1"
    eval "killed_$1=\$clock"
  elif [ "$plan" = rest ]; then
    signal_rest 15 "$1"
  fi
  eval "plan_$1=$plan"
}

# go_on N: one look at a job, and what follows from it.
go_on() {
  look "$1"
  eval "plan=\$plan_$1 living=\$living_$1 main=\$main_$1 asked=\$asked_$1"
  passed=$((clock - began))
  case $plan in
    main)
      case " $living " in *" $main "*) [ "$((passed * 2))" -ge "$grace" ] || return 0 ;; esac
      look_again "$1"
      signal_rest 15 "$1"
      plan=rest
      # On a busy machine it took time to find them; they have theirs from now on.
      read_ticks
      eval "asked_$1=\$clock"
      ;;
    rest)
      if [ -z "$living" ] && is_quiet "$1"; then
        plan='done'
      elif [ "$passed" -ge "$grace" ] && [ "$(((clock - asked) * 2))" -ge "$grace" ]; then
        kill_tree "$1"
        plan="kill"
        eval "killed_$1=\$clock"
      else
        signal_rest 15 "$1"
      fi
      ;;
    kill)
      eval "killed=\$killed_$1"
      if [ -z "$living" ] && is_quiet "$1"; then
        plan='done'
      elif [ "$((clock - killed))" -ge "$kill_patience" ]; then
        look_again "$1"
        kill_all "$1"
        plan='done'
      else
        kill_all "$1"
      fi
      ;;
  esac
  eval "plan_$1=\$plan"
}

# report N: the frame "ended ID", with a line each:
#   main SIGNAL TICKS   the main process ended, SIGNAL sent last (0: none), after that time
#   once SIGNAL PID     the main process was sent one signal and nothing more was done
#   rest NONE TERM KILL how many of the others ended: by themselves, after TERM, after KILL
#   took TICKS
#   left PID STATE NAME each one that is still there
report() {
  eval "frame \"ended \$id_$1\""
  eval "main_end=\$main_end_$1 once=\${once_$1-} main=\$main_$1 living=\$living_$1"
  [ -z "$main_end" ] || echo "main $main_end"
  [ -z "$once" ] || echo "once $once ${main%:*}"
  eval "echo \"rest \$none_$1 \$term_$1 \$kill_$1\""
  echo "took $((clock - began))"
  [ -z "$once" ] || return 0
  for word in $living; do
    pid=${word%:*} name=
    is_process "$pid" "${word#*:}" || continue
    { IFS= read -r name <"/proc/$pid/comm"; } 2>/dev/null
    printf '%s\n' "left $pid $process_state $name"
  done
}

# end_jobs REASON BY SIGNAL GRACE WORD...: SIGNAL a number, GRACE ticks, or "once" for a single
# signal to the main process. WORD as gather takes it.
end_jobs() {
  end_reason=$1 asked_by=$2 end_signal=$3 grace=$4
  shift 4
  count=0 searched='' pauses=0
  for word; do
    count=$((count + 1))
    begin_end "$count" "$word"
  done
  read_ticks
  began=$clock
  step=0
  while [ "$step" -lt "$count" ]; do
    step=$((step + 1))
    begin_signals "$step"
  done
  unfinished=yes
  while [ -n "$unfinished" ]; do
    unfinished='' step=0
    while [ "$step" -lt "$count" ]; do
      step=$((step + 1))
      eval "plan=\$plan_$step"
      [ "$plan" != 'done' ] || continue
      go_on "$step"
      eval "plan=\$plan_$step"
      [ "$plan" = 'done' ] || unfinished=yes
    done
    [ -n "$unfinished" ] || break
    pause
    read_ticks
  done
  step=0
  while [ "$step" -lt "$count" ]; do
    step=$((step + 1))
    remember_all "$step"
    eval "job_cgroup=\$cgroup_$step"
    [ -z "$job_cgroup" ] || rmdir "$job_cgroup" 2>/dev/null
    report "$step"
  done
}
