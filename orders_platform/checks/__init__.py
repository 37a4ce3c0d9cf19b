"""Evidence that the data is right. Belongs here: asset checks, one module a family. Not here: the audit inside the swap."""
