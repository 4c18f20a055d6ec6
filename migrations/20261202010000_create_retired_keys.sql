-- Keys that left the keys file and had sealed what is not sealed anew: arguments in the
-- audit, since its digests cover them as they are stored. Each is sealed itself, under
-- the key that took its place. Written by `toolgate keys rewrap`, read where sealed
-- arguments are opened (store/sealed.rs).
CREATE TABLE retired_keys (
    key_id     bytea       NOT NULL,
    sealed     text        NOT NULL,
    retired_at timestamptz NOT NULL,
    CONSTRAINT retired_keys_pkey PRIMARY KEY (key_id)
);
