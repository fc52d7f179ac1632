"""The capsule layer of `srf.torch` next to the layer written in PyTorch (xtask/peers/torch_baselines.py).

python bindings/python/benchmarks/routing.py [--threads 2] [--steps 5]
    forward and backward pass of the layers of SRF-7L (23 utterances of 75 slices): slices per second of the fastest
    step, and the largest difference of outputs and gradients between the two
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "xtask/peers"))

import torch
from torch import nn
from torch_baselines import CapsuleLayer

import srf
from srf.torch import SequentialRouting

UTTERANCES, SLICES, DEPTH, REACH = 23, 75, 8, 1
# Input and output capsules of the first, a middle and the last layer.
SHAPES = {"first": (30, 30), "middle": (30, 30), "last": (30, 63)}


def layers(n_in, n_out, is_last):
    """The same layer twice: ours, and the peer's without its norm and dropout."""
    peer = CapsuleLayer(n_in, DEPTH, n_out, DEPTH, REACH, is_last).eval()
    peer.norm = nn.Identity()
    ours = SequentialRouting(n_in, DEPTH, n_out, DEPTH, window=(REACH, REACH), padding_class=is_last)
    with torch.no_grad():
        ours.weight.copy_(peer.weight.unflatten(2, (DEPTH, n_out)).permute(0, 3, 2, 1))
        ours.bias.copy_(peer.bias.squeeze(1).unflatten(1, (DEPTH, n_out)).permute(0, 2, 1))
    return ours, peer


def step(layer, slices):
    """Output and gradient of the input, of the sum of squares."""
    slices = slices.detach().requires_grad_()
    output = layer(slices)
    output.square().sum().backward()
    return output.detach(), slices.grad


def fastest(layer, slices, n_steps):
    times = []
    for _ in range(n_steps + 1):
        start = time.perf_counter()
        step(layer, slices)
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    srf.set_threads(args.threads)
    print(f"kernels {srf.isa()}, PyTorch {torch.__version__}, {args.threads} threads")
    for name, (n_in, n_out) in SHAPES.items():
        ours, peer = layers(n_in, n_out, name == "last")
        slices = torch.randn(UTTERANCES, SLICES, n_in, DEPTH)
        by_slice = slices.transpose(0, 1)
        found, expected = step(ours, slices), [value.transpose(0, 1) for value in step(peer, by_slice)]
        differences = [((a - b).abs().max() / b.abs().max()).item() for a, b in zip(found, expected)]
        assert max(differences) < 1e-3, f"{name}: outputs and gradients differ by {differences}"
        seconds = [fastest(layer, x, args.steps) for layer, x in ((ours, slices), (peer, by_slice))]
        rates = [UTTERANCES * SLICES / s for s in seconds]
        print(
            f"{name:>6} layer, {n_in} to {n_out} capsules: srf.torch {rates[0]:9.0f} slices per second, PyTorch {rates[1]:9.0f}, "
            f"{rates[0] / rates[1]:.1f} times; largest relative difference {max(differences):.1e}"
        )


if __name__ == "__main__":
    main()
