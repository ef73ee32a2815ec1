# session.sh: sessions of one's own, with what the container has. TOOL is setsid, python3, perl, or,
# as the last resort, nohup, which makes no session.
#
# python3 ignores SIGPIPE, and that would outlive the exec: it is set back.
#
# shellcheck shell=sh disable=SC2016

# in_session TOOL WORD...: becomes the leader of a new session, under the PID of this call's child.
# Only where we lead our group ourselves: otherwise setsid(1) would have to fork.
in_session() {
  tool=$1
  shift
  case $tool in
    setsid) setsid "$@" ;;
    python3) python3 -c 'import os,sys,signal
signal.signal(signal.SIGPIPE,signal.SIG_DFL)
os.setsid()
os.execvp(sys.argv[1],sys.argv[1:])' "$@" ;;
    perl) perl -e 'use POSIX; POSIX::setsid(); exec {$ARGV[0]} @ARGV' -- "$@" ;;
    nohup) nohup "$@" ;;
  esac
}

# detached TOOL WORD...: the same in the background of nobody; returns at once, stdin is kept.
# The first setsid makes us a session's leader, so the second one must fork, and its parent ends. An
# "&" would leave SIGINT and SIGQUIT ignored.
detached() {
  tool=$1
  shift
  case $tool in
    setsid) setsid setsid "$@" ;;
    python3) python3 -c 'import os,sys,signal
signal.signal(signal.SIGPIPE,signal.SIG_DFL)
os.fork() and os._exit(0)
os.setsid()
os.execvp(sys.argv[1],sys.argv[1:])' "$@" ;;
    perl) perl -e 'use POSIX; fork and exit; POSIX::setsid(); exec {$ARGV[0]} @ARGV' -- "$@" ;;
    # An asynchronous list gets /dev/null as its stdin unless another one is named.
    nohup) { nohup "$@" <&4 4<&- & } 4<&0 ;;
  esac
}
