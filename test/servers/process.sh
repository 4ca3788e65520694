# Starts, watches and stops processes by their ids. Sourced by with.sh.
# shellcheck shell=bash

workdir=""        # temporary folder of this run, removed at its end
started=()        # "id signal name" of each running server, in the order in which they were started
command_id=""     # process id of the command, which leads its own process group
caught=""         # exit status after an interruption

say() { echo "servers: $*" >&2; }

fail() {
  say "$*"
  exit 1
}

# finish ends all processes that still run and removes the folder. It is the EXIT trap and does not change the exit status.
finish() {
  # A second Ctrl-C must not leave a server running.
  trap '' INT TERM HUP
  end_command
  local i
  for ((i = ${#started[@]} - 1; i >= 0; i--)); do
    # shellcheck disable=SC2086 # three words in one entry
    stop_process ${started[i]}
  done
  allow_service_starts
  kill_strays
  remove_folders
}

# kill_strays kills the processes that left the command's process group: those with its environment or a program in the
# folder of the run.
kill_strays() {
  [ -n "$workdir" ] && [ -d /proc/self ] || return 0
  local path
  for path in $({ grep -lsF "TOLLGATE_TEST_RUN=$workdir" /proc/[0-9]*/environ || true; } 2>/dev/null) \
    $(find /proc/[0-9]*/exe -lname "$workdir/*" 2>/dev/null || true); do
    path=${path#/proc/}
    kill -KILL "${path%%/*}" 2>/dev/null || true
  done
}

# interrupted SIGNAL STATUS sends the signal to the command; if no command runs, it exits at once.
interrupted() {
  caught=$2
  [ -n "$command_id" ] || exit "$2"
  kill "-$1" -- "-$command_id" 2>/dev/null || true
}

# run_command COMMAND... runs the command in its own process group, so that an interruption reaches all its processes,
# and exits with its status. A command that outlives an interruption by ten seconds is killed.
run_command() {
  local status=0 patience=100
  set -m
  TMPDIR=$workdir/t TOLLGATE_TEST_RUN=$workdir "$@" &
  command_id=$!
  set +m
  wait "$command_id" || status=$?
  while [ -n "$caught" ] && group_alive && [ "$patience" -gt 0 ]; do
    sleep 0.1
    patience=$((patience - 1))
  done
  end_command
  exit "${caught:-$status}"
}

group_alive() { kill -0 -- "-$command_id" 2>/dev/null; }

# end_command kills the remaining processes in the command's process group.
end_command() {
  [ -n "$command_id" ] || return 0
  kill -KILL -- "-$command_id" 2>/dev/null || true
  command_id=""
}

# launch NAME SIGNAL COMMAND... starts a server in its own session, so that Ctrl-C in the terminal does not reach it.
# SIGNAL stops the server in an orderly way. Sets launched to its process id.
launch() {
  local name=$1 signal=$2
  shift 2
  setsid "$@" >"$workdir/$name.log" 2>&1 </dev/null &
  launched=$!
  started+=("$launched $signal $name")
}

# stop_process ID SIGNAL NAME sends the signal, waits for at most fifteen seconds, and then sends KILL.
stop_process() {
  local id=$1 patience=150
  kill "-$2" "$id" 2>/dev/null || true
  while kill -0 "$id" 2>/dev/null; do
    if [ "$patience" -eq 0 ]; then
      say "$3 does not stop, killing it"
      kill -KILL "$id" 2>/dev/null || true
      break
    fi
    patience=$((patience - 1))
    sleep 0.1
  done
  wait "$id" 2>/dev/null || true
}

# forget_last removes the last launched server from the list after it has ended.
forget_last() {
  wait "$launched" 2>/dev/null || true
  unset "started[$((${#started[@]} - 1))]"
}

# answers_within SECONDS PROBE... returns true when the probe succeeds, false when the launched process ends or the time is up.
answers_within() {
  local end=$((SECONDS + $1))
  shift
  while [ "$SECONDS" -lt "$end" ]; do
    kill -0 "$launched" 2>/dev/null || return 1
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.1
  done
  return 1
}

# start_on_free_port NAME START PROBE starts a server; START and PROBE are functions that take a port. Another process may
# take the chosen port before the server does, so a server that ends at once is started again on another port. Sets port.
start_on_free_port() {
  local name=$1 attempt
  for attempt in 1 2 3 4 5; do
    port=$(free_port)
    "$2" "$port"
    if answers_within 60 "$3" "$port"; then
      say "$name: started on 127.0.0.1:$port (process $launched)"
      return 0
    fi
    kill -0 "$launched" 2>/dev/null && break
    forget_last
  done
  sed 's/^/  /' "$workdir/$name.log" | tail -n 20 >&2
  fail "$name does not answer after $attempt attempts, see its last output above"
}

# free_port prints an unused loopback port below the range that the kernel assigns to clients.
free_port() {
  local candidate
  while :; do
    candidate=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$candidate") 2>/dev/null; then
      echo "$candidate"
      return 0
    fi
  done
}

# replies PORT REQUEST PREFIX sends a line and returns true if the first line of the response begins with the prefix.
replies() {
  local line=""
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf '%s\r\n' "$2" >&3
  IFS= read -r -t 2 line <&3 || true
  exec 3>&-
  [[ $line == "$3"* ]]
}

is_root() { [ "$(id -u)" -eq 0 ]; }
