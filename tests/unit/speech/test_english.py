"""How English is read: numbers as words, words as phonemes, sentences of a text that comes in parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from singe.errors import FormatError
from singe.speech.english import English, read_dictionary
from singe.speech.english.letters import by_letters
from singe.speech.english.numbers import in_words, ordinal, year
from singe.speech.piper import sentences


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Dr. Smith paid $12.50.", "doctor Smith paid twelve dollars and fifty cents."),
        ("$1", "one dollar"),
        ("£2.3 million", "two point three million pounds"),
        ("at 10:30, 7:00 or 6:05", "at ten thirty, seven o'clock or six oh five"),
        ("the 3rd of May, 1984", "the third of May, nineteen eighty four"),
        ("1900s, 2005, 2020", "nineteen hundreds, two thousand five, twenty twenty"),
        ("3.14 and -5 of 1,234,567", "three point one four and minus five of one million two hundred thirty four thousand five hundred sixty seven"),
        ("50% & more", "fifty percent and more"),
        ("1000000000000000000000", "one zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero"),
    ],
)  # fmt: skip
def test_figures_and_signs_become_words(text: str, words: str) -> None:
    assert in_words(text) == words


def test_ordinals_and_years() -> None:
    assert [ordinal(k) for k in (1, 2, 12, 20, 21, 100)] == [
        "first",
        "second",
        "twelfth",
        "twentieth",
        "twenty first",
        "one hundredth",
    ]
    assert [year(k) for k in (1066, 1905, 2000, 2009, 2010)] == [
        "ten sixty six", "nineteen oh five", "two thousand", "two thousand nine", "twenty ten",
    ]  # fmt: skip


def _english(tmp_path: Path) -> English:
    words = "hello HH AH0 L OW1\nworld W ER1 L D\nwater W AO1 T ER0\ntest T EH1 S T # a comment\ntest(2) T AE1 S T\nrun R AH1 N\nend EH1 N D\n"
    (tmp_path / "words").write_text(words)
    return English(read_dictionary(tmp_path / "words"))


def test_a_text_becomes_signs_with_stress_and_weak_forms(tmp_path: Path) -> None:
    english = _english(tmp_path)
    assert english.phonemes("Hello world, a test!") == "həlˈoʊ wˈɜːld, ɐ tˈɛst!"
    assert english.phonemes("The water (the end)") == "ðə wˈɔːɾɚ, ðɪ ˈɛnd,"
    assert english.phonemes("tests, runs") == "tˈɛsts, ɹˈʌnz"
    assert english.phonemes("USB") == "jˈuːˈɛsbˈiː"


def test_words_of_no_dictionary_are_read_by_their_letters() -> None:
    assert by_letters("blorbing") == ["B", "L", "AO1", "R", "B", "IH0", "NG"]
    assert by_letters("nation")[-3:] == ["SH", "AH0", "N"]
    assert by_letters("phake") == ["F", "EY1", "K"]
    assert by_letters("zzz") == ["Z", "Z"]


def test_accents_are_left_out_and_other_scripts_are_told(caplog: pytest.LogCaptureFixture) -> None:
    english = English({"cafe": "K AH0 F EY1"})
    assert english.phonemes("Café, œuvre") == english.phonemes("Cafe, oeuvre")
    assert not caplog.records
    assert english.phonemes("cafe 日本!") == english.phonemes("cafe!")
    assert "'日本' is left out: it has no letters of English" in caplog.text


def test_sentences_come_as_soon_as_the_next_one_begins() -> None:
    text = "One. Mr. Two is here! Three? “Four.” Five"
    expected = ["One.", "Mr. Two is here!", "Three?", "“Four.”", "Five"]
    assert list(sentences([text])) == expected
    assert list(sentences(text)) == expected
    assert list(sentences(["", " \n", "..."])) == ["..."]


def test_a_damaged_dictionary_is_refused(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("hello HH AH0 L OW1\nworld 12\n")
    with pytest.raises(FormatError, match="line 2"):
        read_dictionary(tmp_path / "words")
