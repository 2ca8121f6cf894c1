"""The store: parts are whole or not there, writers and readers do not disturb each other, damage is named."""

import fcntl
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ravi
from ravi.lab.experiments.rows import CURVES, SCHEMA, rows_of
from ravi.lab.experiments.store import PART, Store, read_part
from ravi.validation import InputError
from tests.lab.experiments.stores import SUITE, created, failed, made, rows, setting


@pytest.fixture
def part(tmp_path):
    """A whole part."""
    store = created(tmp_path, None)
    with store.launch({}) as launch:
        return store.write([rows(launch)])


def wrong_with(path):
    found = read_part(path, ["run"])
    return found if isinstance(found, str) else ""


def bits_flipped(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_rows_are_read_back_bit_by_bit(tmp_path):
    store = created(tmp_path, None)
    with store.launch({}) as launch:
        path = store.write([rows(launch), rows(launch, "ravi-ucb"), failed(launch, seeds=(9,))])
        wanted = pa.concat_tables([rows(launch), rows(launch, "ravi-ucb"), failed(launch, seeds=(9,))])
    assert pq.read_table(path).equals(wanted)
    (table,) = Store(tmp_path).read(SCHEMA.names).values()
    assert table.equals(wanted)
    curve = np.array(table["regret_curve"][0].as_py())
    assert curve.tobytes() == made().regret_curve[0].tobytes()


def test_rows_travel_by_pickle():
    table = rows_of(made(), setting(), ravi.mdp("riverswim/4"), "launch")
    assert pickle.loads(pickle.dumps(table)).equals(table, check_metadata=True)
    assert table.schema.metadata == {b"ravi.format": b"1"}


def test_a_digest_tells_every_result_apart():
    """Another seed, another optimum or one changed bit of a curve gives another digest; another launch does not."""
    batch = rows_of(made(), setting(), ravi.mdp("riverswim/4"), "launch")
    again = rows_of(made(), setting(), ravi.mdp("riverswim/4"), "another")
    digests = batch.column("digest").to_pylist()
    assert len(set(digests)) == 3
    assert again.column("digest").to_pylist() == digests
    for name in ("regret", "regret_total", "gap", "regret_error"):
        results = {key: array.copy() for key, array in made().results.items()}
        results[name].flat[0] = np.nextafter(results[name].flat[0], np.inf)
        run = type(made())(**{**made().__dict__, "results": results})
        changed = rows_of(run, setting(), ravi.mdp("riverswim/4"), "launch").column("digest").to_pylist()
        assert changed[0] != digests[0], name
        assert changed[1:] == digests[1:], name


def test_a_part_that_was_cut_short_or_has_a_flipped_bit_is_damaged(part):
    content = part.read_bytes()
    for size in (0, 1, 100, -1):
        part.write_bytes(content[:size])
        assert wrong_with(part).startswith("damaged")
    for place in (0, 5, 1000, -1, -9):
        part.write_bytes(content)
        assert wrong_with(part) == ""
        bits_flipped(part, place)
        assert wrong_with(part).startswith("damaged")


def test_a_part_under_another_name_is_not_one(part):
    other = part.with_name(part.name[:20] + "0" * 16 + ".parquet")
    part.rename(other)
    assert wrong_with(other) == "damaged: its content is not what its name says"
    strange = part.with_name("results.parquet")
    other.rename(strange)
    assert wrong_with(strange) == "foreign: it is not named as a part is"


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (pa.table({"x": [1]}), "foreign: its rows have format 'none'; this ravi reads 1"),
        (pa.table({"x": [1]}).replace_schema_metadata({"ravi.format": "2"}), "foreign: its rows have format '2'"),
        (pa.table({"x": [1]}).replace_schema_metadata({"ravi.format": "1"}), "foreign: its columns"),
        (SCHEMA.empty_table().drop_columns("error"), "foreign: its columns"),
    ],
)
def test_parquet_of_others_is_foreign_even_under_the_name_of_a_part(tmp_path, table, why):
    from hashlib import sha256

    content = io.BytesIO()
    pq.write_table(table, content)
    path = tmp_path / f"{'a' * 12}-000000-{sha256(content.getvalue()).hexdigest()[:16]}.parquet"
    path.write_bytes(content.getvalue())
    assert wrong_with(path).startswith(why)


