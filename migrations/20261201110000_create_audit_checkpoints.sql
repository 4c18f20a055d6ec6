-- What makes the chains of audit_events evident to somebody who holds only a public key.
--
-- * audit_checkpoints: once a second while its chains move, and once at its end, a writer
--   signs where its chains stand: a compact JWS that names number, previous checkpoint,
--   heads and counts. The same token goes to the log. Written by the lanes
--   (store/audit_checkpoints.rs), read a day at a time by verification. The day comes
--   first in the key since that is how it is read, and how it is removed.
-- * audit_closings: what stood in a day that was dropped: for each chain the places and the
--   last link, for each writer the checkpoints. Signed, chained, and kept for ever.
-- * audit_erasures: one row an erasure, so that running writers notice within a second
--   that callers which they remember are gone.

CREATE TABLE audit_checkpoints (
    day       date        NOT NULL,
    writer_id integer     NOT NULL,
    number    bigint      NOT NULL,
    at        timestamptz NOT NULL,
    token     text        NOT NULL,
    CONSTRAINT audit_checkpoints_pkey PRIMARY KEY (day, writer_id, number)
);

CREATE TABLE audit_closings (
    number bigint NOT NULL,
    day    date   NOT NULL,
    token  text   NOT NULL,
    CONSTRAINT audit_closings_pkey PRIMARY KEY (number)
);

CREATE TABLE audit_erasures (
    erasure_id uuid        NOT NULL,
    at         timestamptz NOT NULL,
    CONSTRAINT audit_erasures_pkey PRIMARY KEY (erasure_id)
);

-- Which erasure took text and salt away: the id of its own record. A row without salt
-- and without a recorded erasure is a finding.
ALTER TABLE audit_callers ADD COLUMN erased_by uuid;
ALTER TABLE audit_bodies ADD COLUMN erased_by uuid;

-- How many erasures there have been. With its owner's rights: whoever writes the audit
-- may not read it, and has to notice erasures all the same.
CREATE FUNCTION audit_erasure_count() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT count(*) FROM audit_erasures
$$;

-- Nobody's temporary tables stand in for ours.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION audit_erasure_count() SET search_path = %I, pg_temp', current_schema());
END
$$;
