"""The report. Belongs here: targets, and the results as JSON and Markdown with the machine named. Not here: measuring."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.scenarios import Line

OURS = "orders_platform"


@dataclass(frozen=True)
class Target:
    """A limit that was promised, and what was measured; `holds` is `value <= limit`."""

    what: str
    value: float
    limit: float
    unit: str = "×"

    @property
    def holds(self) -> bool:
        return self.value <= self.limit


def targets(lines: Sequence[Line]) -> list[Target]:
    """Every target whose measurements are there."""
    at = {(x.scenario, x.size, x.step, x.tool): x for x in lines}
    found = []
    for (scenario, size, step, tool), line in at.items():
        if tool != OURS:
            continue
        where = f"{scenario}, {size}, {step}"

        def other(name: str, key: tuple[str, str, str] = (scenario, size, step)) -> Line | None:
            return at.get((*key, name))

        peers = [x for (*key, name), x in at.items() if key == [scenario, size, step] and not name.startswith(("floor", OURS))]
        floor, by_day, sqlmesh = other("floor, one pass"), other("floor, a day at a time"), other("SQLMesh range")
        if scenario in ("range", "features") and step == "backfill" and floor and floor.inner and line.inner:
            found.append(
                Target(
                    f"{where}: swaps, to the floor in one pass", line.inner / floor.inner, 1.3 if scenario == "range" else 1.15
                )
            )
            found.append(Target(f"{where}: peak memory, to the floor's", peak(line) / peak(floor), 1.5))
            if by_day:
                found.append(Target(f"{where}: whole process, to the floor a day at a time", line.wall / by_day.wall, 1.0))
            if sqlmesh:
                found.append(Target(f"{where}: swaps, to SQLMesh's whole process", line.inner / sqlmesh.wall, 1.0))
            found += [
                Target(f"{where}: whole process, to {x.tool}", line.wall / x.wall, 1.0) for x in peers if x is not sqlmesh
            ]
        elif step == "one day" and peers:
            found += [Target(f"{where}: whole process, to {x.tool}", line.wall / x.wall, 1.0) for x in peers]
    found += history_targets(lines)
    memory = {x.step: x for x in lines if x.scenario == "memory"}
    for step in ("landing", "staging"):
        if step in memory:
            found.append(Target(f"memory, {memory[step].size}, {step}: peak", peak(memory[step]), 2048, "MiB"))
    if "landing" in memory:
        landing = min(cost.facts["seconds"]["landing"] for cost in memory["landing"].costs)
        ratio = landing / memory["driver reads into nothing"].wall
        found.append(Target("memory: landing, to the driver reading into nothing", ratio, 2.0))
    return found


def history_targets(lines: Sequence[Line]) -> list[Target]:
    days = [x for x in lines if x.scenario == "history" and x.step == "one day"]
    if len(days) != 2 or not days[0].inner or not days[1].inner:
        return []
    return [Target(f"one day replaced in {days[1].size}, to one in {days[0].size}", days[1].inner / days[0].inner, 1.2)]


def peak(line: Line) -> float:
    return max(cost.peak_mib for cost in line.costs)


def per_event(lines: Sequence[Line]) -> dict[str, Any] | None:
    """Dagster's own cost: milliseconds an event, from the range runs."""
    seconds = count = 0.0
    for line in lines:
        for cost in line.costs:
            if "counts" in cost.facts and "events" in cost.facts["counts"]:
                seconds += cost.facts["seconds"]["events"]
                count += cost.facts["counts"]["events"]
    return {"events": int(count), "milliseconds_an_event": round(1000 * seconds / count, 2)} if count else None


def write(folder: Path, machine: dict[str, Any], versions: dict[str, str], lines: Sequence[Line]) -> Path:
    """results.json and results.md in the folder; returns the Markdown file."""
    folder.mkdir(parents=True, exist_ok=True)
    found = targets(lines)
    data = {
        "machine": machine,
        "versions": versions,
        "dagster_events": per_event(lines),
        "targets": [
            {"what": t.what, "value": round(t.value, 3), "limit": t.limit, "unit": t.unit, "holds": t.holds} for t in found
        ],
        "measurements": [line.as_row() for line in lines],
    }
    (folder / "results.json").write_text(json.dumps(data, indent=1) + "\n")
    text = folder / "results.md"
    text.write_text(markdown(data))
    return text


def markdown(data: dict[str, Any]) -> str:
    machine = data["machine"]
    out = [
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}, "
        f"Python {machine['python']}; load at the start {machine['load_at_start']}.",
        "Compared: " + "; ".join(f"{name}: {value}" for name, value in data["versions"].items()) + ".",
        "",
    ]
    if data["targets"]:
        out += ["| target | measured | at most | |", "|---|---|---|---|"]
        for t in data["targets"]:
            shown = f"{t['value']:.2f} {t['unit']}" if t["unit"] == "×" else f"{t['value']:,.0f} {t['unit']}"
            out.append(f"| {t['what']} | {shown} | {t['limit']:g} {t['unit']} | {'holds' if t['holds'] else '**missed**'} |")
        out.append("")
    for key in dict.fromkeys((m["scenario"], m["size"], m["step"]) for m in data["measurements"]):
        rows = [m for m in data["measurements"] if (m["scenario"], m["size"], m["step"]) == key]
        out += [
            f"**{key[0]}, {key[1]}: {key[2]}**",
            "",
            "| tool | whole process s | of it processor s | publishing s | peak MiB |",
            "|---|---|---|---|---|",
        ]
        for m in sorted(rows, key=lambda m: m["wall_seconds"]):
            inner = f"{m['publishing_seconds']:.2f}" if m["publishing_seconds"] is not None else ""
            out.append(f"| {m['tool']} | {m['wall_seconds']:.2f} | {m['cpu_seconds']:.2f} | {inner} | {m['peak_mib']} |")
        out.append("")
    if data["dagster_events"]:
        out.append(
            f"Dagster's own cost: {data['dagster_events']['milliseconds_an_event']} ms an event "
            f"({data['dagster_events']['events']:,} events)."
        )
    return "\n".join(out) + "\n"


MARKS = ("<!-- results: written by python -m benchmarks --doc -->", "<!-- end of results -->")


def write_into(document: Path, text: str) -> None:
    """Replace what stands between the marks of the document.

    Raises:
        ValueError: The document has no marks.
    """
    before, _, rest = document.read_text().partition(MARKS[0])
    _, found, after = rest.partition(MARKS[1])
    if not found:
        raise ValueError(f"{document} lacks the line {MARKS[0]} or {MARKS[1]}")
    document.write_text(f"{before}{MARKS[0]}\n{text.strip()}\n{MARKS[1]}{after}")
