-- A mark TRUSTED that was set below FULL_TRUST counts only after the next code on the device. Marks from before count.
ALTER TABLE devices ADD COLUMN mark_unproven boolean NOT NULL DEFAULT false;
