#!/bin/bash
# Toolgate with everything on: verified tokens kept, visibility, limits that are
# spent but never bite, arguments checked, answers scanned, the audit strict in a
# Postgres that syncs. GATEWAY_BIN names the binary (a release build).
here=$(cd "$(dirname "$0")" && pwd)
GATEWAY_BIN="${GATEWAY_BIN:-$here/../../target/release/toolgate}"
case "$1" in
about)
    if [ ! -x "$GATEWAY_BIN" ]; then ok="available=no why=GATEWAY_BIN not found"
    elif [ -z "${AUDIT_URL:-}" ]; then ok="available=no why=no Postgres for the audit (AUDIT_URL)"
    else ok=available=yes; fi
    v=$("$GATEWAY_BIN" --version 2>/dev/null | head -1)
    printf '%s\n' "label=Toolgate, strict audit" "version=$v" path=/mcp modes=session,stateless auth=yes "does=JWT (cached), visibility, limits, arguments checked, answers scanned, two audit rows per call, durable before the answer" "$ok" ;;
prepare)
    # What is done once per deployment is not part of a start.
    limits="{ rate: 1000000/s, burst: 1000000, concurrent: 100000 }"
    head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$SCRATCH/keys"
    {
        cat <<Y
server:
  listen: 127.0.0.1:$PORT
  admin_listen: 127.0.0.1:$((PORT + 1))
  public_url: http://127.0.0.1:$PORT
database:
  url: "$AUDIT_URL"
keys_file: $SCRATCH/keys
identity_providers:
  bench:
    issuer: http://127.0.0.1/bench
    audiences: [bench]
    tenants: [t0, t1, t2, t3, t4, t5, t6, t7]
    algorithms: [RS256, ES256, EdDSA]
    jwks_file: $KEYS/jwks.json
upstreams:
  bench:
    mcp: { url: "http://127.0.0.1:$UPSTREAM_PORT/mcp", allow_private: true }
    concurrent: 1024
telemetry: { log_filter: warn }
tenants:
Y
        for tenant in t0 t1 t2 t3 t4 t5 t6 t7; do
            cat <<Y
  $tenant:
    tools: { allow: ["*"] }
    limits:
      per_client: $limits
      per_user: $limits
      browse: { rate: 1000000/s, burst: 1000000 }
    audit: { durability: ${DURABILITY:-strict}, arguments: redacted }
Y
        done
    } >"$SCRATCH/toolgate.yaml"
    "$GATEWAY_BIN" migrate --config "$SCRATCH/toolgate.yaml" ;;
start) exec "$GATEWAY_BIN" serve --config "$SCRATCH/toolgate.yaml" ;;
esac
