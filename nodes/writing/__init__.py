"""Writing answers: the stream to the reader, quotes, and the claims that an answer makes."""
