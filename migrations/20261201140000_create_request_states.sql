-- The `requestState` of an upstream that is too long to travel with the client: it is
-- kept here, sealed, and the client holds its id alone (store/request_states.rs). Read
-- once per retry by tenant and id; bound to the caller's digest; gone after its time.

CREATE TABLE request_states (
    request_state_id uuid        NOT NULL,
    tenant           text        NOT NULL,
    owner            bytea       NOT NULL,
    body             bytea       NOT NULL,
    until            timestamptz NOT NULL,
    CONSTRAINT request_states_pkey PRIMARY KEY (request_state_id)
);

CREATE INDEX request_states_until_idx ON request_states (until);
