"""Failures replayed. Belongs here: one module a drill, and the frame around them. Not here: anything production needs."""

CATALOGUE = {
    "retry-after-partial-write": "A task is killed half way through its writing, and run again.",
    "retry-after-source-moved": "The first attempt fails, the source changes, the second attempt succeeds.",
    "full-rerun": "Everything is run again, to be safe.",
    "mark-success": "A day fails, and somebody marks it as done.",
    "downstream-before-upstream": "A table is built before what it reads has arrived.",
    "silent-retries": "A task succeeds at the third attempt, and the run is green.",
    "stale-but-present": "What a table was made from is replaced; the table is still there.",
    "parallel-backfill": "Several days are backfilled at the same time.",
    "depends-on-past": "A past day of a running balance is run again.",
    "green-but-empty": "The source has nothing yet, and the run is green.",
    "delivery-in-doubt": "The partner takes the file, and its answer is lost.",
    "corrected-past-run": "A week that was sent is corrected and built again.",
    "schema-change": "The source reorders its columns, and writes text where numbers were.",
    "code-change-mid-incident": "New code is deployed between a failure and its repair.",
    "two-writers": "The same day is run twice at the same time.",
    "known-bad-interval": "A day is known to be wrong on the evening before the file goes out.",
}
"""Every drill and what happens in it, in the order of the handbook; drill `a-b` is DRILL in module `a_b`."""
