"""What a document says of itself, or a file beside it: dates, front matter, sidecars."""
