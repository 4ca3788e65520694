# axe-core, which finds faults of accessibility in pages, for the tests of the console. Sourced by with.sh.
# shellcheck shell=bash

axe_version=4.14.1
axe_sum=e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745 # SHA-256 of the package

# axe_ready fetches the pinned version with npm, from whichever registry npm is configured for, and checks its sum.
axe_ready() {
  if [ -n "${TEST_AXE:-}" ]; then
    say "axe-core: given by TEST_AXE"
    export TEST_AXE
    return 0
  fi
  local folder=$workdir/axe package=axe-core-$axe_version.tgz
  mkdir -p "$folder"
  (cd "$folder" && npm pack --silent "axe-core@$axe_version" >/dev/null) || fail "could not fetch axe-core with npm: set TEST_AXE to a file axe.min.js"
  echo "$axe_sum  $folder/$package" | sha256sum --check --quiet || fail "axe-core $axe_version does not have the expected SHA-256"
  tar -xzf "$folder/$package" -C "$folder" package/axe.min.js
  chmod -R a+rX "$folder"
  export TEST_AXE="$folder/package/axe.min.js"
}
