-- Until when a person may sign in with a password although people with the domain of the e-mail address sign in at their company only.
ALTER TABLE accounts ADD COLUMN admitted_until integer;
