#!/usr/bin/env python3
"""Makes the text of the language model of models/en: one sentence per line, lower case, words only.

    recipes/en/texts.py --books GUTENBERG --held-out dev.jsonl --held-out test.jsonl --out english.txt

GUTENBERG is a folder of plain-text books of Project Gutenberg (any depth). Held-out manifests are the transcripts that
the language model must not have seen: a book in which many sentences share a run of eight words with them is left out
whole, and so is every single such sentence of the other books. What was left out is printed. `--every 3` takes a third
of the books.
"""

import argparse
import hashlib
import json
import pathlib
import re
import unicodedata

RUN = 8
# A book that was read aloud shares hundreds of sentences; proverbs and quotations give a few.
MAX_SHARED = 8

START = re.compile(r"\*\*\* ?START OF (?:THE|THIS) PROJECT GUTENBERG.*")
END = re.compile(r"\*\*\* ?END OF (?:THE|THIS) PROJECT GUTENBERG.*|^End of (?:the )?Project Gutenberg.*", re.M)
# Points after titles do not end a sentence.
TITLE = re.compile(r"\b(Mr|Mrs|Ms|Dr|St|Capt|Col|Gen|Rev|Hon|Prof|Messrs|Mme|Mlle|M|[A-Z])\.(?=\s)")
SENTENCE_END = re.compile(r"[.!?;:]+[\"'”’)\]]*\s+|\n\s*\n")
WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
SPELLED = {"mr": "mister", "mrs": "missus", "dr": "doctor", "st": "saint", "capt": "captain", "col": "colonel"}


def words(sentence):
    plain = sentence.replace("’", "'").replace("‘", "'").replace("_", " ")
    if not plain.isascii():
        plain = unicodedata.normalize("NFKD", plain)
        plain = "".join(c for c in plain if not unicodedata.combining(c))
    return [SPELLED.get(word, word) for word in WORD.findall(plain.lower())]


def body(text):
    """The book without the header and the licence that Project Gutenberg adds."""
    start = START.search(text)
    text = text[start.end() :] if start else text
    end = END.search(text)
    return text[: end.start()] if end else text


def sentences(text):
    text = TITLE.sub(r"\1", body(text.replace("\r\n", "\n")))
    for sentence in SENTENCE_END.split(text):
        # Tables, contents and formulas are no prose.
        if not any(c.isdigit() for c in sentence):
            found = words(sentence)
            if 2 <= len(found) <= 100:
                yield found


def runs(sentence):
    return (" ".join(sentence[i : i + RUN]) for i in range(len(sentence) - RUN + 1))


def held_out_runs(manifests):
    found = set()
    for manifest in manifests:
        for line in manifest.read_text(encoding="utf-8").splitlines():
            found.update(runs(words(json.loads(line)["sentence"])))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--books", type=pathlib.Path, required=True)
    parser.add_argument("--held-out", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    held_out = held_out_runs(args.held_out)
    seen_books, seen_sentences = set(), set()
    n_books = n_words = n_sentences_out = 0
    with args.out.open("w", encoding="utf-8") as out:
        for path in sorted(args.books.rglob("*.txt"))[:: args.every]:
            book = list(sentences(path.read_bytes().decode("utf-8", errors="replace")))
            digest = hashlib.blake2b(repr(book[:50]).encode()).digest()
            if not book or digest in seen_books:
                continue
            seen_books.add(digest)
            own = [sentence for sentence in book if not any(run in held_out for run in runs(sentence))]
            shared = len(book) - len(own)
            if shared > MAX_SHARED:
                print(f"left out: {path.relative_to(args.books)} shares {shared} sentences", flush=True)
                continue
            n_books += 1
            n_sentences_out += shared
            for sentence in own:
                line = " ".join(sentence)
                # Collections repeat whole books: a long sentence counts once.
                if len(sentence) > RUN:
                    key = hash(line)
                    if key in seen_sentences:
                        continue
                    seen_sentences.add(key)
                n_words += len(sentence)
                out.write(line + "\n")
    print(f"{n_books} books, {n_words} words; {n_sentences_out} sentences left out of them")


if __name__ == "__main__":
    main()
