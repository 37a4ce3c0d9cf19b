"""After a failure. Belongs here: states, closure, repair, reconcile, interventions, audit. Not here: how data is written."""
