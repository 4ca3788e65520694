-- A telephone number that an operator has set is no factor until its person has entered a code that was sent to it.
ALTER TABLE accounts ADD COLUMN phone_pending boolean NOT NULL DEFAULT false;
