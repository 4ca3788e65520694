#!/bin/sh
# Makes the secrets of compose.yaml and leaves those alone that there are. Only you can enter the folder; the files in it
# can be read by all, because each container sees the ones it is given under a user of its own.
set -eu
umask 077
folder=$(dirname "$0")/secrets
mkdir -p "$folder"

make_secret() { # NAME TEXT
  if [ ! -e "$folder/$1" ]; then
    printf '%s' "$2" >"$folder/$1"
    chmod 0444 "$folder/$1"
  fi
}
random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

make_secret postgres_password "$(random)"
make_secret kvstore_auth "$(random)"
make_secret secret_key "$(random)"
make_secret database_url "postgres://tollgate:$(cat "$folder/postgres_password")@postgres:5432/tollgate?sslmode=disable"
