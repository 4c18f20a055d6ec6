#!/bin/sh
# Makes what is secret, once, into one folder for each service that reads it. Nothing of
# it is in the repository, in an image or in an environment.
#
#   SECRETS=/secrets PUBLISHED=http://127.0.0.1 init.sh
set -eu
umask 077
secrets=${SECRETS:-/secrets}

random() { head -c "$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }

# keep FOLDER NAME TEXT: writes a file that is not there yet.
keep() {
    mkdir -p "$secrets/$1"
    [ -s "$secrets/$1/$2" ] || printf '%s' "$3" >"$secrets/$1/$2"
}
kept() { cat "$secrets/$1/$2"; }

keep toolgate keys "$(random 32)"
keep postgres superuser "$(random 24)"
keep postgres toolgate "$(random 24)"
keep toolgate database "postgres://toolgate:$(kept postgres toolgate)@postgres:5432/toolgate"
keep redis password "$(random 24)"
keep redis redis.conf "requirepass $(kept redis password)
"
keep toolgate redis "$(kept redis password)"
keep idp client-secret "$(random 24)"
keep toolgate idp "$(kept idp client-secret)"
keep idp cookies "$(random 32)"
keep idp password "$(random 6)"
keep grafana password "$(random 9)"

# Each folder belongs to the account that its service runs as.
owner() { [ "$(id -u)" != 0 ] || chown -R "$2:$2" "$secrets/$1"; }
owner toolgate 65532
owner postgres 70
owner redis 999
owner idp 1000
owner grafana 472

cat <<TEXT
Everything is there. Sign in as alice, admin or bob with the password $(kept idp password)

  MCP endpoint   http://127.0.0.1:8080/mcp
  Codex          codex mcp add toolgate --url http://127.0.0.1:8080/mcp && codex mcp login toolgate
  Claude Code    claude mcp add --transport http toolgate http://127.0.0.1:8080/mcp
  Account page   http://127.0.0.1:8080/account
  Grafana        http://127.0.0.1:3000   admin, $(kept grafana password)
  Prometheus     http://127.0.0.1:9091
TEXT
