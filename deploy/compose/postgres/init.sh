#!/bin/sh
# The service's login: owns its database and may make the audit's roles, and no more.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
    --set password="$(cat /run/secrets/postgres/toolgate)" <<'SQL'
CREATE ROLE toolgate LOGIN CREATEROLE PASSWORD :'password';
CREATE DATABASE toolgate OWNER toolgate ENCODING 'UTF8' TEMPLATE template0;
REVOKE CONNECT ON DATABASE toolgate FROM PUBLIC;
SQL