def test_no_parquet_and_no_file_are_damaged(tmp_path):
    from hashlib import sha256

    path = tmp_path / f"{'a' * 12}-000000-{sha256(b'hello').hexdigest()[:16]}.parquet"
    assert wrong_with(path).startswith("damaged")
    path.write_bytes(b"hello")
    assert wrong_with(path).startswith("damaged")
    path.unlink()
    path.mkdir()
    assert wrong_with(path).startswith("damaged")


def test_a_store_reads_every_part_once_and_names_the_damaged(tmp_path):
    writer, reader = created(tmp_path, None), Store(tmp_path)
    with writer.launch({}) as launch:
        first = writer.write([rows(launch)])
        assert list(reader.read(["seed"])) == [first.name]
        assert list(reader.read(["seed"])) == []
        second, third = writer.write([rows(launch)]), writer.write([rows(launch, "ravi-ucb")])
        bits_flipped(second, 100)
        assert list(reader.read(["seed"])) == [third.name]
        assert [trouble.name for trouble in reader.troubles] == [f"parts/{second.name}"]
        assert list(reader.read(["seed"])) == []
        assert len(reader.troubles) == 1
        assert list(writer.read(["seed"])) == []  # its own


def test_a_half_written_part_is_not_seen(tmp_path):
    store = created(tmp_path, None)
    (tmp_path / "parts" / ".ravi-0123-1@elsewhere.tmp").write_bytes(b"half")
    assert list(store.read(["seed"])) == []
    assert store.troubles == []


def test_two_writers_share_a_folder(tmp_path):
    """Each writes 20 parts; all 40 are there, whole, under different names."""
    created(tmp_path, None)

    def write(learner):
        store = Store(tmp_path)
        store.create()
        with store.launch({}) as launch:
            for _ in range(20):
                store.write([rows(launch, learner)])

    threads = [threading.Thread(target=write, args=(learner,)) for learner in ("uniform", "ravi-ucb")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = Store(tmp_path)
    found = list(reader.read(["seed"]))
    assert len(found) == 40
    assert not reader.troubles
    assert {PART.fullmatch(name)[1] for name in found} == set(reader.manifests())


WRITER = """
import sys
from pathlib import Path
from ravi.lab.experiments.store import Store
from tests.lab.experiments.stores import rows
store = Store(Path(sys.argv[1]))
store.create()
with store.launch({}) as launch:
    while True:
        print(store.write([rows(launch)]).name, flush=True)
"""


def test_a_killed_writer_leaves_what_it_acknowledged_and_nothing_broken(tmp_path):
    root = Path(__file__).parents[2].parent
    process = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE, text=True, cwd=root)
    told = [process.stdout.readline().strip() for _ in range(5)]
    assert len(Store(tmp_path).others("")) == 1  # it is alive, and its lock says so
    process.send_signal(signal.SIGKILL)
    told += process.stdout.read().split("\n")[:-1]
    process.wait()
    process.stdout.close()
    reader = Store(tmp_path)
    names = list(reader.read(["seed"]))
    assert set(told) <= set(names)
    assert len(names) <= len(told) + 1  # one may be on disk that was not acknowledged
    assert reader.troubles == []
    assert reader.others("") == []
    reader.create()  # tidies
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_new_store_removes_what_dead_processes_left(tmp_path):
    import platform

    store = created(tmp_path)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for folder in (tmp_path, tmp_path / "parts", tmp_path / "checkpoints"):
        (folder / f".ravi-0123-{dead.pid}@{platform.node()}.tmp").write_bytes(b"half")
        (folder / f".ravi-0123-{os.getpid()}@{platform.node()}.tmp").write_bytes(b"under way")
        (folder / f".ravi-0123-{dead.pid}@elsewhere.tmp").write_bytes(b"another machine's")
    store.create()
    assert len(list(tmp_path.rglob("*.tmp"))) == 6


