"""The joined scripts of a bundle: nothing of the modules is lost but comments and spaces."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import accumulate

import pytest

from singe.tools.export.scripts import compact, joined_scripts, readable_scripts

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


KEPT = """\
/** A comment
 * with lines. */
const a = "x // y  /* z */" + '\\' //  ';
  const b = `p  ${ f({ c: `q  ${1 + 2}  r` }) } // s
  t`; // end

const c = [/[/]  "\\/ `/g, d /* e */ / f, (g) / 2];
return /z  z/.test(i + +j - -k in l);
"""
MADE = """\
const a="x // y  /* z */"+'\\' //  ';
const b=`p  ${ f({ c: `q  ${1 + 2}  r` }) } // s
  t`;
const c=[/[/]  "\\/ `/g,d / f,(g) / 2];
return /z  z/.test(i+ +j- -k in l);
"""


def test_strings_templates_and_patterns_stay_as_they_are() -> None:
    assert list(compact(KEPT)) == list(zip(MADE.splitlines(), (2, 3, 4, 6, 7), strict=True))


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("const a = /** @type {number} */ (b.c[0].d());", "const a=b.c[0].d();"),
        ("f(/** @type {T} */ (/** @type {unknown} */ (a ?? b)), c);", "f(a??b,c);"),
        ("return /** @type {T[]} */ ([...a, b]);", "return[...a,b];"),
        ("const a = /** @type {T} */ (await b).c;", "const a=(await b).c;"),
        ("const a = () => /** @type {T} */ ({ b: 1 });", "const a=()=>({b:1});"),
        ("const a = b == /** @type {T} */ (c || d);", "const a=b==(c||d);"),
        ("const a = /** @type {T} */ (b?.c).d;", "const a=(b?.c).d;"),
        ("const a = new /** @type {T} */ (b.c())();", "const a=new(b.c())();"),
        ("const a = `${/** @type {T} */ (b).c})`;", "const a=`${b.c})`;"),
    ],
)
def test_a_value_read_as_another_type_has_no_needless_parentheses(text: str, short: str) -> None:
    assert list(compact(text)) == [(short, 0)]


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
