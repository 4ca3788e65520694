#!/bin/sh
# Purging the package removes the configuration. The data in /var/lib/tollgate, and its owner, stay.
set -e
[ "$1" != purge ] || rm -rf /etc/tollgate
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
