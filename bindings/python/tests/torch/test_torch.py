"""`srf.torch`: gradients against finite differences, and equality with the vectors of the authors' code."""

import doctest
import json
import pickle
import struct

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import srf.torch
from conftest import ROOT
from srf.torch import SequentialRouting

GOLDEN = sorted((ROOT / "crates/model/tests/golden").glob("srf_*.safetensors"))


def read_golden(path):
    """Metadata, and tensors as float64 (or integers)."""
    data = path.read_bytes()
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + n])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = (8 + n + offset for offset in entry["data_offsets"])
            array = np.frombuffer(data[start:end], dtype={"F32": "<f4", "I32": "<i4"}[entry["dtype"]])
            tensor = torch.tensor(array).reshape(entry["shape"])
            tensors[name] = tensor.double() if entry["dtype"] == "F32" else tensor
    return header["__metadata__"], tensors


@pytest.mark.parametrize("routing", ["sdr", "dr"])
@pytest.mark.parametrize("iterations", [1, 2, 3])
@pytest.mark.parametrize("window", [(0, 0), (1, 1), (2, 0)])
@pytest.mark.parametrize("padding_class", [False, True])
def test_gradients_agree_with_finite_differences(routing, iterations, window, padding_class):
    torch.manual_seed(1)
    layer = SequentialRouting(
        3, 2, 4, 3, window=window, iterations=iterations, routing=routing, padding_class=padding_class, dtype=torch.float64
    )
    with torch.no_grad():
        layer.weight.mul_(5)
    slices = torch.randn(2, 5, 3, 2, dtype=torch.float64, requires_grad=True)

    def route(slices, weight, bias):
        parameters = {"weight": weight, "bias": bias}
        return torch.func.functional_call(layer, parameters, (slices, [5, 3]))

    assert torch.autograd.gradcheck(route, (slices, layer.weight, layer.bias), eps=1e-6, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("path", [path for path in GOLDEN if b"mid.primary_ln" in path.read_bytes()], ids=lambda path: path.stem)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_vectors_of_the_authors_code(path, dtype):
    """The capsule layers of a network from its primary capsules to the loss, and the gradients of their weights."""
    meta, golden = read_golden(path)
    number = lambda key: int(meta[key])
    lengths = golden["out.logit_len"]
    x = golden["mid.primary_ln"].to(dtype).requires_grad_()
    sizes = [(number("P_H"), number("P_D"))]
    sizes += [(number("M_H"), number("M_D"))] * (number("L") - 1) + [(number("V"), number("V_D"))]
    layers, capsules = [], x.unflatten(2, sizes[0])
    for index, (before, after) in enumerate(zip(sizes, sizes[1:])):
        name = f"caps{index + 1}"
        layer = SequentialRouting(
            *before, *after, window=(number("wl"), number("wr")), iterations=number("iters"), routing=meta["routing"].lower(),
            padding_class=index + 2 == len(sizes), dtype=dtype,
        )  # fmt: skip
        layer.load_state_dict({"weight": golden[f"w.{name}.W"], "bias": golden[f"w.{name}.b"]})
        layers.append(layer)
        routed = layer(capsules, lengths).flatten(2)
        for u, n in enumerate(lengths):
            assert torch.allclose(routed[u, :n].double(), golden[f"mid.{name}.routed"][u, :n], atol=2e-5, rtol=1e-4)
        norm = [golden[f"w.ln_{name}.{part}"].to(dtype) for part in ("gamma", "beta")]
        capsules = F.layer_norm(routed, routed.shape[2:], *norm, eps=1e-3).unflatten(2, after)
    lengths_of_capsules = (capsules.square().sum(3) + 1e-7).sqrt()
    norm = [golden[f"w.ln_out.{part}"].to(dtype) for part in ("gamma", "beta")]
    logits = F.layer_norm(lengths_of_capsules, lengths_of_capsules.shape[2:], *norm, eps=1e-3)
    log_probs = logits.log_softmax(2).transpose(0, 1)
    losses = F.ctc_loss(
        log_probs, golden["in.labels"], lengths, golden["in.label_len"], blank=number("blank"), reduction="none"
    )
    assert torch.allclose(losses.double(), golden["out.loss_per_utt"], rtol=1e-4)
    losses.mean().backward()
    for index, layer in enumerate(layers):
        for ours, name in ((layer.weight, "W"), (layer.bias, "b")):
            theirs = golden[f"g.caps{index + 1}.{name}"]
            assert (ours.grad.double() - theirs).abs().max() < 2e-4 * theirs.abs().max()


def test_slices_beyond_the_lengths_do_not_count():
    torch.manual_seed(2)
    layer = SequentialRouting(6, 4, 5, 3, window=(1, 1))
    slices = torch.randn(3, 9, 6, 4)
    together = layer(slices, torch.tensor([9, 4, 1]))
    for u, n in enumerate([9, 4, 1]):
        alone = layer(slices[u : u + 1, :n])
        assert torch.equal(together[u : u + 1, :n], alone) and not together[u, n:].any()


def test_couplings_sum_to_one():
    layer = SequentialRouting(6, 4, 5, 3, window=(1, 0), iterations=2, padding_class=True)
    couplings = layer.couplings(torch.randn(2, 7, 6, 4))
    assert couplings.shape == (2, 7, 12, 5)
    assert torch.allclose(couplings.sum(3), torch.ones(2, 7, 12)) and not couplings[..., 0].any()


def test_a_network_with_the_layer_learns():
    torch.manual_seed(3)
    layer = SequentialRouting(4, 4, 3, 4, window=(1, 1))
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    slices, classes = torch.randn(8, 12, 4, 4), torch.randint(0, 3, (8, 12))
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = F.cross_entropy(10 * layer(slices).norm(dim=3).flatten(0, 1), classes.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_it_can_be_saved_and_copied():
    layer = SequentialRouting(4, 4, 3, 4)
    slices = torch.randn(1, 5, 4, 4)
    again = pickle.loads(pickle.dumps(layer))
    assert torch.equal(again(slices), layer(slices))
    assert "routing" in repr(layer) or "is_sequential=True" in repr(layer)


def test_wrong_input_says_what_was_expected():
    layer = SequentialRouting(4, 4, 3, 4)
    with pytest.raises(ValueError, match=r"expected \(utterances, slices, 4, 4\)"):
        layer(torch.randn(1, 5, 4, 5))
    with pytest.raises(TypeError, match="expected one type"):
        layer(torch.randn(1, 5, 4, 4, dtype=torch.float64))
    with pytest.raises(ValueError, match="expected 0 to 5"):
        layer(torch.randn(1, 5, 4, 4), [6])
    with pytest.raises(ValueError, match="routing is 'em', expected 'sdr' or 'dr'"):
        SequentialRouting(4, 4, 3, 4, routing="em")
    with pytest.raises(srf.Error, match="at least 1"):
        SequentialRouting(4, 4, 3, 0)
    with pytest.raises(TypeError, match="expected torch.float32 or torch.float64"):
        SequentialRouting(4, 4, 3, 4, dtype=torch.bfloat16)(torch.randn(1, 5, 4, 4, dtype=torch.bfloat16))


def test_examples_in_docstrings_run():
    failed, attempted = doctest.testmod(srf.torch)
    assert attempted > 0 and failed == 0
