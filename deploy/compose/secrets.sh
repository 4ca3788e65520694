#!/bin/sh
# Creates the secrets of compose.yaml that do not exist yet. Only you can enter the folder. The files in it are readable for
# everybody, because each container reads its secrets as a different user.
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
