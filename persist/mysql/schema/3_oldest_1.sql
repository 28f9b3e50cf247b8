-- Version 3: a sweep reads in the index alone which windows are over. The rows lie in the order
-- of their ids, which are hashes: to look each up costs a page each.
ALTER TABLE {db}oncehttp_record
  DROP KEY IF EXISTS record_sweep,
  ADD KEY record_sweep (swept, generated, finished, id, keep_window);
