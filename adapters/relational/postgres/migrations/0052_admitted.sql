-- Every second the service looks for people whose password a command has admitted.
CREATE INDEX accounts_admitted ON accounts (admitted_until) WHERE admitted_until IS NOT NULL;
