"""The benchmark: this pipeline beside a bare DuckDB script, dbt, SQLMesh and stock Dagster, on the same landed files.

Belongs here: how each tool is installed, driven and measured. Not here: timed tests; a loaded machine must never fail a build.
"""
