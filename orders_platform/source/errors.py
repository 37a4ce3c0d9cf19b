"""What went wrong at the source. Belongs here: permanent against transient, and URLs without their secrets.

Not here: retry policies, which follow from the type.
"""

import re

from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url

from orders_platform.errors import OrdersError

REMEDY = "Correct ORDERS_SOURCE_QUERY or ORDERS_SOURCE_URL; a sample source is made by `orders source init`."

# Drivers report these under the same exception classes as outages; asking again cannot mend them.
_PERMANENT = re.compile(
    r"no such (table|column|function)|syntax error|near \"|could not decode|not a database|malformed|incomplete input"
    r"|unable to open database file|readonly|more than one statement|one statement at a time"
    r"|authentication failed|access denied|does(n't| not) exist|unknown (column|database|table)",
    re.IGNORECASE,
)


class SourceError(OrdersError):
    """The source cannot answer this query, however often it is asked: retrying is of no use."""


class SourceUnavailable(OrdersError):
    """The source cannot be read now: down, locked, disconnected, or every connection in use. Retrying may help."""


def parse_url(text: str) -> URL:
    """The URL, parsed.

    Raises:
        SourceError: Not a database URL. The text is not shown: it may hold a password.
    """
    try:
        return make_url(text)
    except (exc.ArgumentError, ValueError):
        raise SourceError(
            "ORDERS_SOURCE_URL is not a database URL.",
            "Use one such as sqlite:////data/orders.db or postgresql+psycopg://host/db.",
        ) from None


def shown(url: URL) -> str:
    """The URL without password and without its parameters, which may hold one.

    >>> shown(make_url("postgresql://ann:secret@db/shop?sslpassword=secret"))
    'postgresql://ann:***@db/shop'
    """
    return url.set(query={}).render_as_string(hide_password=True)


def explain(error: Exception, what: str, url: URL) -> OrdersError:
    """The driver's error as ours: permanent or transient, in one sentence, without the password.

    Args:
        error: Raised by SQLAlchemy or by loading the driver.
        what: What was being read, such as "raw_orders 2026-01-05".
        url: The source.
    """
    if isinstance(error, ImportError | exc.NoSuchModuleError):
        return SourceError(f"{what}: no driver for {url.drivername} is installed ({error}).", "Install it with pip.")
    lines = str(getattr(error, "orig", None) or error).strip().splitlines() or [type(error).__name__]
    reason = lines[0].rstrip(".")
    for secret in (str(url.password or ""), *(value for value in url.query.values() if isinstance(value, str))):
        reason = reason.replace(secret, "***") if secret else reason
    message = f"{what}: {shown(url)} says: {reason}."
    lost = isinstance(error, exc.DBAPIError) and error.connection_invalidated
    outage = isinstance(error, exc.OperationalError | exc.InterfaceError | exc.TimeoutError)
    if lost or (outage and not _PERMANENT.search(reason)):
        return SourceUnavailable(message, "Run the interval again when the source answers.")
    return SourceError(message, REMEDY)
