"""The same pipeline in other tools, written as their users write it. Each runs in an environment of its own."""
