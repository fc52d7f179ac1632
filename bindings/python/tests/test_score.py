"""Scores: sclite's counts, next to jiwer's and kaldialign's."""

import random

import jiwer
import kaldialign
import pytest

import srf

WORDS = "the cat sat on a mat and the dog ran to see what it was".split()


def corpus(n, seed=1):
    """References, and hypotheses with errors of every kind."""
    chance = random.Random(seed)
    references, hypotheses = [], []
    for _ in range(n):
        reference = [chance.choice(WORDS) for _ in range(chance.randint(1, 15))]
        hypothesis = []
        for word in reference:
            kind = chance.random()
            if 0.08 < kind:
                hypothesis.append(chance.choice(WORDS) if kind < 0.16 else word)
            if 0.95 < kind:
                hypothesis.append(chance.choice(WORDS))
        references.append(" ".join(reference))
        hypotheses.append(" ".join(hypothesis))
    return references, hypotheses


def test_counts_are_those_of_the_command(command, tmp_path):
    references, hypotheses = corpus(50)
    for name, texts in [("ref", references), ("hyp", hypotheses)]:
        (tmp_path / name).write_text("".join(f"{text} (ann-{i})\n" for i, text in enumerate(texts)))
    for unit in ["word", "char", "phone"]:
        printed = command("-q", "score", tmp_path / "ref", tmp_path / "hyp", "--unit", unit).stdout
        assert str(srf.score(references, hypotheses, unit=unit)) == printed.splitlines()[0]
        assert str(srf.score(tmp_path / "ref", tmp_path / "hyp", unit=unit)) == printed.splitlines()[0]


def test_the_peers_agree():
    """The peers count the fewest errors; sclite's costs (4 for a substitution, 3 for others) rarely allow more."""
    references, hypotheses = corpus(500)
    ours = srf.score(references, hypotheses)
    theirs = jiwer.process_words(references, hypotheses)
    fewest = theirs.substitutions + theirs.deletions + theirs.insertions
    pairs = [(a.split(), b.split()) for a, b in zip(references, hypotheses)]
    distances = [kaldialign.edit_distance(a, b)["total"] for a, b in pairs]
    assert sum(distances) == fewest
    assert fewest <= ours.n_errors <= 1.01 * fewest
    assert ours.n_reference == sum(len(a) for a, _ in pairs)
    # Where the alignments are unique, they are the same.
    for (_, aligned), (a, b) in zip(ours.alignments(), pairs):
        errors = sum(verdict != "correct" for _, _, verdict in aligned)
        assert errors >= kaldialign.edit_distance(a, b)["total"]
        assert [reference for reference, _, _ in aligned if reference] == a
        assert [hypothesis for _, hypothesis, _ in aligned if hypothesis] == b


def test_intervals_hold_the_rate_and_depend_on_the_seed_only():
    references, hypotheses = corpus(200)
    result = srf.score(references, hypotheses)
    low, high = result.interval()
    assert low < result.rate < high
    assert result.interval() == (low, high)
    assert result.interval(seed=3) != (low, high)


def test_sclite_s_forms_are_read():
    assert srf.score(["{ um / uh / @ } Yes"], ["yes"]).n_errors == 0
    assert srf.score(["(uh) yes"], ["yes"], optional_words=True).n_errors == 0
    assert srf.score(["Yes"], ["yes"], case_sensitive=True).n_errors == 1
    assert srf.score(["h# sh ix hv eh dcl"], ["pau sh ih hh eh vcl"], fold=39).n_errors == 0
    assert srf.score([""], ["a"]).rate is None


def test_speakers_and_confusions():
    result = srf.score({"ann-1": "a b c", "bob-1": "a b"}, {"bob-1": "a x", "ann-1": "a x c"})
    assert sorted(result.speakers()) == [("ann", 1, 3), ("bob", 1, 2)]
    assert result.confusions() == [("b", "x", 2)]
    assert [id for id, _ in result.alignments()] == ["bob-1", "ann-1"], "in the order of the hypotheses"
    assert (result.n_utterances, result.n_wrong) == (2, 2)


def test_what_is_missing_is_refused_unless_said_otherwise():
    references = {"ann-1": "a b", "ann-2": "c"}
    with pytest.raises(srf.Error, match="lacks 1 of 2 utterances, the first is `ann-2`"):
        srf.score(references, {"ann-1": "a b"})
    assert srf.score(references, {"ann-1": "a b"}, missing="all").deletions == 1
    assert srf.score(references, {"ann-1": "a b"}, missing="present").n_reference == 2
    with pytest.raises(srf.Error, match="unit is `letter`, expected word, char or phone"):
        srf.score(references, references, unit="letter")
    with pytest.raises(srf.Error, match="has a line break"):
        srf.score(["a\nb"], ["a b"])
    with pytest.raises(TypeError, match="`hypotheses` has a int"):
        srf.score(["a"], [1])


def test_compare_finds_the_better_system(command, tmp_path):
    import json

    references, worse = corpus(300)
    better = [reference if i % 2 else hypothesis for i, (reference, hypothesis) in enumerate(zip(references, worse))]
    ids = [f"s{i % 7}-{i}" for i in range(len(references))]
    named = [dict(zip(ids, texts)) for texts in (references, worse, better)]
    found = srf.compare(*named, replications=200)
    assert {test["winner"] for test in found["tests"].values()} == {"b"}
    for name, texts in zip(["ref", "a", "b"], named):
        (tmp_path / name).write_text("".join(f"{text} ({id})\n" for id, text in texts.items()))
    printed = command("compare", tmp_path / "ref", tmp_path / "a", tmp_path / "b", "--replications", 200, "--json").stdout
    expected = json.loads(printed)["comparisons"][0]
    assert found["rate_a"] == expected["rate_a"] and found["difference"] == expected["difference"]
    assert [test["p"] for test in found["tests"].values()] == [test["p"] for test in expected["tests"]]
