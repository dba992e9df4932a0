"""The sounds of words that no dictionary has, by rules of their letters, as phonemes of the CMU dictionary."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

_V: Final = "[aeiouy]"
_C: Final = "[^aeiouy]"
_RULES: Final = rf"""
: augh : : AO
: au : : AO
: aw : : AO
: air : : EH R
: ai : : EY
: ay : : EY
: are : $ : EH R
: ar : {_V} : EH R
: ar : : AA R
: all : $ : AO L
: alk : : AO K
{_V}.* : age : $ : IH JH
: able : $ : AH B AH L
: a : {_C}e$ : EY
: a : {_C}(ing|ed|er|es|ion)$ : EY
{_V}.* : a : $ : AH
: a : $ : AA
: a : : AE
: bb : : B
m : b : $ :
: b : : B
: tch : : CH
: sch : : S K
: ch : [rl] : K
: ch : : CH
: ck : : K
: cc : [eiy] : K S
: cc : : K
: ci : [ao] : SH
: c : [eiy] : S
: c : : K
: dge : : JH
: dd : : D
: d : : D
: eau : : OW
: eigh : : EY
: eer : : IH R
: ear : : IH R
: ee : : IY
: ea : (d|th|lth)$ : EH
: ea : : IY
: ei : : IY
{_V}.* : ey : $ : IY
: ey : : EY
: ew : : UW
: eu : : Y UW
: ere : $ : IH R
: er : : ER
[td] : ed : $ : IH D
{_V}.*[pkfsxh] : ed : $ : T
{_V}.* : ed : $ : D
([sxz]|ch|sh) : es : $ : IH Z
{_V}.* : es : $ : Z
{_V}.* : e : $ :
: e : $ : IY
: e : {_C}e$ : IY
: e : : EH
: ff : : F
: f : : F
^ : gh : : G
: gh : :
^ : gn : : N
: gg : : G
: gu : [eiy] : G
: g : [eiy] : JH
: g : : G
: h : : HH
: igh : : AY
: ing : $ : IH NG
{_V}.* : ie : $ : IY
: ie : $ : AY
: ie : : IY
: ir : : ER
: io : [nu] : Y AH
: ia : : IY AH
: i : {_C}e$ : AY
: i : {_C}(ing|ed|er|es)$ : AY
: i : $ : IY
: i : : IH
: j : : JH
^ : kn : : N
: kk : : K
: k : : K
{_C} : le : $ : AH L
: ll : : L
: l : : L
: mm : : M
: m : : M
m : n : $ :
: ng : $ : NG
: ng : [aou] : NG G
: n : k : NG
: nn : : N
: n : : N
: oor : : AO R
: oo : k : UH
: oo : : UW
: ough : : AO
{_V}.* : ous : $ : AH S
: oul : d : UH
: our : : AO R
: ou : : AW
: ow : $ : OW
: ow : [nl]?$ : OW
: ow : : AW
: oy : : OY
: oi : : OY
: oa : : OW
: oe : $ : OW
: ore : $ : AO R
: or : : AO R
: o : ld : OW
: o : {_C}e$ : OW
: o : {_C}(ing|ed|er|es)$ : OW
: o : $ : OW
: o : : AA
: ph : : F
^ : ps : : S
: pp : : P
: p : : P
: qu : : K W
: q : : K
: rh : : R
: rr : : R
: r : : R
{_V} : sion : : ZH AH N
: sion : : SH AH N
{_V} : sure : $ : ZH ER
: sh : : SH
: ss : : S
{_V} : s : {_V} : Z
[bdglmnrvwy] : s : $ : Z
{_V} : s : $ : Z
: s : : S
: tion : : SH AH N
: tia : : SH AH
: ture : $ : CH ER
{_V} : th : er : DH
: th : : TH
: tt : : T
: t : : T
: ure : $ : Y UH R
: ur : : ER
: ue : $ : UW
: ui : : UW
: u : {_C}e$ : UW
: u : {_C}[aeio] : UW
: u : $ : UW
: u : : AH
: vv : : V
: v : : V
: wh : : W
^ : wr : : R
: w : : W
^ : x : : Z
: x : : K S
^ : y : {_V} : Y
{_V}.* : y : $ : IY
: y : $ : AY
: y : {_C}e$ : AY
: y : : IH
: zz : : Z
: z : : Z
"""
"""Rows of what stands before, the letters, what stands behind, and their sounds; the first that fits counts."""
_STRESS: Final = ((r"(ical|ity|ify|ial|ian|ious)s?$", 3), (r"(tion|sion|cian|ic)s?$", 2))
"""Endings ↦ which of the vowels, from the last, bears the stress; otherwise the first does."""


def _rows() -> Sequence[Sequence[str]]:
    return [[part.strip() for part in line.split(":")] for line in _RULES.strip().splitlines()]


TABLES: Final[Mapping[str, Any]] = {"rules": _rows(), "stress": _STRESS}
"""All that is data here, for a page, which reads as this does."""


@cache
def _compiled() -> Sequence[tuple[re.Pattern[str] | None, str, re.Pattern[str], Sequence[str]]]:
    return [
        (re.compile(f"(?:{before})$") if before else None, letters, re.compile(behind), sounds.split())
        for before, letters, behind, sounds in _rows()
    ]


def by_letters(word: str) -> list[str]:
    """The phonemes of a word in small letters; one of its vowels bears the stress."""
    sounds: list[str] = []
    at = 0
    while at < len(word):
        before = word[:at]
        for left, letters, right, made in _compiled():
            if (
                word.startswith(letters, at)
                and (left is None or left.search(before))
                and right.match(word[at + len(letters) :])
            ):
                sounds += made
                at += len(letters)
                break
        else:
            at += 1
    vowels = [k for k, sound in enumerate(sounds) if sound[0] in "AEIOU"]
    if not vowels:
        return sounds
    place = next((place for ending, place in _STRESS if re.search(ending, word)), len(vowels))
    stressed = vowels[-min(place, len(vowels))]
    return [f"{sound}{int(k == stressed)}" if k in vowels else sound for k, sound in enumerate(sounds)]
