#!/usr/bin/env bash
# What the conformance suite starts as the client under test: `toolgate doctor`
# (TOOLGATE is the program, NODE runs scripts), with the client that the scenario gives, if it does. What it
# says goes to the file SAID as well.
given() { printf %s "${MCP_CONFORMANCE_CONTEXT:-}" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
kept=$(mktemp -d)
trap 'rm -rf "$kept"' EXIT
about=()
[ -z "$(given client_id)" ] || about+=(--client-id "$(given client_id)")
if [ -n "$(given client_secret)" ]; then
    given client_secret >"$kept/secret"
    about+=(--client-secret-file "$kept/secret")
fi
if [ -n "$(given private_key_pem)" ]; then
    printf '%b' "$(given private_key_pem)" >"$kept/key"
    about+=(--client-key-file "$kept/key")
fi
case ${MCP_CONFORMANCE_SCENARIO:-} in
*client-credentials*) about+=(--machine) ;;
*wif*) given valid_jwt >"$kept/assertion" && about+=(--assertion-file "$kept/assertion") ;;
*enterprise*)
    "$NODE" "$(dirname "$0")/id_jag.mjs" "${!#}" >"$kept/assertion"
    about+=(--assertion-file "$kept/assertion")
    ;;
*) about+=(--sign-in --patience 5) ;;
esac
"$TOOLGATE" doctor ${about[@]+"${about[@]}"} "$@" | tee "${SAID:-/dev/null}"
exit "${PIPESTATUS[0]}"
