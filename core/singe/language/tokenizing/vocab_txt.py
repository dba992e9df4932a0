"""The tokenizer of a `vocab.txt`, BERT's words, one a line, as the values of a `tokenizer.json`."""

from __future__ import annotations

from typing import Any, Final

from ...errors import FormatError

UNKNOWN, FIRST, LAST = "[UNK]", "[CLS]", "[SEP]"
_MARKS: Final = ("[PAD]", UNKNOWN, FIRST, LAST, "[MASK]")


def vocab_txt_values(data: bytes, place: str, lowercase: bool = True) -> dict[str, Any]:
    """lowercase: whether texts become small letters without accents, as `do_lower_case` of a `tokenizer_config.json` says."""
    try:
        words = data.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n").split("\n")
    except UnicodeDecodeError as e:
        raise FormatError(f"{place}: expected UTF-8 text, a word on each line: {e}") from None
    ids = {word: k for k, word in enumerate(words)}
    lacking = [mark for mark in (UNKNOWN, FIRST, LAST) if mark not in ids]
    if lacking:
        raise FormatError(f"{place}: {len(ids)} words without {' and '.join(lacking)}; expected the words of BERT")
    first, last = [FIRST, ids[FIRST]], [LAST, ids[LAST]]
    return {
        "added_tokens": [
            {"id": ids[mark], "content": mark, "special": True, "normalized": False} for mark in _MARKS if mark in ids
        ],
        "normalizer": {"type": "BertNormalizer", "lowercase": lowercase},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "cls": first, "sep": last},
        "decoder": {"type": "WordPiece"},
        "model": {"type": "WordPiece", "vocab": ids, "unk_token": UNKNOWN},
    }
