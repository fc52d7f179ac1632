"""The capsule layer as a PyTorch module: sequential routing in your own networks, at the speed of our kernels.

The forward and the backward pass run on the CPU in Rust, on all cores; float32 uses the fastest kernels of the
processor, float64 the scalar definition.

>>> import torch
>>> from srf.torch import SequentialRouting
>>> layer = SequentialRouting(in_capsules=6, in_depth=4, out_capsules=5, out_depth=3, window=(1, 1), iterations=2)
>>> slices = torch.randn(2, 10, 6, 4, requires_grad=True)  # utterances, slices, capsules, depth
>>> capsules = layer(slices, lengths=[10, 7])
>>> capsules.shape
torch.Size([2, 10, 5, 3])
>>> capsules.square().sum().backward()
>>> layer.weight.grad.shape == layer.weight.shape
True
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from . import _srf

__all__ = ["SequentialRouting"]

_ROUTERS = {torch.float32: _srf.Router32, torch.float64: _srf.Router64}

Lengths = Union[None, Tensor, Sequence[int]]


class SequentialRouting(nn.Module):
    """Routes the capsules of a window of slices to the capsules of a slice.

    Every input capsule of the window votes for every output capsule, `u = W x + b`, and routing by agreement decides
    how much each vote counts.

    `routing` is "sdr" (sequential dynamic routing: a slice starts from the outputs of the one before) or "dr" (dynamic
    routing: every slice starts from nothing). `window` are the slices before and after that are seen as well.
    `padding_class=True` makes output capsule 0 one that never gets a coupling, as in the last layer of the paper's
    networks, whose capsules are the classes. `through_time=False` and `through_iterations=False` cut the gradient.

    Input is `[utterances, slices, in_capsules, in_depth]`, output `[utterances, slices, out_capsules, out_depth]`.
    Slices beyond `lengths` count as zero and give zero.

    `weight` is `[window * in_capsules, out_capsules, out_depth, in_depth]`, `bias` the same without the last; input i is
    capsule h of slice k of the window, i = k * in_capsules + h, the oldest first.
    """

    def __init__(
        self,
        in_capsules: int,
        in_depth: int,
        out_capsules: int,
        out_depth: int,
        *,
        window: Tuple[int, int] = (0, 0),
        iterations: int = 1,
        routing: str = "sdr",
        padding_class: bool = False,
        through_time: bool = True,
        through_iterations: bool = True,
        device: Any = None,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        super().__init__()
        if routing not in ("sdr", "dr"):
            raise ValueError(f"routing is {routing!r}, expected 'sdr' or 'dr'")
        if min(window) < 0:
            raise ValueError(f"window is {tuple(window)}, expected two numbers of slices, 0 or more")
        self.window = (int(window[0]), int(window[1]))
        self.shape = {
            "in_capsules": in_capsules,
            "in_depth": in_depth,
            "out_capsules": out_capsules,
            "out_depth": out_depth,
            "window": sum(self.window) + 1,
            "iterations": iterations,
            "is_sequential": routing == "sdr",
            "has_padding_class": padding_class,
            "through_iterations": through_iterations,
            "through_time": through_time,
        }
        self._routers: dict = {}
        self._router(torch.float32)  # checks the shape
        n_inputs = self.shape["window"] * in_capsules
        like = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(n_inputs, out_capsules, out_depth, in_depth, **like))
        self.bias = nn.Parameter(torch.empty(n_inputs, out_capsules, out_depth, **like))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weights and biases from a normal distribution with standard deviation 0.1, as the recipes do."""
        nn.init.normal_(self.weight, std=0.1)
        nn.init.normal_(self.bias, std=0.1)

    def extra_repr(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in self.shape.items() if key != "window") + f", window={self.window}"

    def __getstate__(self) -> dict:
        # Routers are memory for computing; they are made again where they are needed.
        return {**self.__dict__, "_routers": {}}

    def _router(self, dtype: torch.dtype) -> Any:
        if dtype not in _ROUTERS:
            raise TypeError(f"capsules are {dtype}, expected torch.float32 or torch.float64")
        if dtype not in self._routers:
            self._routers[dtype] = _ROUTERS[dtype](self.shape)
        return self._routers[dtype]

    def forward(self, slices: Tensor, lengths: Lengths = None) -> Tensor:
        """The output capsules."""
        padded, each, router = self._inputs(slices, lengths)
        routed = _Route.apply(padded, self.weight, self.bias, router, each, slices.shape[1])
        return routed.view(*slices.shape[:2], self.shape["out_capsules"], self.shape["out_depth"])

    @torch.no_grad()
    def couplings(self, slices: Tensor, lengths: Lengths = None) -> Tensor:
        """The coupling coefficients, `[utterances, slices, window * in_capsules, out_capsules]`."""
        padded, each, router = self._inputs(slices, lengths)
        n_slices = slices.shape[1]
        parameters = [_flat(self.weight), _flat(self.bias)]
        _, _, couplings = router.forward(parameters, _flat(padded), each, n_slices, [False, True])
        n_inputs = self.shape["window"] * self.shape["in_capsules"]
        return torch.from_numpy(couplings).view(len(each), n_slices, n_inputs, self.shape["out_capsules"])

    def _inputs(self, slices: Tensor, lengths: Lengths) -> Tuple[Tensor, List[int], Any]:
        """Slices with zeros around them, how many there are of each utterance, and the router."""
        expected = (self.shape["in_capsules"], self.shape["in_depth"])
        if slices.dim() != 4 or tuple(slices.shape[2:]) != expected:
            raise ValueError(
                f"slices have the shape {tuple(slices.shape)}, expected (utterances, slices, {expected[0]}, {expected[1]})"
            )
        if slices.device.type != "cpu" or self.weight.device.type != "cpu":
            raise ValueError(f"slices are on {slices.device}, weights on {self.weight.device}, expected cpu for both")
        if slices.dtype != self.weight.dtype:
            raise TypeError(f"slices are {slices.dtype}, weights {self.weight.dtype}, expected one type")
        n_utterances, n_slices = slices.shape[:2]
        if n_slices == 0:
            raise ValueError("there are no slices")
        each = [n_slices] * n_utterances if lengths is None else [int(length) for length in lengths]
        if len(each) != n_utterances:
            raise ValueError(f"there are {len(each)} lengths for {n_utterances} utterances")
        if each and not 0 <= min(each) <= max(each) <= n_slices:
            raise ValueError(f"lengths are from {min(each)} to {max(each)}, expected 0 to {n_slices}")
        if lengths is not None:
            is_real = torch.arange(n_slices)[None, :] < torch.tensor(each)[:, None]
            slices = slices * is_real[:, :, None, None].to(slices.dtype)
        return F.pad(slices, (0, 0, 0, 0, *self.window)), each, self._router(slices.dtype)


