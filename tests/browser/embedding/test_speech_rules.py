"""How a text becomes sentences, phonemes and their numbers: JavaScript reads by Python's tables, and as Python does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from bundles import STATIC
from pages import node

from singe.speech.english import TABLES, English, read_dictionary
from singe.speech.english.letters import by_letters
from singe.speech.english.numbers import in_words
from singe.speech.piper import READING, VoiceDescription, sentences

TASKS: Final = (STATIC / "tasks").as_uri()
WORDS: Final = """;;; a comment
hello HH AH0 L OW1
world W ER1 L D
water W AO1 T ER0
test T EH1 S T # another
test(2) T AE1 S T
run R AH1 N
bake B EY1 K
church CH ER1 CH
end EH1 N D
apple AE1 P AH0 L
want W AA1 N T
"""
TEXTS: Final = (
    "Hello world, a test! The water (the end) — the apple.",
    "Dr. Smith and Mr. Two paid $12.50, £1.01, $1 or €2.3 million; e.g. 3.5 % of 1,234,567 & more.",
    "At 10:30, 7:00 or 6:05 on the 3rd, 12th, 20th and 101st of May 1984, in the 1900s, 2005 and 2020, 1700.",
    "-5 - 3 a-1 x.-2 1000000 1,000 100000000000000000 1000000000000000000000 007 00 $007.1",
    "Tests, runs, baked, wanted, ended, baking, running, churches, the world's, tests' worldly waters.",
    "Blorbing nation phake zzz rationality Quizzically thoughtfulness mnemonics gnarly psyches x",
    "USB NASA ABCDEF it’s IT'S OK? “Four.” He said: “wow!” (Really.) Wait...what?! … Yes",
    "naïve café Œuvre straße Łódź x² ½ ﬁn กำ 東京 😀 ١٢ ٣ one\u00a0two\u2003three\x1cfour\ufefffive\n\nNo. 5 is\tbest etc. Then, vs. Mr.\nX",
    "a  b ,, . ; !?! ... ",
    " ".join(f"{word.upper()}. {word.title()}., x{word}. X" for word in TABLES["numbers"]["short"]),
    "5".join((*TABLES["numbers"]["signs"], *TABLES["numbers"]["units"], "")),
    "",
)


def test_javascript_reads_english_as_python_does(tmp_path: Path) -> None:
    (tmp_path / "words").write_text(WORDS)
    english = English(read_dictionary(tmp_path / "words"))
    words = sorted({word for text in TEXTS for word in text.lower().split() if word.isascii() and word.isalpha()})
    body = f"""
    const {{ English }} = await import("{TASKS}/singe-task-speech-english.js");
    const english = new English(given.tables, given.words);
    const phonemes = given.texts.map((text) => english.phonemes(text));
    return [given.texts.map((text) => english.inWords(text)), phonemes, given.single.map((word) => english.byLetters(word))];
    """
    tables = json.loads(json.dumps(TABLES))
    found = node(body, tables=tables, words=WORDS, texts=list(TEXTS), single=words)
    assert found[0] == [in_words(text) for text in TEXTS]
    assert found[1] == [english.phonemes(text) for text in TEXTS]
    assert found[2] == [by_letters(word) for word in words]


def test_a_pattern_that_travels_has_the_form_of_what_stands_beside_letters() -> None:
    """Of other patterns one can take a time that grows with two to the power of a word's length, and letters that are none end nowhere."""
    stress = [
        [[pattern, 1]] for pattern in ("(a+)+$", "a?a?a", "(a|a)(a|b)", ".*.*", "(a.*|b)", "a{9}", "\\1", 5, None)
    ]
    rules = [[["(a+)+", "a", "", "AA"]], [["", "a", "(a|aa)+$", "AA"]], [["", "", "", "AA"]], [["", "a", "", None]]]
    changed = [{**TABLES["letters"], "stress": one} for one in stress] + [
        {**TABLES["letters"], "rules": one} for one in rules
    ]
    body = f"""
    const {{ English }} = await import("{TASKS}/singe-task-speech-english.js");
    const made = given.changed.map((letters) => failure(async () => new English({{ ...given.tables, letters }}, "")));
    return (await Promise.all(made)).map(({{ code, message }}) => [code, message]);
    """
    found = node(body, tables=json.loads(json.dumps(TABLES)), changed=changed)
    assert [code for code, _ in found] == ["format"] * len(changed)
    assert all("what travels with the voice has " in message and "export" in message for _, message in found)


def test_sentences_and_numbers_are_pythons() -> None:
    numbers = {"^": (1,), "$": (2,), "_": (0,), "a": (3,), " ": (4,), "ˈ": (5, 6), "😀": (7,)}
    voice = VoiceDescription(8000, numbers, "en", True, 0.5, 1.0, 0.8, {})
    signs = ["a ˈa", "", "b😀a" * 3, "a " * 700 + "a" * 1200]
    body = f"""
    const {{ Sentences, cut, idsOf }} = await import("{TASKS}/singe-task-speech.js");
    const said = (parts) => {{
      const sentences = new Sentences();
      return [...parts.flatMap((part) => sentences.push(part)), ...sentences.finish()];
    }};
    const ids = given.signs.map((signs) => idsOf({{ numbers: given.numbers }}, given.reading, Array.from(signs)));
    const parts = given.signs.map((signs) => cut(signs, given.reading.most).map((part) => part.length));
    return [given.texts.map((text) => said([text])), given.texts.map((text) => said(Array.from(text))), ids, parts];
    """
    found = node(body, reading=dict(READING), numbers=numbers, signs=signs, texts=list(TEXTS))
    wanted = [list(sentences([text])) for text in TEXTS]
    assert found[0] == wanted
    assert found[1] == wanted
    assert found[2:] == [[voice.ids(one) for one in signs], [[4], [], [9], [999, 400, 1000, 201]]]
    assert [list(sentences(text)) for text in TEXTS] == wanted
    assert wanted[1] == [TEXTS[1]]
