# oidc-provider, a provider of company sign-in that others have written, on Node.js. Sourced by with.sh.
# shellcheck shell=bash

# oidc_ready fetches the versions of the lock file with npm, from whichever registry npm is configured for, and starts it.
oidc_ready() {
  if [ -n "${TEST_OIDC_PROVIDER:-}" ]; then
    say "oidc-provider: given by TEST_OIDC_PROVIDER"
    export TEST_OIDC_PROVIDER
    return 0
  fi
  cp -R "$here/oidc" "$workdir/oidc"
  (cd "$workdir/oidc" && npm ci --ignore-scripts --no-audit --no-fund >"$workdir/npm.log" 2>&1) || {
    tail -n 20 "$workdir/npm.log" | sed 's/^/  /' >&2
    fail "could not fetch oidc-provider with npm: set TEST_OIDC_PROVIDER to the address of a running test/servers/oidc/provider.mjs"
  }
  start_on_free_port oidc oidc_start oidc_answers
  export TEST_OIDC_PROVIDER="http://127.0.0.1:$port"
}

oidc_start() { launch oidc TERM node "$workdir/oidc/provider.mjs" "$1"; }

oidc_answers() { replies "$1" "GET / HTTP/1.0"$'\r\n' "HTTP/1.1 200"; }