class _Route(torch.autograd.Function):
    """Routing with its backward pass; the couplings of the forward pass are recomputed, not kept."""

    @staticmethod
    def forward(ctx: Any, padded: Tensor, weight: Tensor, bias: Tensor, router: Any, each: List[int], n: int) -> Tensor:
        has_backward = any(ctx.needs_input_grad)
        parameters = [_flat(weight), _flat(bias)]
        outputs, saved, _ = router.forward(parameters, _flat(padded), each, n, [has_backward, False])
        outputs = torch.from_numpy(outputs)
        if has_backward:
            ctx.save_for_backward(padded, weight, bias, outputs, torch.from_numpy(saved))
        ctx.router, ctx.each, ctx.n = router, each, n
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> Tuple[Optional[Tensor], ...]:
        padded, weight, bias, outputs, saved = ctx.saved_tensors
        values = [_flat(tensor) for tensor in (padded, outputs, saved, d_outputs)]
        gradients = ctx.router.backward([_flat(weight), _flat(bias)], values, ctx.each, ctx.n)
        shaped = [torch.from_numpy(g).view(like.shape) for g, like in zip(gradients, (padded, weight, bias))]
        return (*shaped, None, None, None)


def _flat(tensor: Tensor) -> Any:
    """The values as a flat numpy array; shared, not copied, if they are contiguous."""
    return tensor.detach().contiguous().view(-1).numpy()
