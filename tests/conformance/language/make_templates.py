"""Makes `templates.json.gz`: `python make_templates.py`, with `transformers` installed (not Singe's).

Each case has the text that transformers' own environment of Jinja makes, or null where it refuses.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from template_cases import CONVERSATIONS, SNIPPETS, TEMPLATES, VALUES
from transformers.utils.chat_template_utils import _compile_jinja_template

PATH = Path(__file__).with_name("templates.json.gz")


def rendered(source: str, values: dict[str, Any]) -> str | None:
    """What transformers prints."""
    try:
        return _compile_jinja_template(source).render(**values)
    except Exception:
        return None


def main() -> None:
    plain = {"documents": None, "tools": None, "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True}
    snippets = [
        {"source": s, "extra": VALUES, "messages": [], "text": rendered(s, {**plain, "messages": [], **VALUES})}
        for s in SNIPPETS
    ]
    chats = [
        {"source": source, **chat, "text": rendered(source, {**plain, **chat})}
        for source in TEMPLATES.values()
        for chat in CONVERSATIONS
    ]
    data = json.dumps({"snippets": snippets, "chats": chats}, ensure_ascii=False, separators=(",", ":")).encode()
    PATH.write_bytes(gzip.compress(data, 9, mtime=0))
    refused = sum(case["text"] is None for case in (*snippets, *chats))
    print(f"{PATH.name}: {PATH.stat().st_size} bytes, {len(snippets)} + {len(chats)} cases, {refused} refused")


if __name__ == "__main__":
    main()
