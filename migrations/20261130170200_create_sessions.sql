-- What changes of a legacy session: the id itself is a sealed token of the session's
-- immutable facts, so a session that nobody changed has no row at all
-- (store/sessions.rs). A tombstone makes a deleted session's token a 404 on every
-- replica until the token would have expired anyway.

CREATE TABLE session_tombstones (
    session_id uuid        NOT NULL,
    tenant     text        NOT NULL,
    until      timestamptz NOT NULL,
    CONSTRAINT session_tombstones_pkey PRIMARY KEY (session_id)
);

CREATE TABLE session_states (
    session_id uuid        NOT NULL,
    tenant     text        NOT NULL,
    log_level  text,
    updated_at timestamptz NOT NULL,
    CONSTRAINT session_states_pkey PRIMARY KEY (session_id)
);
