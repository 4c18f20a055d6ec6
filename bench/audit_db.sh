# Sourced by run.sh: a throw-away Postgres on a Unix socket for the peers that
# audit, on the load's core, with fsync on. Does nothing where there is no Postgres.
audit_db_start() {
    AUDIT_DIR="$OUT/pg"
    pg=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
    pg=${pg:-$(dirname "$(command -v postgres || echo /none/postgres)")}
    [ -x "$pg/initdb" ] || return 0
    rm -rf "$AUDIT_DIR" && mkdir -p "$AUDIT_DIR"
    as=()
    if [ "$(id -u)" = 0 ]; then
        # Postgres refuses to run as root.
        account=postgres
        id "$account" >/dev/null 2>&1 || account=nobody
        chown "$account" "$AUDIT_DIR"
        as=(setpriv --reuid "$account" --regid "$(id -g "$account")" --clear-groups)
    fi
    "${as[@]}" "$pg/initdb" -D "$AUDIT_DIR/data" -A trust -U bench -E UTF8 --locale=C >"$AUDIT_DIR/initdb.log" 2>&1 || return 0
    taskset -c "${LOAD_CORE:-0}" "${as[@]}" "$pg/pg_ctl" -D "$AUDIT_DIR/data" -w -l "$AUDIT_DIR/server.log" \
        -o "-c listen_addresses='' -c unix_socket_directories=$AUDIT_DIR -c fsync=on" start >/dev/null || return 0
    "$pg/createdb" -h "$AUDIT_DIR" -U bench toolgate || return 0
    export AUDIT_DSN="host=$AUDIT_DIR user=bench dbname=postgres"
    export AUDIT_URL="postgres://bench@localhost/toolgate?host=$AUDIT_DIR"
}
audit_db_stop() {
    [ -n "${AUDIT_DSN:-}" ] && "${as[@]}" "$pg/pg_ctl" -D "$AUDIT_DIR/data" -m fast stop >/dev/null 2>&1 || true
}
