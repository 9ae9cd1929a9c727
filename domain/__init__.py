"""The words that all share: state, scope, outcome, events, errors, ports. Imports nothing of the other packages."""
