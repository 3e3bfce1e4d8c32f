-- Processes that share a store: until when each is taken for alive, whether it may lead, and whose lock it holds.
ALTER TABLE life ADD COLUMN kept_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE life ADD COLUMN may_lead INTEGER NOT NULL DEFAULT 1 CHECK (may_lead IN (0, 1));
ALTER TABLE life ADD COLUMN home TEXT NOT NULL DEFAULT '';
