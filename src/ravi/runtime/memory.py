"""Is there enough memory? What a call needs is estimated, and compared with what this process may still allocate."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from ravi.validation import InputError

SMALL = 2**24  # bytes that are taken without asking
UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


class TooLarge(InputError, MemoryError):
    """More memory is asked for than there is: on a larger machine, the same input would do."""


def needed(size: float, what: str, lower: str) -> None:
    """An error, before anything is taken, where `what` needs `size` bytes and they are not free."""
    if size <= SMALL:
        return
    left = free()
    if left is not None and size > left:
        raise TooLarge(f"{what} would need {written(size)}; {written(left)} are free: lower {lower}")


@contextmanager
def told(what: str, lower: str) -> Iterator[None]:
    """Where memory runs out though nobody reckoned it, an error that says for what."""
    try:
        yield
    except TooLarge:
        raise
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        raise TooLarge(f"{what} needs more memory than there is{why}: lower {lower}") from None


def written(size: float) -> str:
    """Bytes as people read them: 72 GB."""
    power = 0
    while size >= 999.5 and power < len(UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{size:.3g} {UNITS[power]}"


def free() -> int | None:
    """Bytes that this process may still take: of the machine, its control groups and its limits; None: not known."""
    known = [size for size in (_of_machine(), *_of_groups(), _of_limit()) if size is not None]
    return max(0, min(known)) if known else None


def _of_machine() -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _of_groups() -> Iterator[int]:
    """What each control group of the process, and those above it, have left; files that they could drop count as free.

    The files are those of version 2, then of version 1.
    """
    for folder in _groups():
        for most, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            with suppress(OSError, ValueError):  # the word max, too: no limit
                limit = int((folder / most).read_text())
                yield limit - int((folder / used).read_text()) + _droppable(folder)


def _droppable(folder: Path) -> int:
    with suppress(OSError, ValueError):
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.startswith(("inactive_file ", "total_inactive_file ")):
                return int(line.split()[1])
    return 0


@cache
def _groups() -> tuple[Path, ...]:
    """The folders of the memory's control groups that this process is in, as far as they set limits."""
    found: list[Path] = []
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers in ("", "memory"):
                top = Path("/sys/fs/cgroup", controllers)
                inner = top / group.lstrip("/")
                found += [inner, *(one for one in inner.parents if one.is_relative_to(top))]
    names = ("memory.max", "memory.limit_in_bytes")
    return tuple(one for one in dict.fromkeys(found) if any((one / name).is_file() for name in names))


def _of_limit() -> int | None:
    """What RLIMIT_AS leaves, where it is set."""
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            return limit - pages * resource.getpagesize()
    return None
