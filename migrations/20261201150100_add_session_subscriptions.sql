-- The resources that a legacy session has subscribed to: its GET stream may be on
-- another replica than the request that subscribed (store/sessions.rs). Releases
-- before do not name the column.

ALTER TABLE session_states ADD COLUMN subscriptions text[] NOT NULL DEFAULT '{}';
