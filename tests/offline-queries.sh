#!/usr/bin/env bash
# The data by which queries are checked when no database is at hand: `write` makes
# it anew in .sqlx, `check` compares it with what a fresh database says.
set -euo pipefail
cd "$(dirname "$0")/.."
verb=${1:?write or check}

if [ "$verb" = inner ]; then
    shopt -s nullglob
    for migration in migrations/*.sql; do
        psql "$DATABASE_URL" --no-psqlrc --quiet --set ON_ERROR_STOP=1 --file "$migration"
    done
    # The macros run when the library is compiled, so it has to be.
    touch src/lib.rs
    SQLX_OFFLINE=false SQLX_OFFLINE_DIR=$2 cargo check --locked --quiet --lib
    exit
fi

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
tests/with-postgres.sh "$0" inner "$fresh"
mkdir -p .sqlx
case $verb in
write)
    rm -f .sqlx/query-*.json
    find "$fresh" -name 'query-*.json' -exec cp {} .sqlx/ \;
    ;;
check)
    diff -r "$fresh" .sqlx || { echo "the offline query data is stale: make sqlx writes it anew" >&2; exit 1; }
    ;;
*) echo "write or check, not $verb" >&2; exit 2 ;;
esac
rmdir .sqlx 2>/dev/null || true
echo "$(find "$fresh" -name 'query-*.json' | wc -l) queries"
