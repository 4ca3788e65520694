#!/usr/bin/env bash
# run.sh FLAG... PACKAGE... runs go test with these arguments. It prints a line for each package as it ends, then what
# failed, what was skipped and why, and the ten slowest tests. Its exit status is that of the tests.
set -euo pipefail

times=$(mktemp)
trap 'rm -f "$times"' EXIT
status=0
go tool gotestsum --format=pkgname --format-hide-empty-pkg --jsonfile-timing-events="$times" -- "$@" || status=$?
echo
echo "The slowest tests, which may include time that their subtests wait for each other:"
go tool gotestsum tool slowest --num=10 --jsonfile="$times" | sed "s|^$(go list -m)/|  |"
exit "$status"
