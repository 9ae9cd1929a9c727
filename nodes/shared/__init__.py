"""What several steps use: searching, prompting, quoting, wording."""
