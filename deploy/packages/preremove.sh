#!/bin/sh
# Stops the service if the package is removed, and not in an upgrade. dpkg calls it with "remove", rpm with 0.
set -e
case "$1" in
remove | 0)
  [ ! -d /run/systemd/system ] || systemctl stop tollgate.service
  systemctl disable tollgate.service >/dev/null 2>&1 || true
  ;;
esac
