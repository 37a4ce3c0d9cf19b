"""orders settings. Belongs here: listing every setting. Not here: reading them (orders_platform/settings.py)."""

from dataclasses import fields

import click

from orders_platform.cli.output import json_option, print_json, print_table
from orders_platform.settings import settings as current


@click.command()
@json_option
def settings(as_json: bool) -> None:
    """Every environment variable, its value now and its meaning; what may hold a secret is not shown."""
    values = current()
    rows = [
        {
            "name": item.metadata["name"],
            "value": str(getattr(values, item.name) or "").strip() if item.repr else "(not shown)",
            "meaning": item.metadata["meaning"],
        }
        for item in fields(values)
    ]
    if as_json:
        print_json(rows)
    else:
        print_table("", ("name", "value", "meaning"), [tuple(row.values()) for row in rows])
