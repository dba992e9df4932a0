"""The pages of the site that are tasks: `with_tasks` adds them, with the bundles of their models and their samples."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kept import HERE, ROOT, BuildError, Say, files_under, keep, module
from page_parts import BACK, OFFLINE

import singe as sg
from singe.tools.export.page.own_page import TASK_PAGES as PAGE_OF_MEDIUM
from singe.tools.export.page.own_page import own_page
from singe.tools.export.page.snippet import links


@dataclass(frozen=True)
class TaskBundle:
    """name: what the page calls it, where it has several. dtype: of its weights; weights: the form to which they are rounded."""

    kind: str
    model: str
    name: str
    dtype: str = "float32"
    weights: str | None = None


@dataclass(frozen=True)
class TaskPage:
    """bundles: by their folders; the first has the scripts. samples: files of SAMPLES; of texts, the texts. medium: what the tasks take."""

    bundles: Mapping[str, TaskBundle]
    samples: Sequence[str] = ()
    medium: str = "picture"


SAMPLES: Final = {
    "astronaut.jpg": "An astronaut in an orange suit",
    "photographer.jpg": "A man with a camera on a tripod",
    "figure.jpg": "A rendered woman, her arms away from her body",
    "receipt.jpg": "A receipt, a notice and two signs, turned in all directions",
    "letter.jpg": "A letter with a table and two columns",
    "talk.wav": "A voice, with pauses",
    "tune.wav": "A tune",
    "call.wav": "“Okay Nabu” among other words",
    "fan.wav": "A voice beside a fan",
    "rain.wav": "A voice in the rain",
}
"""A picture of tasks/samples, or a sound that tasks/sample_sounds.py makes ↦ what it shows, or what one hears."""
_PEOPLE: Final = ("astronaut.jpg", "photographer.jpg", "figure.jpg")
_ASKED: Final = ("trouble with money", "an animal in winter", "somebody who cannot sleep", "good news for swimmers")
TASK_PAGES: Final[Mapping[str, TaskPage]] = {
    "detect": TaskPage({"model": TaskBundle("faces", "zoo:blazeface", "Faces")}, _PEOPLE),
    "cutout": TaskPage({"model": TaskBundle("cutout", "zoo:selfie", "People")}, _PEOPLE),
    "hands": TaskPage(
        {
            "model": TaskBundle("landmarks", "zoo:hands", "Hands", "float16"),
            "face": TaskBundle("landmarks", "zoo:face-mesh", "Faces", "float16"),
            "pose": TaskBundle("landmarks", "zoo:pose", "People", "float16"),
        },
        ("figure.jpg", "astronaut.jpg", "photographer.jpg"),
    ),
    "ocr": TaskPage({"model": TaskBundle("ocr", "zoo:ppocr-tiny", "Text")}, ("receipt.jpg", "letter.jpg")),
    "search": TaskPage({"model": TaskBundle("search", "zoo:minilm", "Sentences")}, _ASKED, "text"),
    "sounds": TaskPage(
        {
            "model": TaskBundle("voices", "zoo:silero-vad", "Voices"),
            "notes": TaskBundle("notes", "zoo:basic-pitch", "Notes"),
            "word": TaskBundle("wake-word", "zoo:okay-nabu", "“Okay Nabu”"),
        },
        ("talk.wav", "tune.wav", "call.wav"),
        "sound",
    ),
    "clean": TaskPage({"model": TaskBundle("denoise", "zoo:nsnet2", "Speech")}, ("fan.wav", "rain.wav"), "sound"),
    "speech": TaskPage(
        {
            "model": TaskBundle("speak", "zoo:joe", "A voice"),
            "hear": TaskBundle("transcribe", "zoo:whisper-tiny-en", "What is said", weights="q8_0"),
        },
        ("talk.wav",),
        "speech",
    ),
    "translate": TaskPage(
        {"model": TaskBundle("translate", "zoo:opus-mt-en-de", "English to German", weights="q8_0")},
        medium="translating",
    ),
}
"""A page's folder in the site ↦ the page."""
MODEL_MISSING: Final = "tasks/missing.html"
"""What stands in the place of a page if there is no model."""
_PAGE: Final = "task.html"
"""The name of a page where it is kept."""
_INDEX: Final = "index.html"
_RUNNER: Final = ("singe", _INDEX)
"""How the names of files begin that one bundle of a page has for the others too."""


