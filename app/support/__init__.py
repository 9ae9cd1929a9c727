"""What the rooms of the service share: logs, metrics, spans, the terminal."""
