-- How long conversations and steps are kept, as people chose. NULL: as the settings say.
ALTER TABLE housekeeping ADD policy jsonb;
