#!/usr/bin/env bash
# speed.sh FILE appends a line to FILE every ten seconds until it is ended: the seconds of the processor that a short
# loop needed. It shows how fast the machine is while the tests run: its processors may have to serve others too.
set -euo pipefail
TIMEFORMAT=%U
while true; do
  { time for ((i = 0; i < 30000; i++)); do :; done; } 2>>"$1"
  sleep 10
done
