"""Errors a person reads. Belongs here: the one base class. Not here: errors of a single room, which live beside their cause."""


class OrdersError(Exception):
    """What happened, to which asset and interval, and the command that mends it.

    Args:
        message: One sentence naming the asset and the interval.
        remedy: The command or change that mends it.

    Attributes:
        retryable: Whether the same call may succeed a little later with nothing changed by a person.
    """

    retryable = False

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class SettingsError(OrdersError):
    """A setting that cannot be used; the message names the variable and a value that can."""
