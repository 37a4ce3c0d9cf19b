"""Pages that are run: their console blocks in one shell, top to bottom; each output is compared with what the page shows."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, whatever else stands on its first line, its text."""

    language: str
    title: str
    text: str


@dataclass(frozen=True)
class Command:
    """What a reader types, and the lines that the page shows below it (of which it may leave out any)."""

    text: str
    shown: tuple[str, ...]


def blocks(page: Path) -> list[Block]:
    return [Block(m[1], m[2].strip(), m[3]) for m in FENCE.finditer(page.read_text())]


def commands(page: Path) -> list[Command]:
    """The commands of a page's console blocks, each with the output that follows it."""
    found = []
    for block in blocks(page):
        if block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                lines = part.splitlines()
                typed = next(n for n in range(1, len(lines) + 1) if is_whole("\n".join(lines[:n])))
                shown = tuple(line for line in lines[typed:] if line.strip() not in ("", "…"))
                found.append(Command("\n".join(lines[:typed]), shown))
    return found


def is_whole(text: str) -> bool:
    """Whether a shell would run it now instead of waiting for another line."""
    try:
        shlex.split(text)
    except ValueError:
        return False
    return not text.endswith("\\")


def environ(home: Path, **more: str) -> dict[str, str]:
    """The environment of a reader with a fresh workspace and an installed project (`make` does not install it again)."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ORDERS_") and name != "DAGSTER_HOME"}
    own = {"ORDERS_HOME": str(home), "DAGSTER_HOME": str(home / "dagster"), "COLUMNS": "160"}
    return {**kept, **own, "MAKEFLAGS": f"-o .venv/.installed BIN={Path(sys.executable).parent}", **more}


def run(found: list[Command], folder: Path, variables: dict[str, str], work: Path) -> list[tuple[str, int]]:
    """Run the commands one after another in one bash, in the folder; output and exit code of each."""
    work.mkdir()
    lines = []
    for number, command in enumerate(found):
        (work / f"{number}.sh").write_text(command.text + "\n")
        lines.append(f". {work}/{number}.sh >{work}/{number}.out 2>&1 </dev/null; echo $? >{work}/{number}.code")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(["bash", "-c", "\n".join(lines)], cwd=folder, env={**variables, "PATH": path}, check=True)
    return [((work / f"{n}.out").read_text(), int((work / f"{n}.code").read_text())) for n in range(len(found))]


def missing(shown: tuple[str, ...], output: str) -> list[str]:
    """Shown lines that the output does not have in this order; … stands for anything, blanks count as one."""
    lines = iter([" ".join(line.split()) for line in output.splitlines()])
    lacking = []
    for line in shown:
        parts = [re.escape(part) for part in " ".join(line.split()).split("…")]
        pattern = re.compile(".*".join(parts))
        if not any(pattern.fullmatch(found) for found in lines):
            lacking.append(line)
    return lacking


def failures(found: list[Command], results: list[tuple[str, int]]) -> list[str]:
    """Commands that failed or printed something else, as a person reads them."""
    told = []
    for command, (output, code) in zip(found, results, strict=True):
        lacking = missing(command.shown, output)
        if code or lacking:
            told.append(f"$ {command.text}\nexit {code}; not printed: {lacking}\n{output[-1500:]}")
    return told
