#!/usr/bin/env bash
# run.sh FLAG... ./PACKAGE... runs go test with these arguments, in each module that has some of the packages. It prints
# a line for each package as it ends, then what failed, what was skipped and why, and the ten slowest tests. Its exit
# status is that of the tests.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
times=$(mktemp)
trap 'rm -f "$times"' EXIT
gotestsum=$(go -C "$here/tools" tool -n gotestsum)
status=0
"$gotestsum" --format=pkgname --format-hide-empty-pkg --jsonfile-timing-events="$times" --raw-command -- \
  "$here/modules.sh" go test -json "$@" || status=$?
echo
echo "The slowest tests, which may include time that their subtests wait for each other:"
"$gotestsum" tool slowest --num=10 --jsonfile="$times" | sed "s|^$(go list -m)/|  |"
exit "$status"
