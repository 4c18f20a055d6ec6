-- Which replicas live, and what they have to tell each other: a live exchange (an
-- elicitation's reply, a cancellation) reaches the replica that holds it as a row of
-- `messages`, woken by NOTIFY of the row's id alone and polled for behind that
-- (store/replicas.rs, store/messages.rs). Rows are deleted when they are taken, so both
-- tables stay small.

CREATE TABLE replicas (
    replica_id   uuid        NOT NULL,
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    address      text,
    version      text        NOT NULL,
    CONSTRAINT replicas_pkey PRIMARY KEY (replica_id)
);

CREATE TABLE messages (
    message_id uuid        NOT NULL,
    to_replica uuid        NOT NULL,
    exchange   text        NOT NULL,
    body       bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT messages_pkey PRIMARY KEY (message_id)
);

CREATE INDEX messages_to_replica_idx ON messages (to_replica, created_at);
