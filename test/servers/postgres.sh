# PostgreSQL for the tests. Sourced by with.sh.
# shellcheck shell=bash

postgres_as=() # prefix that runs a command as an ordinary account, since the server refuses to run as root
postgres_bin=""

postgres_ready() {
  if [ -n "${TEST_DATABASE_URL:-}" ]; then
    say "postgres: given by TEST_DATABASE_URL"
    export TEST_DATABASE_URL
    return 0
  fi
  local password
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  postgres_bin=$(postgres_folder)
  [ -n "$postgres_bin" ] || fail "PostgreSQL is installed, but the programs postgres and initdb were not found: set TEST_DATABASE_URL to a running server"
  postgres_account
  postgres_create "$password"
  start_on_free_port postgres postgres_start postgres_answers
  export TEST_DATABASE_URL="postgres://tollgate:$password@127.0.0.1:$port/postgres?sslmode=disable"
}

# postgres_folder prints the folder of the newest PostgreSQL; on Debian this folder is not in PATH.
postgres_folder() {
  local folder
  for folder in $(compgen -G '/usr/lib/postgresql/*/bin' | sort -Vr) "$(dirname "$(command -v postgres || true)")"; do
    if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then
      echo "$folder"
      return 0
    fi
  done
}

postgres_account() {
  local account=postgres
  mkdir "$workdir/postgres"
  is_root || return 0
  id postgres >/dev/null 2>&1 || account=nobody
  chown "$account" "$workdir/postgres"
  postgres_as=(setpriv "--reuid=$account" "--regid=$(id -g "$account")" --clear-groups)
}

# postgres_create creates the database cluster. Its default collation is deliberately not bytewise: where the service
# promises bytewise order, a test must not succeed only because of the server's locale.
postgres_create() {
  local secret=$workdir/postgres/secret data=$workdir/postgres/data log=$workdir/initdb.log
  (umask 077 && printf '%s' "$1" >"$secret")
  if is_root; then chown --reference="$workdir/postgres" "$secret"; fi
  local always=(-D "$data" -U tollgate "--pwfile=$secret" --auth=scram-sha-256 --encoding=UTF8 --no-sync)
  if ! initdb_in_order "${always[@]}" --locale=C.UTF-8 --locale-provider=icu --icu-locale=en-US >"$log" 2>&1; then
    rm -rf "$data"
    initdb_in_order "${always[@]}" --locale=C >>"$log" 2>&1 || {
      sed 's/^/  /' "$log" | tail -n 20 >&2
      fail "initdb failed, see its output above"
    }
  fi
}

initdb_in_order() { (cd "$workdir/postgres" && "${postgres_as[@]}" "$postgres_bin/initdb" "$@"); }

# postgres_start starts the server without fsync: its data need not survive the machine, only a killed process.
postgres_start() {
  launch postgres INT env -C "$workdir/postgres" "${postgres_as[@]}" "$postgres_bin/postgres" -D "$workdir/postgres/data" \
    -c "port=$1" -c listen_addresses=127.0.0.1 -c "unix_socket_directories=$workdir/postgres" -c max_connections=300 \
    -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c dynamic_shared_memory_type=mmap
}

# postgres_answers reports whether a login succeeds. An open port is not enough: while the server starts, it refuses logins.
postgres_answers() { "$postgres_bin/pg_isready" -q -h 127.0.0.1 -p "$1" -d postgres -U tollgate; }
