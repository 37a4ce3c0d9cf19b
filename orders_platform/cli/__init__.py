"""The `orders` command. Belongs here: one module a command group: options, tables, JSON. Not here: what the commands do."""
