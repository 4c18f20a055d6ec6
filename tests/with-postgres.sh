#!/usr/bin/env bash
# Runs a command with an empty Postgres of its own in DATABASE_URL, reached over
# a socket, and ends that Postgres afterwards.
#
#   tests/with-postgres.sh COMMAND ARGUMENT…
set -euo pipefail
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1 || true)
bin=${bin:-$(dirname "$(command -v postgres)")}
folder=$(mktemp -d)
as=()
if [ "$(id -u)" = 0 ]; then
    # Postgres refuses to run as root.
    account=postgres
    id "$account" >/dev/null 2>&1 || account=nobody
    chown "$account" "$folder"
    as=(setpriv --reuid "$account" --regid "$(id -g "$account")" --clear-groups)
fi
finish() {
    "${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$folder"
}
trap finish EXIT
inside() { (cd "$folder" && "${as[@]}" "$@"); }
inside "$bin/initdb" -D "$folder/data" -A trust -U postgres -E UTF8 --locale=C --no-sync >"$folder/initdb.log"
inside "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/server.log" \
    -o "-c listen_addresses='' -c unix_socket_directories=$folder ${POSTGRES_OPTIONS:--c fsync=off}" start >/dev/null
export DATABASE_URL="postgres://postgres@localhost/postgres?host=$folder"
"$@"
