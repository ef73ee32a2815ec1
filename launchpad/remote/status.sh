# status.sh: the verb. Behind common.sh, members.sh and facts.sh.
#
# The words: STATE_DIRECTORY SPECS TAIL MODE WORD...
#   SPECS   yes: with the jobs' specs    TAIL  how many bytes of each log's end
#   MODE    once, or watch: again for each byte on stdin, until its end or 15 s without one, because
#           a line that was lost without a reset is invisible to us
#   WORD    as gather takes it; "*": every job that has a directory
#
# shellcheck shell=sh disable=SC2034,SC2086,SC2119,SC2120,SC2154

# A command line has a limit, and so has a reply: this many logs and specs are read at once.
batch=400

# find_jobs: every job directory, into all_jobs. What is no job id is not ours.
find_jobs() {
  all_jobs=
  for place in "$state"/jobs/*; do
    id=${place##*/}
    case $id in
      *[!A-Za-z0-9._-]* | [!A-Za-z0-9]*) continue ;;
      *-[a-z2-7][a-z2-7][a-z2-7][a-z2-7][a-z2-7][a-z2-7]) ;;
      *) continue ;;
    esac
    all_jobs="$all_jobs $id"
  done
}

# leave_out WORD...: takes out of all_jobs what a word names: it tells more than a directory's name.
# By sorting: to cut words out of a long string takes a shell a minute for a thousand of them.
leave_out() {
  all_jobs=$({
    for word; do
      # Twice, so that none of them is the only one of its kind.
      printf '%s\n%s\n' "${word%%=*}" "${word%%=*}"
    done
    [ -z "$all_jobs" ] || printf '%s\n' $all_jobs
  } | sort | uniq -u)
}

# tell SPECS TAIL WORD...: all facts about the jobs, once.
tell() {
  specs_wanted=$1 tail_wanted=$2
  shift 2
  if [ "${1-}" = '*' ]; then
    shift
    find_jobs
    [ "$#" = 0 ] || leave_out "$@"
    set -- "$@" $all_jobs
  fi
  begin_facts
  ids=
  for word; do
    gather "$word"
    ids="$ids ${word%%=*}"
  done
  print_members
  print_gpus
  print_disk
  set -- $ids
  while [ "$#" -gt 0 ]; do
    part='' taken=0
    while [ "$#" -gt 0 ] && [ "$taken" -lt "$batch" ]; do
      part="$part $1" taken=$((taken + 1))
      shift
    done
    print_files "$specs_wanted" "$tail_wanted" $part
  done
}

# print_disk: `disk TOTAL USED FREE JOBS` (KiB) where the state directory lies. What the jobs' files
# take of it, or -, is added up only where it matters: that may take long.
print_disk() {
  # shellcheck disable=SC2046 # words are wanted
  set -- $(timeout -s KILL 2 df -P -k "$state" 2>/dev/null | tail -n 1)
  for number in "${2-}" "${3-}" "${4-}"; do
    case $number in '' | *[!0-9]*) return 0 ;; esac
  done
  jobs_take=-
  # Nearly full is said by the client; here it is only guessed, generously.
  if [ "$4" -lt "$(($2 / 10))" ]; then
    jobs_take=$(timeout -s KILL 2 du -s -k "$state/jobs" 2>/dev/null)
    jobs_take=${jobs_take%%[!0-9]*}
  fi
  frame "disk $2 $3 $4 ${jobs_take:--}"
}

# print_gpus: nvidia-smi's figures, if there is one; it is known to hang with a faulty driver.
print_gpus() {
  command -v nvidia-smi >/dev/null || return 0
  gpus=$(
    timeout -s KILL 2 nvidia-smi --format=csv,noheader,nounits \
      --query-gpu=index,name,utilization.gpu,memory.used,memory.total 2>/dev/null
  ) || return 0
  frame gpus
  printf '%s\n' "$gpus"
}

status() {
  IFS=' ' read -r marker size _ || exit 1
  words=$(take "$size")
  frame "begin 1"
  eval "set -- $words"
  state=$1 specs=$2 tail=$3 mode=$4
  shift 4
  check_owner
  tell "$specs" "$tail" "$@"
  frame "done"
  # Each turn in a shell of its own, which takes along what it found out.
  while [ "$mode" = watch ] && [ -n "$(timeout 15 dd bs=1 count=1 2>/dev/null)" ]; do
    (tell "$specs" "$tail" "$@")
    frame "done"
  done
}

status
