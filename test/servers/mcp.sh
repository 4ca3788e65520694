# The conformance suite of the Model Context Protocol, for the tests of the registry as an MCP server. Sourced by with.sh.
# shellcheck shell=bash

# mcp_ready fetches the versions of the lock file with npm, from whichever registry npm is configured for.
mcp_ready() {
  if [ -n "${TEST_MCP:-}" ]; then
    say "MCP conformance: given by TEST_MCP"
    export TEST_MCP
    return 0
  fi
  cp -R "$here/mcp" "$workdir/mcp"
  (cd "$workdir/mcp" && npm ci --ignore-scripts --no-audit --no-fund >"$workdir/npm.log" 2>&1) || {
    tail -n 20 "$workdir/npm.log" | sed 's/^/  /' >&2
    fail "could not fetch the conformance suite with npm: set TEST_MCP to its file dist/index.js"
  }
  TEST_MCP=$workdir/mcp/node_modules/@modelcontextprotocol/conformance/dist/index.js
  # The suite imports globSync, which Node.js has since version 22, for a command that the tests do not use.
  sed -i 's/existsSync as a,globSync as o,/existsSync as a,/; 2s/^/const o=()=>[];\n/' "$TEST_MCP"
  chmod -R a+rX "$workdir/mcp"
  export TEST_MCP
}
