#!/usr/bin/env bash
# with.sh COMMAND [ARGUMENT]... starts the servers that the tests need, runs a command, and stops the servers.
#
#   TEST_DATABASE_URL    postgres://user:password@host:port/postgres?sslmode=disable, a user that may create databases
#   TEST_VALKEY_URL      host:port
#   TEST_MEMCACHED_ADDR  host:port
#   TEST_CHROMIUM        the program of a browser, Chromium or Chrome, which the tests start themselves
#   TEST_AXE             the file axe.min.js of axe-core, which looks for faults of accessibility in pages
#   TEST_OIDC_PROVIDER   http://host:port of oidc/provider.mjs, at which people of a company sign in
#   TEST_MCP             the file dist/index.js of the conformance suite of MCP, which Node.js runs; its node_modules has the MCP SDK
#
# If a variable is set, the tests use that server. For each variable that is not set, the script installs the server if
# it is missing (on Debian, as root) and starts it on a free loopback port with its files in a temporary folder. The
# command gets a TMPDIR in the same folder. If TMPDIR is set, the folder is created there; otherwise in memory, if there
# is memory-backed storage with enough space, or in /tmp.
#
# When the command ends, fails or is interrupted, the script stops these servers, kills what the command left running,
# and removes the folder. Its exit status is the command's.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=process.sh
source "$here/process.sh"
# shellcheck source=storage.sh
source "$here/storage.sh"
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
# shellcheck source=axe.sh
source "$here/axe.sh"
# shellcheck source=oidc.sh
source "$here/oidc.sh"
# shellcheck source=mcp.sh
source "$here/mcp.sh"

if [ $# -eq 0 ]; then
  echo "usage: $0 COMMAND [ARGUMENT]..." >&2
  exit 2
fi

trap finish EXIT
trap 'interrupted INT 130' INT
trap 'interrupted TERM 143' TERM
trap 'interrupted HUP 129' HUP

make_folders
install_missing

postgres_ready
valkey_ready
memcached_ready
chromium_ready
axe_ready
oidc_ready
mcp_ready

run_command "$@"
