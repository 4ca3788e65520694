#!/usr/bin/env bash
# run.sh COLUMN FLAG... ./PACKAGE... runs go test with these flags and packages, in each module that has some of the
# packages. It prints a line for each package as it ends, then what failed, what was skipped and why, the ten slowest
# tests, and the seconds of the processor that the tests used. It fails if a test does, or if the tests used more than
# the column of ceiling/seconds.txt allows: then it names the packages and their slowest tests.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
column=$1
shift
work=$(mktemp -d)
touch "$work/cpu" "$work/speed"
"$here/ceiling/speed.sh" "$work/speed" >/dev/null & # its last pause keeps no pipe of ours open
speed=$!
trap 'kill "$speed"; rm -rf "$work"' EXIT
export TEST_CPU_FILE=$work/cpu TEST_RUN=$$
# A test is a small program: to collect its garbage as often as a service does costs a sixth of the processor. Tests that
# measure memory collect themselves, or give the processes that they measure an environment without it.
[ "$column" = long ] || export GOGC=${GOGC-400}
# What tests build is compiled before they run: the ceiling is what tests cost, and not a build cache that is empty.
case $column in
test)
  go build -buildvcs=false ./cmd/... ./plugins/...
  client=$(sed -n 's/^\tclient\(Package\|Version\) *= "\(.*\)"$/\2/p' "$here/acceptance/publisher/proof_client_test.go" | paste -sd@)
  [ -e "${XDG_CACHE_HOME-$HOME/.cache}/tollgate-tools/mcp-publisher-${client#*@}" ] || GOBIN=$work GOFLAGS=-mod=mod go install "$client"
  ;;
race) go build -race -buildvcs=false ./cmd/... ./plugins/... ;;
esac
gotestsum=$(go -C "$here/tools" tool -n gotestsum)
module=$(go list -m)
status=0
"$gotestsum" --format=pkgname --format-hide-empty-pkg --jsonfile-timing-events="$work/times" --raw-command -- \
  "$here/modules.sh" go test -json -exec="$here/ceiling/cpu.sh" "$@" || status=$?
echo
echo "The slowest tests, which may include time that their subtests wait for each other:"
"$gotestsum" tool slowest --num=10 --jsonfile="$work/times" | sed "s|^$module/|  |"
echo
"$here/ceiling/check.sh" "$column" "$work/cpu" "$here/ceiling/seconds.txt" "$work/speed" >"$work/checked" || status=1
grep -v '^over: ' "$work/checked"
sed -n 's/^over: //p' "$work/checked" | sort -u | while read -r package; do
  echo "The slowest tests of $package:"
  grep -F "\"Package\":\"$module/$package\"" "$work/times" >"$work/of" || true
  "$gotestsum" tool slowest --num=5 --jsonfile="$work/of" | sed "s|^$module/|  |"
done
exit "$status"
