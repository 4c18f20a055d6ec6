#!/bin/bash
# FastMCP as a proxy with its own JWT check. FASTMCP_PY is a Python with fastmcp.
here=$(cd "$(dirname "$0")" && pwd)
FASTMCP_PY="${FASTMCP_PY:-$here/../target/peers/fastmcp/bin/python}"
case "$1" in
about)
    v=$("$FASTMCP_PY" -c 'from importlib.metadata import version as v; print("fastmcp", v("fastmcp"), "mcp", v("mcp"))' 2>/dev/null)
    if [ -n "$v" ]; then ok=available=yes; else ok="available=no why=no fastmcp in FASTMCP_PY"; fi
    printf '%s\n' "label=FastMCP proxy" "version=$v" path=/mcp modes=session,stateless slow=yes auth=yes "does=JWT, a new upstream session per call" "$ok" ;;
start) exec "$FASTMCP_PY" "$here/fastmcp_proxy.py" ;;
esac
