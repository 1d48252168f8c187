"""What may be wrong with what is given to the package."""

from __future__ import annotations


class SpecError(ValueError):
    """A spec does not say what it should.

    Its text shows the line, marks the place, and ends with the remedy. Of an experiment that was built in Python it is
    the line of ``Experiment.toml``.
    """

    file: str
    """Name of the file, or of the experiment."""
    line: int
    """Line, from 1."""
    column: int
    """Column, from 1."""
    key: str
    """Where in the document: ``link[0].rate``; empty for the document itself."""
    message: str
    """What is wrong."""
    help: str | None
    """The remedy."""

    def __init__(
        self, text: str, *, file: str, line: int, column: int, key: str, message: str, help: str | None
    ) -> None:
        super().__init__(text)
        self.file, self.line, self.column = file, line, column
        self.key, self.message, self.help = key, message, help

    def __reduce__(self) -> tuple[object, ...]:
        keys = {name: getattr(self, name) for name in ("file", "line", "column", "key", "message", "help")}
        return _spec_error, (str(self), keys)


def _spec_error(text: str, keys: dict[str, object]) -> SpecError:
    return SpecError(text, **keys)  # type: ignore[arg-type]


class UnknownName(LookupError):
    """No experiment, cell, figure or template has this name; ``help`` has the nearest one."""

    help: str

    def __init__(self, text: str, help: str) -> None:
        super().__init__(text, help)
        self.help = help

    def __str__(self) -> str:
        return f"{self.args[0]}; {self.help}"


class VersionMismatch(RuntimeError):
    """A worker of a cluster has another version of the package, or none: its numbers may be others."""
