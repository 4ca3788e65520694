#!/bin/sh
# Creates the user and the folders. It does not start the service, which has no settings yet; after an upgrade it restarts
# one that runs. dpkg calls it with "configure" and the version before, if any; rpm with 1, or 2 in an upgrade.
set -e
case "$1" in
configure | 1 | 2)
  systemd-sysusers tollgate.conf
  systemd-tmpfiles --create tollgate.conf
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart tollgate.service
  fi
  ;;
esac
