"""torchaudio's beam search reads our log-probabilities."""

import torch
from torchaudio.models.decoder import ctc_decoder

import srf
from conftest import SAMPLES


def test_the_text_is_ours():
    phones = srf.Recognizer("en-phones", endpoint=False)
    # It wants a name for every class; the padding class never occurs and stands for silence.
    tokens = ["<padding>", *phones.labels[1:-1], "<blank>"]
    decoder = ctc_decoder(
        lexicon=None, tokens=tokens, blank_token="<blank>", sil_token="<padding>", beam_size=100, beam_threshold=100, log_add=True
    )  # fmt: skip
    for name in SAMPLES:
        log_probs = torch.from_numpy(phones.log_probs(f"samples/{name}.wav"))
        best = decoder(log_probs[None])[0][0]
        found = [tokens[index] for index in best.tokens.tolist()]
        text = " ".join(token for token in found if not token.startswith("<"))
        assert text == phones.transcribe(f"samples/{name}.wav").text
