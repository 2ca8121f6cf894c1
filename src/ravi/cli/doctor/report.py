"""What checks find: a verdict, what was seen and what to do; and all of them as a text or as JSON."""

from typing import Any, NamedTuple

from ravi.display.printable import counted

OK, WARNING, BROKEN, ABSENT = "ok", "warning", "broken", "absent"
PATIENCE = 120  # seconds that another process is given


class Check(NamedTuple):
    name: str
    verdict: str  # ok, warning, broken or absent
    seen: str
    advice: str = ""  # what to do


class Report(NamedTuple):
    checks: list[Check]

    @property
    def status(self) -> int:
        """The exit status of the command: 1 if anything is broken."""
        return int(any(check.verdict == BROKEN for check in self.checks))

    def text(self) -> str:
        width = max(len(check.name) for check in self.checks)
        lines = []
        for name, verdict, seen, advice in self.checks:
            lines.append(f"{verdict:8} {name:{width}}  {seen}")
            lines += [f"{'':8} {'':{width}}  -> {advice}"] if advice else []
        count = {verdict: sum(check.verdict == verdict for check in self.checks) for verdict in (BROKEN, WARNING)}
        warned = counted(count[WARNING], "warning")
        lines.append(f"{counted(len(self.checks), 'check')}: {count[BROKEN]} broken, {warned}")
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {"status": self.status, "checks": [check._asdict() for check in self.checks]}
