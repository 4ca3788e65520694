# Valkey for the tests. Sourced by with.sh.
# shellcheck shell=bash

valkey_ready() {
  if [ -n "${TEST_VALKEY_URL:-}" ]; then
    say "valkey: given by TEST_VALKEY_URL"
    export TEST_VALKEY_URL
    return 0
  fi
  mkdir "$workdir/valkey"
  start_on_free_port valkey valkey_start valkey_answers
  export TEST_VALKEY_URL="127.0.0.1:$port"
}

valkey_start() {
  launch valkey TERM valkey-server --port "$1" --bind 127.0.0.1 --save '' --appendonly no --dir "$workdir/valkey"
}

valkey_answers() { replies "$1" PING +PONG; }