def test_a_launch_is_alive_as_long_as_it_lasts(tmp_path):
    one, other = created(tmp_path, None), Store(tmp_path)
    with one.launch({"a": 1}) as first, other.launch({"b": 2}) as second:
        assert one.others(first) == [second]
        assert other.others(second) == [first]
        assert Store(tmp_path).others("") == sorted([first, second])
    assert one.others("") == []
    assert one.manifests() == {first: {"a": 1}, second: {"b": 2}}


def test_a_launch_is_locked_though_others_look(tmp_path, monkeypatch):
    """`others` holds a manifest for a moment; a launch that begins just then waits for it."""
    looks, flock, store = [], fcntl.flock, created(tmp_path, None)

    def busy(held, how):
        if not looks:
            looks.append(os.open(held.name, os.O_RDONLY))
            flock(looks[0], fcntl.LOCK_SH)
            threading.Timer(0.2, lambda: (looks.append("over"), os.close(looks[0]))).start()
        flock(held, how)

    monkeypatch.setattr(fcntl, "flock", busy)
    with store.launch({}) as launch:
        assert looks[1:] == ["over"]
        assert Store(tmp_path).others("") == [launch]


def test_a_file_system_without_locks_will_do(tmp_path, monkeypatch):
    def none(held, how):
        raise OSError(95, "Operation not supported")

    store = created(tmp_path, None)
    monkeypatch.setattr(fcntl, "flock", none)
    with store.launch({}) as launch:
        store.write([rows(launch)])
        assert store.others("") == []
    assert len(list(Store(tmp_path).read(["seed"]))) == 1


def test_the_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"no folder of results: it holds thesis\.tex"):
        ravi.run_suite(SUITE, tmp_path, workers=1)
    assert os.listdir(tmp_path) == ["thesis.tex"]
    with pytest.raises(InputError, match="is a file, not a folder"):
        ravi.run_suite(SUITE, tmp_path / "thesis.tex", workers=1)


def test_a_specification_is_frozen_and_checked(tmp_path):
    store = created(tmp_path, None)
    assert store.specification() is None
    store.freeze({"suite": {"name": "x"}})
    assert store.specification() == {"format": 1, "suite": {"name": "x"}}
    path = tmp_path / "specification.json"
    for content, why in (
        ("{", "is damaged"),
        ("[]", "no JSON object"),
        ('{"format": 2}', "has format 2; this ravi reads 1"),
        ('{"format": 1}', "it holds no suite"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=why):
            store.specification()


def test_damaged_json_is_a_trouble_and_the_rest_is_read(tmp_path):
    store = created(tmp_path, None)
    store.keep_tuning("one", {"chosen": 0})
    (tmp_path / "tuning" / "two.json").write_text('{"chosen":')
    (tmp_path / "tuning" / "three.json").write_bytes(b"\xff\xfe\x00")
    assert store.tuning() == {"one": {"chosen": 0}}
    assert [trouble.name for trouble in store.troubles] == ["tuning/three.json", "tuning/two.json"]


JOB = "0123456789abcdef0123"


def test_checkpoints_come_back_and_damaged_ones_are_named(tmp_path):
    store = created(tmp_path, None)
    content = io.BytesIO()
    ravi.run("uniform", "riverswim/4", steps=20, seeds=2, pause=5).save(content)
    store.keep_checkpoint(setting().digest, JOB, content.getvalue())
    assert store.checkpoints() == [f"{setting().digest}-{JOB}.run"]
    assert store.checkpoint(setting().digest, JOB) == content.getvalue()
    assert store.checkpoint(setting().digest, "1" * 20) is None

    (path,) = (tmp_path / "checkpoints").iterdir()
    path.with_name(f"{'z' * 20}-{JOB}.run").write_bytes(content.getvalue())
    path.with_name(f"{'3' * 20}-{JOB}.run").write_bytes(content.getvalue()[:-40])
    path.with_name(f"{'4' * 20}-{JOB}.run").write_bytes(b"")
    assert len(store.checkpoints()) == 1
    assert len(store.troubles) == 3
    store.drop_checkpoint(setting().digest, JOB)
    store.drop_checkpoint(setting().digest, JOB)  # again
    assert store.checkpoints() == []


def test_a_job_is_claimed_by_one_launch_until_it_is_released(tmp_path):
    one, other = created(tmp_path, None), Store(tmp_path)
    with one.launch({}), other.launch({}):
        assert one.claim(JOB)
        assert not one.claim(JOB)
        assert not other.claim(JOB)
        assert other.claim("1" * 20)
        other.release_dead()  # nobody is
        assert not other.claim(JOB)
        one.release(JOB)
        one.release(JOB)  # again
        assert other.claim(JOB)


def test_of_many_that_claim_at_once_one_succeeds(tmp_path):
    created(tmp_path, None)
    won = []

    def claim():
        store = Store(tmp_path)
        with store.launch({}):
            ready.wait()
            won.extend(job for job in range(50) if store.claim(f"{job:020d}"))
            done.wait()

    ready, done = threading.Barrier(8), threading.Barrier(8)
    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(50))


