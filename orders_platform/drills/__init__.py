"""Failures replayed. Belongs here: one module a drill. Not here: anything production needs."""
