"""External effects. Belongs here: the ledger, the channels, the delivery itself. Not here: what is in the file."""
