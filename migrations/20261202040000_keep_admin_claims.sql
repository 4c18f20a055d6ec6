-- What a sign-in's provider says that entries of `admins` ask for, and when it was last
-- asked (store/oauth_sign_ins.rs). The entries themselves are read from the configuration
-- in force, so that a role ends with its line there, or with the claim.

ALTER TABLE oauth_sign_ins
    ADD COLUMN admin_claims text        NOT NULL DEFAULT '[]',
    ADD COLUMN checked_at   timestamptz NOT NULL DEFAULT now();

-- A person's sign-ins are brought up to date, or ended, together.
CREATE INDEX oauth_sign_ins_subject_idx ON oauth_sign_ins (subject);
