-- The built-in authorization server's state (store/oauth_*.rs): in Postgres, so that any
-- replica serves any step of a sign-in. Nothing here is a secret in clear: signing keys
-- and providers' tokens are sealed, client secrets and codes are digests, and refresh
-- tokens are not stored at all (they are a keyed function of family and generation).

-- Keys that access tokens are signed with. `number` makes the next key the same one for
-- all replicas: of several that make it at once, one insert wins.
CREATE TABLE oauth_signing_keys (
    kid             text        NOT NULL,
    number          bigint      NOT NULL,
    sealed          text        NOT NULL,
    created_at      timestamptz NOT NULL,
    signs_from      timestamptz NOT NULL,
    published_until timestamptz NOT NULL,
    CONSTRAINT oauth_signing_keys_pkey PRIMARY KEY (kid),
    CONSTRAINT oauth_signing_keys_number_key UNIQUE (number)
);

-- Clients that registered themselves (RFC 7591). `used_at` is the last sign-in.
CREATE TABLE oauth_clients (
    client_id     text        NOT NULL,
    name          text        NOT NULL,
    redirect_uris text[]      NOT NULL,
    auth_method   text        NOT NULL,
    secret_digest bytea,
    jwks          text,
    jwks_uri      text,
    registered_at timestamptz NOT NULL,
    used_at       timestamptz,
    CONSTRAINT oauth_clients_pkey PRIMARY KEY (client_id)
);

-- Cleaning looks for what was not used for long.
CREATE INDEX oauth_clients_idle_idx ON oauth_clients (COALESCE(used_at, registered_at));

-- A person's consent to a client: for one redirect, in one tenant.
CREATE TABLE oauth_grants (
    grant_id         uuid        NOT NULL,
    tenant           text        NOT NULL,
    subject          text        NOT NULL,
    client_id        text        NOT NULL,
    client_name      text        NOT NULL,
    redirect_uri     text        NOT NULL,
    scopes           text[]      NOT NULL,
    remembered       boolean     NOT NULL,
    provider         text        NOT NULL,
    provider_issuer  text        NOT NULL,
    provider_subject text        NOT NULL,
    provider_token   text,
    person_name      text,
    person_email     text,
    created_at       timestamptz NOT NULL,
    used_at          timestamptz NOT NULL,
    checked_at       timestamptz NOT NULL,
    CONSTRAINT oauth_grants_pkey PRIMARY KEY (grant_id),
    CONSTRAINT oauth_grants_consent_key UNIQUE (subject, client_id, tenant, redirect_uri)
);

CREATE INDEX oauth_grants_client_idx ON oauth_grants (client_id);

-- A code and the refresh tokens that come of it. `generation` is the newest refresh
-- token's; `uses` has the times (milliseconds) at which the generations just before it
-- were first used, the oldest first.
CREATE TABLE oauth_families (
    family_id       uuid        NOT NULL,
    grant_id        uuid        NOT NULL,
    tenant          text        NOT NULL,
    client_id       text        NOT NULL,
    code_digest     bytea       NOT NULL,
    code_expires_at timestamptz NOT NULL,
    code_used_at    timestamptz,
    code_challenge  text        NOT NULL,
    redirect_uri    text        NOT NULL,
    resource        text        NOT NULL,
    scopes          text[]      NOT NULL,
    roles           text[]      NOT NULL,
    generation      bigint      NOT NULL,
    uses            bigint[]    NOT NULL,
    used_at         timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    ends_at         timestamptz NOT NULL,
    CONSTRAINT oauth_families_pkey PRIMARY KEY (family_id),
    CONSTRAINT oauth_families_code_digest_key UNIQUE (code_digest),
    CONSTRAINT oauth_families_grant_id_fkey FOREIGN KEY (grant_id)
        REFERENCES oauth_grants (grant_id) ON DELETE CASCADE
);

CREATE INDEX oauth_families_grant_idx ON oauth_families (grant_id);
CREATE INDEX oauth_families_client_idx ON oauth_families (client_id);
CREATE INDEX oauth_families_expires_idx ON oauth_families (expires_at);

-- Grants, families and single tokens that are good no more although their access tokens
-- have not expired. Replicas keep the whole of it in memory: it is as short as access
-- tokens live.
CREATE TABLE oauth_revocations (
    revoked_id uuid        NOT NULL,
    tenant     text        NOT NULL,
    revoked_at timestamptz NOT NULL,
    until      timestamptz NOT NULL,
    CONSTRAINT oauth_revocations_pkey PRIMARY KEY (revoked_id)
);

CREATE INDEX oauth_revocations_revoked_at_idx ON oauth_revocations (revoked_at);

-- Assertions that were used (RFC 7523 §3): each `jti` once, over all replicas.
CREATE TABLE oauth_assertions (
    digest bytea       NOT NULL,
    until  timestamptz NOT NULL,
    CONSTRAINT oauth_assertions_pkey PRIMARY KEY (digest)
);

CREATE INDEX oauth_assertions_until_idx ON oauth_assertions (until);
