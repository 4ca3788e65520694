# Installs missing servers with the package manager. Sourced by with.sh.
# shellcheck shell=bash

policy=/usr/sbin/policy-rc.d # every package runs this before it starts its own service
policy_written=""

# install_missing installs, in one step, the servers that no variable names and that are not installed.
install_missing() {
  local packages=() release=()
  if [ -z "${TEST_DATABASE_URL:-}" ] && [ -z "$(postgres_folder)" ]; then
    needs_installer PostgreSQL TEST_DATABASE_URL
    packages+=(postgresql)
  fi
  if [ -z "${TEST_MEMCACHED_ADDR:-}" ] && ! command -v memcached >/dev/null; then
    needs_installer memcached TEST_MEMCACHED_ADDR
    packages+=(memcached)
  fi
  if [ -z "${TEST_VALKEY_URL:-}" ] && ! command -v valkey-server >/dev/null; then
    needs_installer Valkey TEST_VALKEY_URL
    packages+=(valkey-server)
  fi
  if [ -z "${TEST_CHROMIUM:-}" ] && [ -z "$(chromium_path)" ]; then
    needs_installer Chromium TEST_CHROMIUM
    packages+=(chromium)
  fi
  if { [ -z "${TEST_AXE:-}" ] || [ -z "${TEST_OIDC_PROVIDER:-}" ] || [ -z "${TEST_MCP:-}" ]; } && ! command -v npm >/dev/null; then
    needs_installer npm "TEST_AXE, TEST_OIDC_PROVIDER and TEST_MCP"
    packages+=(npm)
  fi
  # Tests skip nginx, Caddy and Varnish where they cannot be installed.
  if is_root && command -v apt-get >/dev/null; then
    command -v nginx >/dev/null || packages+=(nginx-light)
    command -v caddy >/dev/null || packages+=(caddy)
    command -v varnishd >/dev/null || packages+=(varnish varnish-modules)
  fi
  [ ${#packages[@]} -gt 0 ] || return 0

  say "installing ${packages[*]}"
  refresh_packages
  if [[ " ${packages[*]} " == *" valkey-server "* ]] && ! has_candidate valkey-server; then
    add_backports
    refresh_packages
    release=(-t "$(codename)-backports")
  fi
  refuse_service_starts
  local package
  for package in "${packages[@]}"; do
    case $package in
      valkey-server) install_package "$package" "${release[@]}" ;;
      chromium) install_package "$(chromium_package)" ;;
      *) install_package "$package" ;;
    esac
  done
  allow_service_starts
}

# install_package PACKAGE [OPTION]...
install_package() {
  local package=$1
  shift
  apt install --no-install-recommends "$@" "$package" ||
    fail "could not install $package: install it by hand, or set the variable of a running server (see $here/with.sh)"
}

# needs_installer SERVER VARIABLE ends the run with a message if nothing can be installed on this machine.
needs_installer() {
  is_root || fail "$1 is not installed and only root can install it: install it as root, or set $2 to an existing one"
  command -v apt-get >/dev/null || fail "$1 is not installed and this machine has no apt-get: install it, or set $2 to an existing one"
}

# apt VERB... runs apt-get without prompts; its output is shown only if it fails.
apt() {
  local log=$workdir/apt.log
  if DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 </dev/null; then return 0; fi
  tail -n 20 "$log" | sed 's/^/  /' >&2
  return 1
}

# refresh_packages ignores failures: a source that cannot be reached does not matter if another one has the package.
refresh_packages() { apt update || say "some package lists could not be read, going on with the others"; }

has_candidate() { [[ $(apt-cache policy "$1" 2>/dev/null) =~ Candidate:\ [0-9] ]]; }

codename() { (. /etc/os-release && echo "${VERSION_CODENAME:-}"); }

# add_backports adds the backports of this Debian release, from the mirror that the machine uses for the release itself.
add_backports() {
  local name entry uri key file
  name=$(codename)
  file=/etc/apt/sources.list.d/$name-backports.list
  entry=$(debian_source "$name")
  [ -n "$entry" ] || fail "this release has no package valkey-server, and no source of Debian $name is configured from which to add backports: install it, or set TEST_VALKEY_URL"
  read -r uri key <<<"$entry"
  say "adding $name-backports to the package sources ($file)"
  echo "deb ${key:+[signed-by=$key] }$uri $name-backports main" >"$file"
}

# debian_source CODENAME prints "URI [KEYRING]" of the source whose suite is exactly the release, in either format.
debian_source() {
  local files=()
  shopt -s nullglob
  files=(/etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list)
  shopt -u nullglob
  local file found
  for file in "${files[@]}"; do
    [ -r "$file" ] || continue
    case $file in
      *.sources) found=$(source_from_stanzas "$1" "$file") ;;
      *) found=$(source_from_lines "$1" "$file") ;;
    esac
    if [ -n "$found" ]; then
      echo "${found%%$'\n'*}"
      return 0
    fi
  done
}

# source_from_stanzas reads the deb822 format: stanzas of fields, separated by empty lines.
source_from_stanzas() {
  awk -v suite="$1" '
    function flush(   i, n, list) {
      n = split(suites, list, " ")
      for (i = 1; i <= n; i++) if (list[i] == suite && uri != "" && enabled != "no") print uri, key
      suites = uri = key = enabled = ""
    }
    /^[[:space:]]*$/ { flush(); next }
    /^#/ { next }
    { field = tolower($1) }
    field == "suites:" { $1 = ""; suites = $0 }
    field == "uris:" { uri = $2 }
    field == "signed-by:" { key = ($2 ~ /^\//) ? $2 : "" }
    field == "enabled:" { enabled = tolower($2) }
    END { flush() }' "$2"
}

# source_from_lines reads the format with one source per line: deb [options] URI suite component...
source_from_lines() {
  awk -v suite="$1" '
    $1 != "deb" { next }
    {
      key = ""; line = $0
      if (match(line, /\[[^]]*\]/)) {
        options = substr(line, RSTART + 1, RLENGTH - 2)
        if (match(options, /signed-by=[^ ]+/)) key = substr(options, RSTART + 10, RLENGTH - 10)
        sub(/\[[^]]*\]/, "", line)
      }
      split(line, word, " ")
      if (word[3] == suite) print word[2], key
    }' "$2"
}

# refuse_service_starts prevents the packages from starting their own services; the tests' servers use other ports.
refuse_service_starts() {
  [ ! -e "$policy" ] || return 0
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  policy_written=yes
}

allow_service_starts() {
  [ -n "$policy_written" ] || return 0
  rm -f "$policy"
  policy_written=""
}
