#!/bin/bash
# Envoy as a pass-through MCP gateway: its JWT, MCP, RBAC (tool names), and local
# rate limit filters, one worker, access log in a file, verified tokens kept.
# ENVOY_BIN names the binary (install-peers.sh puts one there).
here=$(cd "$(dirname "$0")" && pwd)
ENVOY_BIN="${ENVOY_BIN:-$(ls "$here"/../target/peers/envoy/lib/python3*/site-packages/envoy/_bin/envoy 2>/dev/null | head -1)}"
case "$1" in
about)
    if [ -x "$ENVOY_BIN" ]; then ok=available=yes; else ok="available=no why=bench/install-peers.sh installs it"; fi
    v=$("$ENVOY_BIN" --version 2>/dev/null | grep -oE '[0-9]+\.[0-9]+\.[0-9]+/[A-Za-z]+' | head -1)
    printf '%s\n' "label=Envoy, JWT + MCP + RBAC filters" "version=envoy $v" path=/mcp modes=session,stateless auth=yes "does=JWT (cached), MCP parse, RBAC on tool name, local rate limit, access log" "$ok" ;;
start)
    cat > "$SCRATCH/envoy.yaml" <<Y
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: $((PORT + 1))}}
static_resources:
  listeners:
  - name: mcp
    address: {socket_address: {address: 127.0.0.1, port_value: $PORT}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: mcp
          access_log:
          - name: envoy.access_loggers.file
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog
              path: $SCRATCH/access.log
              log_format:
                text_format_source:
                  inline_string: "%START_TIME% %DYNAMIC_METADATA(envoy.filters.http.mcp:method)% %DYNAMIC_METADATA(envoy.filters.http.mcp:params:name)% %DYNAMIC_METADATA(envoy.filters.http.jwt_authn:claims:sub)% %RESPONSE_CODE% %DURATION% %BYTES_SENT%\n"
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {path: /mcp}
                route: {cluster: upstream, timeout: 0s}
          http_filters:
          - name: envoy.filters.http.jwt_authn
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication
              providers:
                bench:
                  issuer: http://127.0.0.1/bench
                  audiences: [bench]
                  local_jwks: {filename: $KEYS/$ALG.jwks.json}
                  payload_in_metadata: claims
                  jwt_cache_config: {jwt_cache_size: 1000}
              rules:
              - match: {prefix: /}
                requires: {provider_name: bench}
          - name: envoy.filters.http.mcp
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.mcp.v3.Mcp
              traffic_mode: PASS_THROUGH
          - name: envoy.filters.http.rbac
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC
              rules:
                action: ALLOW
                policies:
                  tools:
                    principals:
                    - metadata:
                        filter: envoy.filters.http.jwt_authn
                        path: [{key: claims}, {key: tenant}]
                        value: {string_match: {prefix: t}}
                    permissions:
                    - or_rules:
                        rules:
                        - not_rule: {metadata: {filter: envoy.filters.http.mcp, path: [{key: method}], value: {string_match: {exact: tools/call}}}}
                        - metadata: {filter: envoy.filters.http.mcp, path: [{key: params}, {key: name}], value: {string_match: {exact: echo}}}
                        - metadata: {filter: envoy.filters.http.mcp, path: [{key: params}, {key: name}], value: {string_match: {exact: big}}}
                        - metadata: {filter: envoy.filters.http.mcp, path: [{key: params}, {key: name}], value: {string_match: {exact: sleep}}}
          - name: envoy.filters.http.local_ratelimit
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
              stat_prefix: rl
              token_bucket: {max_tokens: 1000000000, tokens_per_fill: 1000000000, fill_interval: 1s}
              filter_enabled: {default_value: {numerator: 100}}
              filter_enforced: {default_value: {numerator: 100}}
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: upstream
    type: STATIC
    connect_timeout: 2s
    load_assignment:
      cluster_name: upstream
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: $UPSTREAM_PORT}}}
Y
    exec "$ENVOY_BIN" -c "$SCRATCH/envoy.yaml" --concurrency 1 --log-level warning --disable-hot-restart ;;
esac
