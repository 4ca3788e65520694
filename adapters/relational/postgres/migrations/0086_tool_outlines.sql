-- What decisions need to know of the tools of a list, so that they do not read all of it: a line for each. NULL in rows from before this
-- column; it is then computed from the content.
ALTER TABLE tool_lists ADD COLUMN outline text;

-- What an instance keeps of servers has their tools (0074_server_changes).
CREATE TRIGGER tool_lists_are_noted AFTER INSERT OR UPDATE OR DELETE ON tool_lists FOR EACH ROW EXECUTE FUNCTION note_server_change();

-- A program that does not know the column leaves nothing of another content in it.
CREATE FUNCTION drop_tool_outline() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.outline := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER tool_outlines_are_dropped BEFORE UPDATE ON tool_lists FOR EACH ROW
    WHEN (NEW.content <> OLD.content AND NEW.outline IS NOT DISTINCT FROM OLD.outline) EXECUTE FUNCTION drop_tool_outline();
