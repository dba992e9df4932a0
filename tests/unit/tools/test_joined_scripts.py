"""The joined scripts of a bundle: nothing of the modules is lost but comments and spaces."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import accumulate
from pathlib import Path

import pytest

from singe.tools.export.page import scripts
from singe.tools.export.page.scripts import EAGER, bundle_scripts, compact, joined_scripts, readable_scripts

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def test_every_script_that_is_loaded_is_there() -> None:
    files = joined_scripts()
    for name, data in files.items():
        if name.endswith(".js"):
            for other in re.findall(r"""["']\./(singe[\w-]*\.js)["']""", data.decode()):
                assert other in files, f"{name} loads {other}"
            assert f"{name}.map" in files


@pytest.mark.slow
def test_the_engine_can_read_them() -> None:
    if shutil.which("node") is None:
        pytest.skip("no node here")
    for name, data in joined_scripts().items():
        if name.endswith(".js"):
            command = ["node", "--input-type=module", "--check"]
            done = subprocess.run(command, input=data, capture_output=True, check=False)
            assert done.returncode == 0, (name, done.stderr.decode())


SCRIPT = """\
/** A comment
 * with lines. */
const a = "x // y  /* z */" + '\\' //  ';
  const b = /** @type {{ c: number }} */ (`p  ${a} // s`); // end

  /** @type {string | undefined} */
  let d;
"""
SHORT = """\
const a = "x // y  /* z */" + '\\' //  ';
const b = (`p  ${a} // s`);
let d;
"""


def test_comments_and_indentation_are_left_out() -> None:
    assert list(compact(SCRIPT)) == list(zip(SHORT.splitlines(), (2, 3, 6), strict=True))


def test_a_package_with_built_scripts_gives_these_with_the_texts_of_the_modules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert bundle_scripts.__wrapped__() == joined_scripts()
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "singe.js").write_text("built")
    (tmp_path / "dist" / "singe.js.map").write_text('{"sources": ["singe-format.js"], "mappings": ""}')
    monkeypatch.setattr(scripts, "static_folder", lambda: tmp_path)
    found = bundle_scripts.__wrapped__()
    assert found.keys() == {"singe.js", "singe.js.map"}
    assert found["singe.js"] == b"built"
    assert json.loads(found["singe.js.map"])["sourcesContent"] == [readable_scripts()["singe-format.js"].decode()]


def test_the_main_file_waits_for_no_other() -> None:
    """The others wait for it."""
    sources = {name: data.decode() for name, data in readable_scripts().items()}
    imported = {
        other for name in EAGER for other in re.findall(r'^import .* from "\./([\w-]+\.js)";$', sources[name], re.M)
    }
    assert imported <= EAGER
    assert "=await Promise.all([import(" not in joined_scripts()["singe.js"].decode()


def test_a_source_map_leads_each_line_to_its_own() -> None:
    files = joined_scripts()
    sources = {name: data.decode() for name, data in readable_scripts().items()}
    for name in (n for n in files if n.endswith(".map")):
        found = json.loads(files[name])
        lines = files[name.removesuffix(".map")].decode().splitlines()
        assert found["sourcesContent"] == [sources[s] for s in found["sources"]]
        segments = [_numbers(part) for part in found["mappings"].split(";")]
        assert len(segments) == len(lines) - 1, "all but the line that names the map"
        places = accumulate((s[1:3] if s else (0, 0) for s in segments), lambda a, b: (a[0] + b[0], a[1] + b[1]))
        for line, segment, (source, number) in zip(lines, segments, places, strict=False):
            if segment:
                own = re.sub(
                    r"^(export )+|/\*\*.*?\*/", "", found["sourcesContent"][source].splitlines()[number].strip()
                )
                assert own.startswith("import") or _dense(own)[:3] == _dense(line)[:3]


def _dense(line: str) -> str:
    """What a line begins with, without what tells of types."""
    return re.sub(r"[()\s]", "", line)


def _numbers(text: str) -> list[int]:
    """The numbers of a segment."""
    found, value, shift = [], 0, 0
    for digit in map(DIGITS.index, text):
        value |= (digit & 31) << shift
        shift += 5
        if not digit & 32:
            found.append(-(value >> 1) if value & 1 else value >> 1)
            value, shift = 0, 0
    return found
