"""The views of a folder that SQL is asked of, and the tables that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ravi.lab.experiments.rows import NUMBER, TEXT, WHOLE
from ravi.validation import InputError

if TYPE_CHECKING:
    import pyarrow.dataset as ds

# learner: as the suite says; setting: by which it is scored, null while tuning has not chosen
ENTRIES = pa.schema({
    "section": TEXT, "column": TEXT, "label": TEXT, "mdp": TEXT, "learner": TEXT, "steps": WHOLE, "setting": TEXT,
    "seeds": pa.list_(WHOLE),
})  # fmt: skip
# learner: as it was before tuning; configuration: 0, 1, ... as they were tried; configured: the learner's canonical id
# with its multipliers; regret: the mean over the tuning seeds
TUNING = pa.schema({
    "subject": TEXT, "mdp": TEXT, "mdp_digest": TEXT, "learner": TEXT, "steps": WHOLE, "sampler": TEXT, "budget": WHOLE,
    "configuration": WHOLE, "scale": NUMBER, "step_scale": NUMBER, "configured": TEXT, "setting": TEXT,
    "regret": NUMBER, "standard_error": NUMBER, "failed": WHOLE, "chosen": pa.bool_(),
})  # fmt: skip

# What `sql` offers, in the order of being made.
VIEWS = {
    "all_runs": "SELECT setting || '-' || seed AS run, * FROM rows_of_parts",
    "failures": "SELECT * FROM all_runs WHERE failure IS NOT NULL",
    "entries": "SELECT * FROM rows_of_entries",
    "runs": "SELECT * FROM all_runs "
    "SEMI JOIN (SELECT setting, unnest(seeds) AS seed FROM entries) USING (setting, seed)",
    "results": 'SELECT e.section, e."column", e.label, e.mdp, e.learner, r.learner AS configured, '
    "r.* EXCLUDE (mdp, learner) FROM (SELECT *, unnest(seeds) AS seed FROM entries) e "
    "JOIN runs r ON r.setting = e.setting AND r.seed = e.seed",
    "tuning": "SELECT * FROM rows_of_tuning",
}


def answer(query: str, runs: ds.Dataset, tried: pa.Table, entries: Callable[[], pa.Table]) -> pa.Table:
    """DuckDB's answer to a query over the views; those of entries are missing if the suite cannot be read."""
    import duckdb

    apart = ("autoinstall_known_extensions", "autoload_known_extensions", "enable_external_access")
    config: dict[str, Any] = dict.fromkeys(apart, "false")
    views, missing = VIEWS, ""
    with duckdb.connect(":memory:", config=config) as connection:
        connection.register("rows_of_parts", runs)
        connection.register("rows_of_tuning", tried)
        try:
            connection.register("rows_of_entries", entries())
        except InputError as error:
            of_entries = ("entries", "runs", "results")
            views = {name: meaning for name, meaning in VIEWS.items() if name not in of_entries}
            missing = f" ({', '.join(of_entries)} are not there: {error})"
        for name, meaning in views.items():
            connection.execute(f"CREATE VIEW {name} AS {meaning}")
        try:
            found = connection.sql(query)
            if found is None:
                raise InputError(f"the query asks for nothing. Views: {', '.join(views)}{missing}")
            return found.to_arrow_table()
        except duckdb.Error as error:
            hint = ' Write "column" in quotes.' if '"column"' in str(error) else ""
            raise InputError(f"{error}{hint}\nViews: {', '.join(views)}{missing}") from None


def tried(tuning: dict[str, dict[str, Any]]) -> pa.Table:
    """One row for every configuration that tuning has tried."""
    rows = [
        {
            **record, **one, "subject": subject, "learner": record.get("learner"), "configured": one.get("learner"),
            "configuration": number, "chosen": number == record.get("chosen"),
        }
        for subject, record in tuning.items()
        for number, one in enumerate(record["configurations"])
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=TUNING)
