-- What closing calls without an end needs to know (audit/recovery.rs, store/audit_orphans.rs).
--
-- * A replica's calls may run for `call_limit_seconds`. One that ended in an orderly way
--   says so. Its row goes when its calls have been looked through, not before.
-- * `recovery_marks`: up to when all calls have been looked through for an end. One row.

ALTER TABLE replicas ADD COLUMN call_limit_seconds integer NOT NULL DEFAULT 3600;
ALTER TABLE replicas ADD COLUMN stopped_at timestamptz;

CREATE TABLE recovery_marks (
    only_one boolean     NOT NULL DEFAULT true,
    through  timestamptz NOT NULL,
    CONSTRAINT recovery_marks_pkey PRIMARY KEY (only_one),
    CONSTRAINT recovery_marks_only_one_check CHECK (only_one)
);

INSERT INTO recovery_marks (through) VALUES (now());
