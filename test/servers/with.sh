#!/usr/bin/env bash
# with.sh COMMAND [ARGUMENT]... runs a command beside the servers that the tests talk to.
#
#   TEST_DATABASE_URL    postgres://user:password@host:port/postgres?sslmode=disable, a user that may create databases
#   TEST_VALKEY_URL      host:port
#   TEST_MEMCACHED_ADDR  host:port
#   TEST_CHROMIUM        the program of a browser, Chromium or Chrome, which the tests start themselves
#
# A variable that is set names a server to use as it is. For each that is not, the server is started on a free
# loopback port with its files in a fresh folder, after installing it where that is possible (Debian, as root).
# What was started is stopped and its files removed when the command ends, fails or is interrupted. The exit
# status is the command's.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=process.sh
source "$here/process.sh"
# shellcheck source=install.sh
source "$here/install.sh"
# shellcheck source=postgres.sh
source "$here/postgres.sh"
# shellcheck source=valkey.sh
source "$here/valkey.sh"
# shellcheck source=memcached.sh
source "$here/memcached.sh"
# shellcheck source=chromium.sh
source "$here/chromium.sh"

if [ $# -eq 0 ]; then
  echo "usage: $0 COMMAND [ARGUMENT]..." >&2
  exit 2
fi

workdir=$(mktemp -d "${TMPDIR:-/tmp}/tollgate-servers.XXXXXX")
# The servers' own accounts must be able to reach their folders inside.
chmod 755 "$workdir"
trap finish EXIT
trap 'interrupted INT 130' INT
trap 'interrupted TERM 143' TERM
trap 'interrupted HUP 129' HUP

install_missing

postgres_ready
valkey_ready
memcached_ready
chromium_ready

run_command "$@"
