#!/usr/bin/env bash
# cpu.sh BINARY [ARGUMENT]... runs the tests of a package, as go test does with -exec, and appends a line to the file
# TEST_CPU_FILE: the folder, and the seconds of the processor that the tests and all processes that they started and
# waited for used, as user and for the system. Its exit status is that of the tests; if a signal ended them, it says which.
set -uo pipefail
file=$(mktemp)
TIMEFORMAT='%U %S'
{ time "$@" 2>&3; } 3>&2 2>"$file"
status=$?
[ "$status" -le 128 ] || echo "$PWD: the tests were ended by the signal $(kill -l "$status" || true)"
echo "$PWD $(tail -n1 "$file")" >>"$TEST_CPU_FILE"
rm -f "$file"
exit "$status"
