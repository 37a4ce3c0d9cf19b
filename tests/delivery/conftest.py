"""Partners and databases of the delivery tests: each a real server on loopback."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from orders_platform.delivery.ledger import Ledger
from tests.delivery.partners import S3Server


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty ledger's URL, on each database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    url = sa.make_url(request.getfixturevalue("postgres"))
    name = f"ledger_{os.urandom(6).hex()}"
    with sa.create_engine(url, poolclass=sa.NullPool).begin() as con:
        con.execute(sa.schema.CreateSchema(name))
    return url.update_query_dict({"options": f"-csearch_path={name}"}).render_as_string(hide_password=False)


@pytest.fixture
def ledger(ledger_url: str) -> Ledger:
    return Ledger(ledger_url)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    made = S3Server()
    yield made
    made.close()
