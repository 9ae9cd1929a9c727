"""Routes a question: for the documents, small talk, or out of scope."""