def with_tasks(files: Mapping[str, Path], stamp: str, say: Say, wanted: Collection[str]) -> dict[str, Path]:
    """The site's files with all of these pages. Those that are not wanted, or whose models cannot be fetched, say so.
    stamp: of the sources."""
    found = {name: path for name, path in files.items() if name != MODEL_MISSING}
    for name, page in TASK_PAGES.items():
        try:
            if name not in wanted:
                raise BuildError("it is not among --tasks")
            found |= task_files(name, page, stamp, say)
        except (BuildError, sg.SingeError, OSError) as e:
            say(f"{name}: without its model, the page will say so. {e}")
            found[f"{name}/index.html"] = files[MODEL_MISSING]
    return found


def task_files(name: str, page: TaskPage, stamp: str, say: Say) -> dict[str, Path]:
    """One page, its bundles, and those of its samples that are made."""
    begun = time.perf_counter()

    def make(folder: Path) -> None:
        say(f"{name}: making the bundles …")
        for place, bundle in page.bundles.items():
            rounded: dict[str, Any] = {} if bundle.weights is None else {"weights": bundle.weights}
            task = sg.task(bundle.kind, bundle.model, **rounded)
            whole = _with_sentences(task) if bundle.kind == "search" else task
            sg.export(whole, folder / place, dtype=bundle.dtype, device="cpu")
        main, *others = page.bundles
        for path in (p for place in others for p in (folder / place).iterdir() if p.name.startswith(_RUNNER)):
            path.unlink() if path.name == _INDEX else path.replace(folder / main / path.name)
        (folder / _PAGE).write_bytes(_page(page, folder))

    kept = keep(f"{name}-{stamp}", make)
    bundled = (p for place in page.bundles for p in files_under(kept / place))
    found = {f"{name}/{p.relative_to(kept).as_posix()}": p for p in bundled}
    found |= _sounds([sample for sample in page.samples if sample.endswith(".wav")], say)
    say(f"{name}: {time.perf_counter() - begun:.1f} s")
    return found | {f"{name}/index.html": kept / _PAGE}


def sample_address(sample: str) -> str:
    """Where a file of SAMPLES is in the site."""
    return f"tasks/samples/{sample}"


def _page(page: TaskPage, folder: Path) -> bytes:
    main = next(iter(page.bundles))
    hints = links(f"./{main}/", [p.name for p in files_under(folder / main)], ["model.json"])
    choices = {f"./{place}/": bundle.name for place, bundle in page.bundles.items()} if len(page.bundles) > 1 else {}
    return own_page(
        PAGE_OF_MEDIUM[page.medium],
        f"{hints}\n{OFFLINE}",
        folder=f"./{main}/",
        site=BACK,
        samples=dict(_sample(sample) for sample in page.samples),
        choices=choices,
    )


def _sample(sample: str) -> tuple[str, str]:
    """What a sample's button gives to its page, and what it shows."""
    return (f"../{sample_address(sample)}", SAMPLES[sample]) if sample in SAMPLES else (sample, sample)


def _with_sentences(search: Any) -> Any:
    """A search that has the sentences of search/, whose vectors are in a file, as making them takes minutes."""
    folder = ROOT / "demos" / "search"
    made = module(folder, "sentences").sentences()
    facts = {"codes": "int8", "dimensions": 384, "texts": made}
    index = {"index.json": json.dumps(facts).encode(), "index.bin": (folder / "index.bin").read_bytes()}
    return sg.tasks.Task(search.model, search.info, {**search.files, **index})


def _sounds(samples: Sequence[str], say: Say) -> dict[str, Path]:
    """The samples that are sounds; they are made once."""
    if not samples:
        return {}

    def make(folder: Path) -> None:
        say("tasks: making the sounds …")
        module(HERE / "tasks", "sample_sounds").write(folder)

    digest = hashlib.sha256((HERE / "tasks" / "sample_sounds.py").read_bytes()).hexdigest()
    kept = keep(f"samples-{digest[:16]}", make)
    return {sample_address(sample): kept / sample for sample in samples}
