"""Finds the passages to quote, and draws a conclusion from the best."""
