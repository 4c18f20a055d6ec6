#!/bin/bash
# agentgateway: bearer check against the JWKS file, a CEL rule per tool, a local
# rate limit that never bites, its access log in a file. AGENTGATEWAY_BIN names
# the binary; AGW_STATEFUL=stateless turns its sessions off.
here=$(cd "$(dirname "$0")" && pwd)
AGENTGATEWAY_BIN="${AGENTGATEWAY_BIN:-$here/../target/peers/agentgateway}"
case "$1" in
about)
    if [ -x "$AGENTGATEWAY_BIN" ]; then ok=available=yes; else ok="available=no why=AGENTGATEWAY_BIN not found"; fi
    v=$("$AGENTGATEWAY_BIN" --version 2>/dev/null | sed -n 's/.*"git_revision": "\(.\{9\}\).*/git \1/p')
    printf '%s\n' "label=agentgateway" "version=$v" path=/mcp modes=session,stateless auth=yes "does=JWT, CEL rule per tool, local rate limit, access log" "$ok" ;;
start)
    cat > "$SCRATCH/config.yaml" <<Y
config:
  adminAddr: 127.0.0.1:$((PORT + 1))
  statsAddr: 127.0.0.1:$((PORT + 2))
  readinessAddr: 127.0.0.1:$((PORT + 3))
binds:
- port: $PORT
  listeners:
  - routes:
    - policies:
        jwtAuth:
          mode: strict
          issuer: http://127.0.0.1/bench
          audiences: [bench]
          jwks:
            file: $KEYS/$ALG.jwks.json
        localRateLimit:
        - maxTokens: 100000000
          tokensPerFill: 100000000
          fillInterval: 1s
        mcpAuthorization:
          rules:
          - 'jwt.tenant.startsWith("t") && mcp.tool.name in ["echo", "big", "sleep"]'
      backends:
      - mcp:
          statefulMode: ${AGW_STATEFUL:-stateful}
          targets:
          - name: bench
            mcp:
              host: http://127.0.0.1:$UPSTREAM_PORT/mcp
Y
    exec "$AGENTGATEWAY_BIN" -f "$SCRATCH/config.yaml" ;;
esac
