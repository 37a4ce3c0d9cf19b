"""Measuring. Belongs here: running a command as a whole process and describing the machine. Not here: what is run."""

import contextlib
import json
import os
import platform
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class CommandFailed(Exception):
    """A measured command ended with an error; carries the end of its log."""


@dataclass(frozen=True)
class Cost:
    """What one process cost.

    Attributes:
        wall: Seconds from start to exit.
        cpu: User and system seconds, of the process and the children it waited for.
        peak_mib: Largest resident size of any one of them.
        facts: What the command reported of itself (see `reported`).
    """

    wall: float
    cpu: float
    peak_mib: float
    facts: Mapping[str, Any] = field(default_factory=dict)


def run(command: Sequence[str], environ: Mapping[str, str], cwd: Path, log: Path) -> Cost:
    """Run the command to its end; its output goes to the log.

    Raises:
        CommandFailed: It ended with an error.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    facts = log.with_suffix(".facts.json")
    facts.unlink(missing_ok=True)
    with log.open("wb") as out:
        started = time.monotonic()
        process = subprocess.Popen(
            [*command], cwd=cwd, env={**environ, "BENCHMARK_FACTS": str(facts)}, stdout=out, stderr=subprocess.STDOUT
        )
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        wall = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-25:])
        raise CommandFailed(f"{' '.join(command)} ended with {process.returncode}:\n{tail}\n(the whole log: {log})")
    found = json.loads(facts.read_text()) if facts.exists() else {}
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, found)


def reported(**facts: Any) -> None:
    """Called inside a measured process: hand these facts to the benchmark."""
    if path := os.environ.get("BENCHMARK_FACTS"):
        Path(path).write_text(json.dumps(facts))


def own_peak_mib() -> float:
    """Largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def machine() -> dict[str, Any]:
    """The machine, as the report names it."""
    model = ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": model or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(memory, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_at_start": round(os.getloadavg()[0], 1),
    }
