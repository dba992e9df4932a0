"""What several tests of the site use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prompts import Prompt
from sites import front_page


@pytest.fixture(scope="module")
def python_site(site: Path) -> Path:
    """The site, if it has Python's files."""
    if not (site / "python/start.js").exists():
        pytest.skip("the site was built without Python: its files cannot be had here")
    return site


@pytest.fixture(scope="module")
def started(browser: Any, python_site: Path, address: str) -> Iterator[Prompt]:
    """The Python prompt of the front page, started once: that takes longer than most tests of it. The page's console must have
    no errors at the end."""
    with front_page(browser, address) as page:
        yield Prompt(page)


@pytest.fixture
def prompt(started: Prompt) -> Prompt:
    """The prompt that tests share, at rest and with nothing on it; names that others defined stay."""
    started.empty()
    return started


@pytest.fixture
def own_prompt(browser: Any, python_site: Path, address: str) -> Iterator[Prompt]:
    """A prompt for a test that starts Python again or fills the log; its page's console must have no errors at the end."""
    with front_page(browser, address) as page:
        yield Prompt(page)
