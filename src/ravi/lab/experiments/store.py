"""The store of results: immutable parts, each there as a whole or not at all, its hash in its name.

docs/reference/store.md describes the folder. A file is written under a temporary name, flushed to disk and renamed;
nothing is ever written in place. So any number of processes can write and read at once, and one that dies leaves behind
what it had acknowledged, and nothing broken. Names hold no times: clocks do not matter.
"""

import fcntl
import io
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ravi.core import MDP
from ravi.lab.experiments.rows import CURVES, FORMAT, SCHEMA
from ravi.machine import cores
from ravi.runtime import archive
from ravi.validation import InputError

FOLDER_FORMAT = 1  # of the layout; in specification.json
PART = re.compile(r"([0-9a-f]{12})-(\d{6})-([0-9a-f]{16})\.parquet")
CHECKPOINT = re.compile(r"([0-9a-f]{20})-([0-9a-f]{20})\.run")
FOLDERS = ("manifests", "parts", "tuning", "mdps", "checkpoints", "claims")
TEXTS = [field.name for field in SCHEMA if field.type == pa.string()]
# Curves by byte planes: 2.8 kB for a curve of 1,000 points, against 4.1 as they come, and 8 raw. Statistics of all
# columns would be a third of a part of few rows.
PARQUET = {
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": TEXTS,
    "column_encoding": dict.fromkeys([f"{name}.list.element" for name in CURVES], "BYTE_STREAM_SPLIT"),
    "write_statistics": ["setting", "seed"],
    "write_page_checksum": True,
}


