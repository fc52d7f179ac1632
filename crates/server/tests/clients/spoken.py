"""A recording as a microphone plays it: with quiet noise before and after, because no room is silent.

usage: spoken.py RECORDING OUTPUT
"""

import array
import random
import sys
import wave

BEFORE_S, AFTER_S, LOUDNESS = 1.0, 1.6, 4

random.seed(1)
with wave.open(sys.argv[1], "rb") as recording:
    rate = recording.getframerate()
    samples = array.array("h", recording.readframes(recording.getnframes()))


def quiet(seconds):
    return [random.randint(-LOUDNESS, LOUDNESS) for _ in range(int(seconds * rate))]


with wave.open(sys.argv[2], "wb") as output:
    output.setparams((1, 2, rate, 0, "NONE", None))
    output.writeframes(array.array("h", quiet(BEFORE_S) + samples.tolist() + quiet(AFTER_S)).tobytes())
