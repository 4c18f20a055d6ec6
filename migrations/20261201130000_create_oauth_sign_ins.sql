-- People who are signed in to their own page or have a question left to answer
-- before an app gets its code (store/oauth_sign_ins.rs). A row is made only once
-- somebody has proved who they are; until then everything is in sealed cookies.
-- `refresh_token` is sealed and goes when the grant that it belongs to is made.
-- Rows are found by id, and deleted in the order of their end.

CREATE TABLE oauth_sign_ins (
    sign_in_id       uuid        NOT NULL,
    subject          text        NOT NULL,
    provider         text        NOT NULL,
    issuer           text        NOT NULL,
    provider_subject text        NOT NULL,
    name             text,
    email            text,
    memberships      text        NOT NULL,
    refresh_token    text,
    created_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    CONSTRAINT oauth_sign_ins_pkey PRIMARY KEY (sign_in_id)
);
CREATE INDEX oauth_sign_ins_expires_at_idx ON oauth_sign_ins (expires_at);

-- Answers of identity providers that have been used: digests of `state`, kept until
-- the question itself would be too old. Makes an answer count once over all replicas.

CREATE TABLE oauth_spent_states (
    state_digest bytea       NOT NULL,
    expires_at   timestamptz NOT NULL,
    CONSTRAINT oauth_spent_states_pkey PRIMARY KEY (state_digest)
);
CREATE INDEX oauth_spent_states_expires_at_idx ON oauth_spent_states (expires_at);
