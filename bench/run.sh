#!/bin/bash
# All peers side by side. Where it may, it runs in a network namespace with
# nothing but a loopback interface, so that no peer listens on or reaches
# anything else. Builds the harness and Toolgate first; BIN= and GATEWAY_BIN=
# skip that. NICE=-10 (as root) keeps other work on the machine from disturbing
# it, and slows that work down.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export OUT="${OUT:-${TMPDIR:-/tmp}/mcpbench-out}"
if [ -z "${BIN:-}" ]; then
    (cd "$here" && cargo build --release --locked --quiet --target-dir "$here/target")
    export BIN="$here/target/release"
fi
if [ -z "${GATEWAY_BIN:-}" ]; then
    (cd "$here/.." && cargo build --release --locked --quiet --bin toolgate --target-dir "$here/../target")
    export GATEWAY_BIN="$here/../target/release/toolgate"
fi
mkdir -p "$OUT"
run='
set -e
if [ "${AUDIT:-1}" = 1 ] && [ -z "${AUDIT_DSN:-}" ]; then . "$0/audit_db.sh" && audit_db_start; fi
trap "if type audit_db_stop >/dev/null 2>&1; then audit_db_stop; fi" EXIT
python3 "$0/run.py"
'
# Where the kernel groups processes by session, it is the group's niceness that counts.
start="nice -n ${NICE:-0}"
if [ "${NICE:-0}" != 0 ] && [ -w /proc/self/autogroup ]; then
    start="$start setsid --wait"
    run="echo $NICE >/proc/self/autogroup 2>/dev/null || true; $run"
fi
if [ -z "${BENCH_NO_NETNS:-}" ] && unshare -n true 2>/dev/null; then
    exec $start unshare -n bash -c "ip link set lo up 2>/dev/null || ifconfig lo up; $run" "$here"
fi
exec $start bash -c "$run" "$here"
