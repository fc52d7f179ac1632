"""`srf.score` next to jiwer and kaldialign on the same texts, in one run.

python bindings/python/benchmarks/scoring.py [--words 1000000]
    seconds (the fastest of three) and errors of each; jiwer and kaldialign count the fewest errors, sclite's costs can
    count a few more
"""

import argparse
import random
import time

import jiwer
import kaldialign

import srf

VOCABULARY = [f"w{index}" for index in range(5000)]


def corpus(n_words):
    chance = random.Random(1)
    references, hypotheses = [], []
    while n_words > 0:
        reference = chance.choices(VOCABULARY, k=chance.randint(5, 30))
        kept = [word for word in reference if chance.random() > 0.05]
        hypothesis = [chance.choice(VOCABULARY) if chance.random() < 0.1 else word for word in kept]
        references.append(" ".join(reference))
        hypotheses.append(" ".join(hypothesis))
        n_words -= len(reference)
    return references, hypotheses


def by_srf(references, hypotheses):
    return srf.score(references, hypotheses).n_errors


def by_jiwer(references, hypotheses):
    counts = jiwer.process_words(references, hypotheses)
    return counts.substitutions + counts.deletions + counts.insertions


def by_kaldialign(references, hypotheses):
    return sum(kaldialign.edit_distance(a.split(), b.split())["total"] for a, b in zip(references, hypotheses))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", type=int, default=1_000_000)
    texts = corpus(parser.parse_args().words)
    for name, score in (("srf", by_srf), ("jiwer", by_jiwer), ("kaldialign", by_kaldialign)):
        times = []
        for _ in range(3):
            start = time.perf_counter()
            n_errors = score(*texts)
            times.append(time.perf_counter() - start)
        print(f"{name:>10}: {min(times):6.2f} s, {n_errors} errors")


if __name__ == "__main__":
    main()
