#!/usr/bin/env bash
# modules.sh COMMAND [ARGUMENT]... [./PACKAGE]... runs a command in the folder of each module that has some of the
# packages, with these packages; without packages, in the folder of each module. A package is a path from the root of
# the repository, and a pattern (./...) selects packages of all modules that are below it. If the command fails in a
# module, it still runs in the others, and the exit status is that of the last failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

modules=(.)
for file in */go.mod */*/go.mod; do
  [ ! -f "$file" ] || modules+=("$(dirname "$file")")
done
command=() packages=()
for word in "$@"; do
  case $word in ./*) packages+=("${word#./}") ;; *) command+=("$word") ;; esac
done

# select_packages MODULE prints those of the packages that belong to the module, as paths from its folder.
select_packages() {
  local package module owner
  for package in "${packages[@]}"; do
    owner=.
    for module in "${modules[@]}"; do
      case $package in "$module" | "$module"/*) owner=$module ;; esac
    done
    if [ "$owner" = "$1" ]; then
      [ "$1" = . ] && echo "./$package" || echo ".${package#"$1"}"
    elif [ "${package##*/}" = ... ] && [[ $1/ == "${package%...}"* ]]; then
      echo ./...
    fi
  done
}

status=0
for module in "${modules[@]}"; do
  mapfile -t selected < <(select_packages "$module")
  if [ ${#packages[@]} -eq 0 ] || [ ${#selected[@]} -gt 0 ]; then
    (cd "$module" && exec "${command[@]}" "${selected[@]}") || status=$?
  fi
done
exit "$status"
