#!/usr/bin/env bash
# What the conformance suite starts as the client under test: `toolgate doctor --sign-in`
# (TOOLGATE is the program), with the client that the scenario gives, if it does.
given() { printf %s "${MCP_CONFORMANCE_CONTEXT:-}" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
about=()
if [ -n "$(given client_id)" ]; then
    about+=(--client-id "$(given client_id)")
    if [ -n "$(given client_secret)" ]; then
        secret=$(mktemp)
        trap 'rm -f "$secret"' EXIT
        given client_secret >"$secret"
        about+=(--client-secret-file "$secret")
    fi
fi
"$TOOLGATE" doctor --sign-in --patience 5 ${about[@]+"${about[@]}"} "$@"
