"""How data is written and read. Belongs here: contracts, sessions, the swap, publications. Not here: what the tables mean."""
