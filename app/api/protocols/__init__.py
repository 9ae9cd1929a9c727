"""Other protocols over the same runs: each translates the events of a run, and adds no logic of its own."""
