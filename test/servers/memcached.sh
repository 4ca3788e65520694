# memcached for the tests. Sourced by with.sh.
# shellcheck shell=bash

memcached_ready() {
  if [ -n "${TEST_MEMCACHED_ADDR:-}" ]; then
    say "memcached: given by TEST_MEMCACHED_ADDR"
    export TEST_MEMCACHED_ADDR
    return 0
  fi
  start_on_free_port memcached memcached_start memcached_answers
  export TEST_MEMCACHED_ADDR="127.0.0.1:$port"
}

memcached_start() {
  local account=()
  # memcached refuses to run as root without an account to switch to.
  if is_root; then account=(-u nobody); fi
  launch memcached TERM memcached -l 127.0.0.1 -p "$1" -U 0 -m 64 "${account[@]}"
}

memcached_answers() { replies "$1" version VERSION; }
