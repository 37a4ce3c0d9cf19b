"""The tables. Belongs here: one module an asset, named as it, with its contract and SQL. Not here: how tables are stored."""
