#!/usr/bin/env bash
# check.sh COLUMN TIMES TABLE [SPEED] compares the seconds of the processor that the tests of each package used (TIMES, as
# cpu.sh writes it) with the column test or race of TABLE. It prints the sum. If a package took more than twice its
# line, or all together more than the line "sum", it prints the packages to look at, one a line after "over: ", and
# fails. Seconds of the processor and not of the clock, so that a busy machine does not fail it; on a machine that is
# slower in all it does, by the median of SPEED (as speed.sh writes it) over the line "loop", all lines are longer by as
# much, from 1.3 on by a quarter more, and at most four times as long. It prints the median and the factor always.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

median=$(sort -n "${4:-/dev/null}" | awk '{ all[NR] = $1 } END { print NR ? all[int((NR + 1) / 2)] : 0 }')
awk -v column="$1" -v root="$PWD/" -v table="$3" -v median="$median" '
  FNR == NR {
    if ($0 !~ /^#/ && NF == 3) line[$1] = column == "race" ? $3 : $2
    next
  }
  { sub(root, "", $1); used[$1] += $2 + $3; sum += $2 + $3 }
  END {
    if (column != "test" && column != "race") { printf "The tests used %.0f s of the processor.\n", sum; exit }
    if (!("sum" in line) || !("others" in line)) { print table ": no line sum or others"; exit 2 }
    factor = "loop" in line ? median / line["loop"] : 1
    if (factor >= 1.3) factor *= 1.25 # a loop is a rough measure
    factor = factor < 1 ? 1 : factor > 4 ? 4 : factor
    printf "A loop took %.3f s, usually %.3f: all lines are %.2f times as long.\n", median, line["loop"], factor
    for (name in line) line[name] = line[name] == "-" ? "-" : line[name] * factor
    for (name in used) {
      most = name in line ? line[name] : line["others"]
      share = most == "-" ? 1e9 : used[name] / (most + 0.001)
      if (share > 2) { printf "%s took %.1f s of the processor, more than twice its line, %s\nover: %s\n", name, used[name], most, name; failed = 1 }
      if (share > worst) { worst = share; first = name }
    }
    printf "The tests used %.0f s of the processor; their ceiling is %.0f.\n", sum, line["sum"]
    if (sum > line["sum"]) {
      printf "That is over the ceiling; %s is furthest above its line\nover: %s\n", first, first
      failed = 1
    }
    exit failed
  }' "$3" "$2"
