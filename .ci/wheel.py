"""Checks what was built before it is published: its metadata, its page, and that it holds the package and nothing else.

python .ci/wheel.py dist
"""

import base64
import csv
import hashlib
import io
import os
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from hatch_build import page, repository, urls  # noqa: E402


def wheel_is_sound(wheel: Path) -> None:
    name, version, _, tags = parse_wheel_filename(wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = f"{name}-{version}.dist-info"
        record = csv.reader(io.StringIO(archive.read(f"{info}/RECORD").decode()))
        hashes = {file: digest for file, digest, _ in record if digest}
        for file, digest in hashes.items():
            found = base64.urlsafe_b64encode(hashlib.sha256(archive.read(file)).digest()).rstrip(b"=").decode()
            assert digest == f"sha256={found}", f"{file} is not what RECORD says"
        assert {*hashes, f"{info}/RECORD"} == set(names), "RECORD does not list what there is"
        of_metadata(archive.read(f"{info}/METADATA"))
    files = [file.relative_to(ROOT / "src") for file in (ROOT / "src" / "ravi").rglob("*") if file.is_file()]
    package = {file.as_posix() for file in files if "__pycache__" not in file.parts}
    assert {file for file in names if not file.startswith(info)} == package, "not the files of src/ravi"
    assert {str(tag) for tag in tags} == {"py3-none-any"}


def of_metadata(text: bytes) -> None:
    """Valid by the standard, with a page that the registry can show, and with what pyproject.toml says."""
    said = Metadata.from_email(text, validate=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (said.name, str(said.version)) == (project["name"], project["version"])
    if os.environ.get("GITHUB_REF_TYPE") == "tag":
        assert os.environ["GITHUB_REF_NAME"] == f"v{said.version}", "the tag is not that of the version"
    assert said.description_content_type == "text/markdown"
    shown = page((ROOT / "README.md").read_text(), project["version"], repository())
    assert (said.description or "").strip() == shown.strip()
    assert said.project_urls == urls(repository())
    assert said.requires_python == project["requires-python"]
    plain = [one for one in said.requires_dist or [] if one.marker is None]
    assert len(plain) == len(project["dependencies"])


def source_is_whole(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        inside = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name}
    for file in ("pyproject.toml", "README.md", "LICENSE", "src/ravi/py.typed", "tests/conftest.py", "PKG-INFO"):
        assert file in inside, f"{archive.name} lacks {file}"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    wheel_is_sound(wheel)
    source_is_whole(archive)
    print(f"{wheel.name} and {archive.name} are sound")
