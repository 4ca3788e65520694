# Starting, watching and stopping processes, each by its own id. Sourced by with.sh.
# shellcheck shell=bash

workdir=""        # fresh folder of this run, removed at its end
started=()        # "id signal name" of each server that runs, in the order of starting
command_id=""     # the command's process, which leads a process group of its own
caught=""         # exit status that an interruption asks for

say() { echo "servers: $*" >&2; }

fail() {
  say "$*"
  exit 1
}

# finish ends what still runs and removes the folder; it is the EXIT trap, so the exit status stays as it is.
finish() {
  # A second Ctrl-C must not leave a server behind.
  trap '' INT TERM HUP
  end_command
  local i
  for ((i = ${#started[@]} - 1; i >= 0; i--)); do
    # shellcheck disable=SC2086 # three words in one entry
    stop_process ${started[i]}
  done
  allow_service_starts
  [ -z "$workdir" ] || rm -rf "$workdir"
}

# interrupted SIGNAL STATUS passes the signal on to the command; without one there is nothing to wait for.
interrupted() {
  caught=$2
  [ -n "$command_id" ] || exit "$2"
  kill "-$1" -- "-$command_id" 2>/dev/null || true
}

# run_command COMMAND... runs it in a process group of its own, so that an interruption reaches all of it, and
# exits with its status. A command that outlives an interruption by ten seconds is killed.
run_command() {
  local status=0 patience=100
  set -m
  "$@" &
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

# end_command kills what the command left in its process group.
end_command() {
  [ -n "$command_id" ] || return 0
  kill -KILL -- "-$command_id" 2>/dev/null || true
  command_id=""
}

# launch NAME SIGNAL COMMAND... starts a server in a session of its own, out of reach of the terminal's Ctrl-C.
# SIGNAL is what stops it in good order. Sets launched to its process id.
launch() {
  local name=$1 signal=$2
  shift 2
  setsid "$@" >"$workdir/$name.log" 2>&1 </dev/null &
  launched=$!
  started+=("$launched $signal $name")
}

# stop_process ID SIGNAL NAME: at most fifteen seconds of good manners, then KILL.
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

# forget_last drops the server that was launched last, after it has ended by itself.
forget_last() {
  wait "$launched" 2>/dev/null || true
  unset "started[$((${#started[@]} - 1))]"
}

# answers_within SECONDS PROBE...: true once the probe succeeds; false when the launched process ends or time is up.
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

# start_on_free_port NAME START PROBE: START and PROBE are functions that take a port. Between the choice of a port
# and the server's bind another process may take it, so a server that ends at once gets other ports. Sets port.
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
  fail "$name does not answer after $attempt attempts, its last words are above"
}

# free_port prints a loopback port nobody listens on, below the range that the kernel hands out to clients.
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

# replies PORT REQUEST PREFIX: true when the line answered to the request begins with the prefix.
replies() {
  local line=""
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf '%s\r\n' "$2" >&3
  IFS= read -r -t 2 line <&3 || true
  exec 3>&-
  [[ $line == "$3"* ]]
}

is_root() { [ "$(id -u)" -eq 0 ]; }
