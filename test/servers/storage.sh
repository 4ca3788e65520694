# The temporary folders of a run. Sourced by with.sh.
# shellcheck shell=bash

memory=/dev/shm            # where Linux has memory-backed storage
memory_needed=$((4 << 20)) # free space in KiB: databases, programs and profiles of browsers
gotmpdir=""                # folder of the go command's own files, removed at the end

# make_folders creates the folder of the run, and one on disk for what the go command builds, which needs much space.
make_folders() {
  local disk=${TMPDIR:-/tmp} base=${TMPDIR:-}
  if [ -z "$base" ]; then base=$(memory_folder); fi
  # Sockets have their place in it: their paths have at most 107 bytes, of which the service leaves 36 to its TMPDIR.
  workdir=$(mktemp -d "${base:-$disk}/tg.XXXX")
  # The accounts of the servers must be able to enter the folder to reach their own folders in it.
  chmod 755 "$workdir"
  mkdir "$workdir/t"
  if [ -z "${GOTMPDIR:-}" ]; then
    gotmpdir=$(mktemp -d "$disk/tollgate-go.XXXXXX")
    export GOTMPDIR=$gotmpdir
  fi
}

# memory_folder prints the folder of memory-backed storage that has enough space and runs programs, if there is one.
memory_folder() {
  local probe free
  [ -d "$memory" ] && [ "$(stat -f -c %T "$memory" 2>/dev/null)" = tmpfs ] || return 0
  free=$(df -Pk "$memory" | awk 'END { print $4 }')
  [ "$free" -ge "$memory_needed" ] || return 0
  probe=$(mktemp "$memory/tg.XXXX") || return 0
  printf '#!/bin/sh\n' >"$probe"
  chmod 700 "$probe"
  if "$probe" 2>/dev/null; then echo "$memory"; fi
  rm -f "$probe"
}

remove_folders() {
  [ -z "$workdir" ] || rm -rf "$workdir"
  [ -z "$gotmpdir" ] || rm -rf "$gotmpdir"
}
