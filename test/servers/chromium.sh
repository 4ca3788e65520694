# Chromium for the tests, which start and stop it themselves. Sourced by with.sh.
# shellcheck shell=bash

chromium_ready() {
  if [ -n "${TEST_CHROMIUM:-}" ]; then
    say "chromium: given by TEST_CHROMIUM"
  else
    TEST_CHROMIUM=$(chromium_path)
  fi
  export TEST_CHROMIUM
}

# chromium_path prints the path of an installed browser, which it finds by its usual names.
chromium_path() { command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || command -v google-chrome || true; }

# chromium_package prints the name of the package to install: the smaller one if this release has it.
chromium_package() { if has_candidate chromium-headless-shell; then echo chromium-headless-shell; else echo chromium; fi; }