CLAIMER = """
import sys, time
from pathlib import Path
from ravi.lab.experiments.store import Store
store = Store(Path(sys.argv[1]))
with store.launch({}):
    print(store.claim("0123456789abcdef0123"), flush=True)
    time.sleep(600)
"""


def test_the_claim_of_a_dead_launch_is_released_and_that_of_a_living_one_is_not(tmp_path):
    store = created(tmp_path, None)
    process = subprocess.Popen([sys.executable, "-c", CLAIMER, tmp_path], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "True\n"
    with store.launch({}):
        store.release_dead()
        assert not store.claim(JOB)
        process.kill()
        process.wait()
        process.stdout.close()
        store.release_dead()
        assert store.claim(JOB)


def test_a_claim_that_is_about_to_be_written_is_left_alone_while_others_are_alive(tmp_path):
    store, other = created(tmp_path, None), Store(tmp_path)
    (tmp_path / "claims" / JOB).touch()
    with store.launch({}):
        with other.launch({}):
            store.release_dead()
            assert not store.claim(JOB)
        store.release_dead()
        assert store.claim(JOB)


def test_nothing_in_a_store_is_pickled(tmp_path):
    """Every file is Parquet, JSON or an archive of plain arrays."""
    store = created(tmp_path)
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch), failed(launch, seeds=(7,))])
        store.keep_tuning("subject", {"chosen": None})
        store.keep_mdp(ravi.mdp("riverswim/4"))
        content = io.BytesIO()
        made().save(content)
        store.keep_checkpoint(setting().digest, JOB, content.getvalue())
    kinds = {}
    for path in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        head = path.read_bytes()[:4]
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".parquet":
            assert head == path.read_bytes()[-4:] == b"PAR1"
        else:
            assert zipfile.is_zipfile(path)
            with np.load(path, allow_pickle=False) as arrays:
                assert all(arrays[name].dtype.kind in "iufb" for name in arrays.files)
        kinds[path.suffix] = kinds.get(path.suffix, 0) + 1
    assert kinds == {".json": 3, ".parquet": 1, ".mdp": 1, ".run": 1}


def test_parts_are_compressed_by_byte_planes(part):
    """Curves by byte-stream split under zstd: what keeps 10,000 runs of 1,000 points below 100 MB."""
    group = pq.ParquetFile(part).metadata.row_group(0)
    columns = {group.column(i).path_in_schema.split(".")[0]: group.column(i) for i in range(group.num_columns)}
    for name in CURVES:
        assert "BYTE_STREAM_SPLIT" in columns[name].encodings
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert columns["setting"].statistics is not None
