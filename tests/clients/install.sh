#!/usr/bin/env bash
# Installs what the tests run beside the program: Postgres, a browser, real clients
# and real upstreams, each at one version, into target/clients (CLIENTS_DIR). Quick
# where all is there. Debian packages are installed only as root and only where
# their programs are missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
into=${CLIENTS_DIR:-$here/../../target/clients}
mkdir -p "$into"
into=$(cd "$into" && pwd)

exec 9>"$into/.lock"
flock 9

missing=()
has_postgres() { command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; }
has_postgres || missing+=(postgresql)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
has_browser() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; }
has_browser || missing+=(chromium fonts-dejavu-core)
command -v redis-server >/dev/null || missing+=(redis-server)
[ -x /usr/sbin/pgbouncer ] || missing+=(pgbouncer)
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3 python3-venv)
if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "please install: ${missing[*]}" >&2
        exit 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # The tests start a Postgres of their own; none has to be set up.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
fi

# Of Prometheus only the tool that judges alerts is wanted, and no service.
if ! command -v promtool >/dev/null && [ ! -x "$into/promtool" ]; then
    command -v apt-get >/dev/null || { echo "please install: promtool" >&2; exit 1; }
    unpacked=$(mktemp -d)
    (cd "$unpacked" && { apt-get download -qq prometheus 2>/dev/null || { apt-get update -qq && apt-get download -qq prometheus; }; }) >&2
    dpkg-deb --extract "$unpacked"/prometheus_*.deb "$unpacked"
    install "$unpacked/usr/bin/promtool" "$into/promtool"
    rm -rf "$unpacked"
fi

wanted=$(cat "$here/npm/package-lock.json" "$here/requirements.txt" "$here/../chart/requirements.txt" | sha256sum | cut -d' ' -f1)
[ "$(cat "$into/.installed" 2>/dev/null)" != "$wanted" ] || exit 0

rm -rf "$into/npm" "$into/py" "$into/.installed"
mkdir -p "$into/npm"
cp "$here"/npm/package*.json "$into/npm/"
# Their Node comes as a package too: the Inspector needs a newer one than Debian has.
# `npm install` keeps to the lock; `npm ci` refuses it for want of another system's optional package.
(cd "$into/npm" && npm install --ignore-scripts --no-audit --no-fund --loglevel=error) >&2
python3 -m venv "$into/py"
"$into/py/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$here/requirements.txt" \
    --requirement "$here/../chart/requirements.txt" >&2
echo "$wanted" >"$into/.installed"
