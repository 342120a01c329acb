"""What people and programs read: plain text, live views, JSON documents. Pure, except for what watches a run go by."""