class Trouble(NamedTuple):
    """A file that is not what it should be: it is named, and left out."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


class Damaged(InputError):
    """A file of the folder is not what was written there."""


class Store:
    """A folder of results, for writing. Reading is `ravi.results`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.troubles: list[Trouble] = []
        self._seen: set[str] = set()
        self._written = 0
        self._launch = "0" * 12

    def create(self) -> None:
        """Make the folder, where it is not there; a folder of something else is left alone."""
        try:
            if self.folder.exists() and not self.folder.is_dir():
                raise InputError(f"{self.folder} is a file, not a folder")
            strangers = sorted(os.listdir(self.folder)) if self.folder.exists() else []
            ours = (self.folder / "specification.json").exists() or all(
                name in FOLDERS or name.startswith(".ravi-") for name in strangers
            )
            if strangers and not ours:
                raise InputError(f"{self.folder} is no folder of results: it holds {strangers[0]}; name an empty one")
            for name in FOLDERS:
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            for name in ("", *FOLDERS):
                archive.remove_leftovers(self.folder / name)
        except OSError as error:
            raise InputError(f"cannot write into {self.folder}: {error.strerror}") from None

    # The specification and the manifests.

    def specification(self) -> dict[str, Any] | None:
        """The frozen suite and what its ids stood for; None in a new folder."""
        path = self.folder / "specification.json"
        if not path.exists():
            return None
        try:
            held = _json(path)
        except InputError as error:
            raise Damaged(f"{error}. {_mended(self.folder)}") from None
        if held.get("format") != FOLDER_FORMAT:
            raise InputError(f"{path} has format {held.get('format')!r}; this ravi reads {FOLDER_FORMAT}")
        if not isinstance(held.get("suite"), dict):
            raise Damaged(f"{path} is damaged: it holds no suite. {_mended(self.folder)}")
        return held

    def freeze(self, specification: dict[str, Any]) -> None:
        self._put_json("specification.json", {"format": FOLDER_FORMAT} | specification)

    @contextmanager
    def launch(self, manifest: dict[str, Any]) -> Iterator[str]:
        """Announce a launch; while it lasts, its manifest is locked, so that others can tell that it is alive."""
        name = secrets.token_hex(6)
        path = self._put_json(f"manifests/{name}.json", manifest)
        with open(path, "r+b") as held:  # NFS locks only what can be written
            with suppress(OSError):  # a file system without locks
                fcntl.flock(held, fcntl.LOCK_EX)  # once `others`, which may look just now, have let go
            self._launch = name
            yield name

    def manifests(self) -> dict[str, dict[str, Any]]:
        """The manifest of every launch; one that cannot be read is among the troubles."""
        return self._read_json("manifests")

    def others(self, launch: str) -> list[str]:
        """Which other launches are alive, as far as locks tell."""
        alive = []
        for path in sorted((self.folder / "manifests").glob("*.json")):
            if path.stem == launch:
                continue
            with suppress(OSError), open(path, "rb") as held:
                try:
                    fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    alive.append(path.stem)
        return alive

    # Parts.

    def write(self, tables: Sequence[pa.Table]) -> Path:
        """Keep rows as one part. When this returns, they are on disk."""
        sink = io.BytesIO()
        pq.write_table(pa.concat_tables(tables), sink, **PARQUET)
        content = sink.getbuffer()
        path = self.folder / "parts" / f"{self._launch}-{self._written:06d}-{sha256(content).hexdigest()[:16]}.parquet"
        archive.write_file(path, lambda file: file.write(content))
        self._written += 1
        self._seen.add(path.name)
        return path

    def read(self, columns: Sequence[str]) -> dict[str, pa.Table]:
        """These columns of the parts written since the last call, by name; those that are not whole are troubles."""
        folder = self.folder / "parts"
        listed = sorted(os.listdir(folder)) if folder.is_dir() else []
        names = [name for name in listed if name not in self._seen and not name.startswith(".")]
        self._seen |= {*names}
        with ThreadPoolExecutor(min(8, cores())) as pool:
            tables = pool.map(lambda name: read_part(folder / name, columns), names)
        found = dict(zip(names, tables, strict=True))
        self.troubles += [Trouble(f"parts/{name}", why) for name, why in found.items() if isinstance(why, str)]
        return {name: table for name, table in found.items() if not isinstance(table, str)}

    # Tuning records and MDPs.

    def keep_tuning(self, subject: str, record: dict[str, Any]) -> None:
        self._put_json(f"tuning/{subject}.json", record)

    def tuning(self) -> dict[str, dict[str, Any]]:
        """What was tried and chosen, by subject."""
        return self._read_json("tuning")

    def keep_mdp(self, mdp: MDP) -> Path:
        """Have an MDP kept: one that is there and damaged is made again."""
        path = self.folder / "mdps" / f"{mdp.digest}.mdp"
        if self.mdp(mdp.digest) is None:
            mdp.save(path)
        return path

    def mdp(self, digest: str) -> Path | None:
        """The file of an MDP that was given as one; None where there is none, or (a trouble) it is damaged."""
        path = self.folder / "mdps" / f"{digest}.mdp"
        if not path.exists():
            return None
        try:
            why = "" if MDP.load(path).digest == digest else f"{path} is another MDP than its name says"
        except InputError as error:
            why = str(error)
        if why:
            self.troubles.append(Trouble(f"mdps/{path.name}", why))
        return None if why else path

    # Jobs: who does them, and how far they are.

    def claim(self, job: str) -> bool:
        """Claim a job for this launch; False where another has it. What is stored is to be read after this."""
        path = self.folder / "claims" / job
        try:
            with open(path, "x") as file:
                file.write(self._launch)
        except FileExistsError:
            return False
        except OSError as error:
            raise archive.Unwritable(f"cannot write {path}: {error.strerror}") from None
        return True

    def release(self, job: str) -> None:
        """Let others do a job, or nobody: what was done of it is in the store."""
        (self.folder / "claims" / job).unlink(missing_ok=True)

    def release_dead(self) -> None:
        """Release the jobs that launches had claimed which have ended without a word."""
        with open(self.folder / "claims" / ".lock", "w") as lock, suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
            claims = {path: path.read_text() for path in (self.folder / "claims").glob("[!.]*")}
            alive = {self._launch, *self.others(self._launch)}
            for path, launch in claims.items():  # an empty one is about to be written
                dead = launch not in alive and (launch or len(alive) == 1)
                if dead and path.exists() and path.read_text() == launch:
                    path.unlink()

    def keep_checkpoint(self, setting: str, job: str, content: bytes) -> None:
        archive.write_file(self._checkpoint(setting, job), lambda file: file.write(content))

    def checkpoint(self, setting: str, job: str) -> bytes | None:
        """How far the runs of a setting are in a job, if that was kept."""
        with suppress(InputError, OSError), archive.open_file(self._checkpoint(setting, job)) as file:
            return file.read()
        return None

    def drop_checkpoint(self, setting: str, job: str) -> None:
        self._checkpoint(setting, job).unlink(missing_ok=True)

    def _checkpoint(self, setting: str, job: str) -> Path:
        return self.folder / "checkpoints" / f"{setting}-{job}.run"

    def checkpoints(self) -> list[str]:
        """The names of the checkpoints; one that cannot be read is a trouble, and its work begins anew."""
        found = []
        for path in sorted((self.folder / "checkpoints").glob("*.run")):
            try:
                if CHECKPOINT.fullmatch(path.name) is None:
                    raise InputError("it is not named as a checkpoint is")
                with archive.open_file(path) as file:
                    archive.read(file, "run")
                found.append(path.name)
            except InputError as error:
                if path.exists():  # else its runs were finished meanwhile
                    self.troubles.append(Trouble(f"checkpoints/{path.name}", str(error)))
        return found

    def _put_json(self, name: str, content: dict[str, Any]) -> Path:
        path = self.folder / name
        text = json.dumps(content, indent=1, allow_nan=False).encode()
        archive.write_file(path, lambda file: file.write(text))
        return path

    def _read_json(self, name: str) -> dict[str, dict[str, Any]]:
        found = {}
        for path in sorted((self.folder / name).glob("*.json")):
            try:
                found[path.stem] = _json(path)
            except InputError as error:
                self.troubles.append(Trouble(f"{name}/{path.name}", str(error)))
        return found


def read_part(path: Path, columns: Sequence[str]) -> pa.Table | str:
    """These columns of a part, which is compared to the last bit with what its name says; or why the file is none."""
    named = PART.fullmatch(path.name)
    if named is None:
        return "foreign: it is not named as a part is"
    if path.exists() and not path.is_file():
        return "damaged: it is no file"
    try:
        content = path.read_bytes()
        if sha256(content).hexdigest()[:16] != named[3]:
            return "damaged: its content is not what its name says"
        part = pq.ParquetFile(pa.BufferReader(content))
        version = (part.schema_arrow.metadata or {}).get(b"ravi.format", b"").decode(errors="replace")
        if version != FORMAT:
            return f"foreign: its rows have format {version or 'none'!r}; this ravi reads {FORMAT}"
        if not part.schema_arrow.equals(SCHEMA):
            return "foreign: its columns are not those of this format"
        return part.read(columns, use_threads=False)
    except (OSError, MemoryError, pa.ArrowException) as error:
        return f"damaged: {error}"


def _mended(folder: Path) -> str:
    return f"ravi suite run SUITE --out {folder}, with the suite that it was made from, makes it again and keeps runs"


def _json(path: Path) -> dict[str, Any]:
    """The object in a file of JSON."""
    held: Any = archive.read_json(path)
    if not isinstance(held, dict):
        raise InputError(f"{path} is damaged: it is no JSON object")
    return held
