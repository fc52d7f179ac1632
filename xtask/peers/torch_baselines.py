"""The networks of `srf bench` in PyTorch, on the same work.

python xtask/peers/torch_baselines.py srf7 --threads 2 --steps 10
    a training step (forward, CTC, backward, Adam) of 23 utterances of 300 frames: frames per second of the fastest step
python xtask/peers/torch_baselines.py srf7 --decode --threads 1
    the forward pass of one utterance of 300 frames
--cpu measures CPU time instead of elapsed time.
"""
import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F

N, T, FEATURES = 23, 300, 123


class Slicer(nn.Module):
    """The two strided maxout convolutions with batch norms."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 128, 3, 2, 1), nn.BatchNorm2d(64)
        self.conv2, self.bn2 = nn.Conv2d(64, 128, 3, 2, 1), nn.BatchNorm2d(64)

    def forward(self, x):
        x = x.unsqueeze(1)
        for conv, norm in ((self.conv1, self.bn1), (self.conv2, self.bn2)):
            x = norm(F.dropout(conv(x), 0.2, self.training).unflatten(1, (2, 64)).amax(1))
        return x


def flat(x):
    return x.permute(0, 2, 3, 1).flatten(2)


def squash(x, dim):
    square = x.square().sum(dim, keepdim=True)
    return x * (square + 1e-7).sqrt() / (1 + square)


class CapsuleLayer(nn.Module):
    """Sequential dynamic routing with one iteration.

    Votes of all slices come from one batched product per layer. They are stored with the output capsules as the last
    axis, so that agreement, softmax and weighted sum run over contiguous memory.
    """

    def __init__(self, n_in, depth_in, n_out, depth_out, reach, is_last):
        super().__init__()
        self.reach, self.is_last, self.shape = reach, is_last, (depth_out, n_out)
        n_inputs = n_in * (2 * reach + 1)
        self.weight = nn.Parameter(0.1 * torch.randn(n_inputs, depth_in, depth_out * n_out))
        self.bias = nn.Parameter(0.1 * torch.randn(n_inputs, 1, depth_out * n_out))
        self.norm = nn.LayerNorm(n_out * depth_out)

    def votes(self, x):
        """[slices, utterances, capsules, depth] to [slices, utterances, depth out, inputs, capsules out]."""
        n_slices, n_utterances = x.shape[:2]
        padded = F.pad(x, (0, 0, 0, 0, 0, 0, self.reach, self.reach))
        window = padded.unfold(0, 2 * self.reach + 1, 1).movedim(-1, 2)
        inputs = window.reshape(n_slices * n_utterances, -1, x.shape[3]).transpose(0, 1)
        votes = torch.baddbmm(self.bias, inputs, self.weight)
        return votes.view(-1, n_slices, n_utterances, *self.shape).permute(1, 2, 3, 0, 4).contiguous()

    def forward(self, x):
        votes = self.votes(x)
        output, outputs = votes.new_zeros(votes.shape[1], *self.shape), []
        for vote in votes.unbind():
            agreement = (vote * output[:, :, None]).sum(1)
            if self.is_last:  # the padding class takes no part in the routing
                coupling = F.pad(agreement[..., 1:].softmax(-1), (1, 0))
            else:
                coupling = agreement.softmax(-1)
            output = squash((vote * coupling[:, None]).sum(2), 1)
            outputs.append(output)
        x = self.norm(torch.stack(outputs).transpose(2, 3).flatten(2))
        return F.dropout(x, 0.1, self.training).unflatten(2, self.shape[::-1])


class Srf(nn.Module):
    def __init__(self, classes, layers, primary, hidden, depth, reach):
        super().__init__()
        self.slicer, self.proj = Slicer(), nn.Linear(31 * 64, primary)
        self.encaps = nn.Conv2d(1, 2 * depth, 3, 1, 1)
        self.ln_in, self.ln_out = nn.LayerNorm(primary * depth), nn.LayerNorm(classes)
        heights = [primary] + [hidden] * (layers - 1) + [classes]
        pairs = list(zip(heights, heights[1:]))
        self.capsules = nn.ModuleList(
            CapsuleLayer(n_in, depth, n_out, depth, reach, index + 1 == layers) for index, (n_in, n_out) in enumerate(pairs)
        )

    def forward(self, x):
        x = self.proj(flat(self.slicer(x))).unsqueeze(1)
        x = F.dropout(self.encaps(x), 0.2, self.training).unflatten(1, (2, -1)).amax(1)
        x = squash(x.permute(2, 0, 3, 1), 3)  # [slices, utterances, capsules, depth]
        x = F.dropout(self.ln_in(x.flatten(2)), 0.1, self.training).view_as(x)
        for layer in self.capsules:
            x = layer(x)
        return self.ln_out((x.square().sum(3) + 1e-7).sqrt()).transpose(0, 1)


class Lstm(nn.Module):
    def __init__(self, classes, layers, cells, both, average, front_end):
        super().__init__()
        self.slicer, self.average, self.cells = Slicer() if front_end else None, average, cells
        width = 2 * cells if both and not average else cells
        inputs = [31 * 64 if front_end else FEATURES] + [width] * (layers - 1)
        self.lstms = nn.ModuleList(nn.LSTM(i, cells, batch_first=True, bidirectional=both) for i in inputs)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in inputs)
        self.proj, self.ln_out = nn.Linear(width, classes, bias=False), nn.LayerNorm(classes)

    def forward(self, x):
        x = F.dropout(flat(self.slicer(x)) if self.slicer else x, 0.3, self.training)
        for lstm, norm in zip(self.lstms, self.norms):
            x = lstm(x)[0]
            x = (x[..., : self.cells] + x[..., self.cells :]) / 2 if self.average else x
            x = F.dropout(norm(x), 0.4, self.training)
        return self.ln_out(self.proj(x))


class Cnn(nn.Module):
    def __init__(self, classes, channels, dense, front_end):
        super().__init__()
        self.slicer = Slicer() if front_end else None
        inputs = [64 if front_end else 1] + channels[:-1]
        self.convs = nn.ModuleList(nn.Conv2d(i, 2 * o, (5, 3), 1, (2, 1), bias=False) for i, o in zip(inputs, channels))
        self.norms = nn.ModuleList(nn.LayerNorm(o) for o in channels)
        sizes = [channels[-1] * (31 if front_end else 41), dense, dense, classes]
        self.dense = nn.ModuleList(nn.Linear(i, 2 * o, bias=False) for i, o in zip(sizes, sizes[1:]))
        self.dense_norms = nn.ModuleList(nn.LayerNorm(o) for o in sizes[1:])

    def forward(self, x):
        x = self.slicer(x) if self.slicer else x.unsqueeze(1)
        for index, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            x = F.dropout(conv(x), 0.2, self.training).unflatten(1, (2, -1)).amax(1)
            x = F.max_pool2d(x, (1, 3)) if index == 0 and not self.slicer else x
            x = F.dropout(norm(x.permute(0, 2, 3, 1)), 0.1, self.training).permute(0, 3, 1, 2)
        x = flat(x)
        for dense, norm in zip(self.dense, self.dense_norms):
            x = norm(F.dropout(dense(x), 0.2, self.training).unflatten(2, (2, -1)).amax(2))
        return x


class Transformer(nn.Module):
    def __init__(self, classes, layers, width, inner):
        super().__init__()
        self.slicer, self.proj, self.width = Slicer(), nn.Linear(31 * 64, width), width
        block = nn.TransformerEncoderLayer(width, 4, inner, 0.4, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.out = nn.Linear(width, classes)

    def forward(self, x):
        x = F.dropout(self.proj(flat(self.slicer(x))) * self.width**0.5, 0.3, self.training)
        places = torch.arange(x.shape[1])
        return self.out(self.blocks(x, -torch.log1p((places[:, None] - places[None]).abs().float())))


MODELS = {
    "srf1": (63, lambda: Srf(63, 1, 60, 30, 8, 1)),
    "srf2": (63, lambda: Srf(63, 2, 60, 30, 8, 1)),
    "srf5": (63, lambda: Srf(63, 5, 60, 30, 8, 1)),
    "srf7": (63, lambda: Srf(63, 7, 60, 30, 8, 1)),
    "srf7small_wsj": (32, lambda: Srf(32, 7, 52, 26, 16, 2)),
    "srf7big": (32, lambda: Srf(32, 7, 60, 30, 20, 2)),
    "srf10small": (32, lambda: Srf(32, 10, 52, 26, 16, 2)),
    "srf10big": (32, lambda: Srf(32, 10, 60, 30, 20, 2)),
    "blstm5": (63, lambda: Lstm(63, 5, 250, True, False, False)),
    "ulstm3": (63, lambda: Lstm(63, 3, 421, False, False, False)),
    "cnn10": (63, lambda: Cnn(63, [64] * 4 + [128] * 5 + [24], 512, False)),
    "tf5": (63, lambda: Transformer(63, 5, 128, 1024)),
    "tf20": (63, lambda: Transformer(63, 20, 128, 1024)),
    "blstm5_wsj": (32, lambda: Lstm(32, 5, 441, True, True, True)),
    "ulstm5_wsj": (32, lambda: Lstm(32, 5, 662, False, False, True)),
    "cnn10_wsj": (32, lambda: Cnn(32, [140] * 4 + [300] * 5 + [66], 1024, True)),
    "cnn15_wsj": (32, lambda: Cnn(32, [100] * 4 + [215] * 10 + [66], 1024, True)),
    "tf20_wsj": (32, lambda: Transformer(32, 20, 256, 1488)),
}


def train_step(net, adam, classes, x, labels):
    log_probs = net(x).log_softmax(-1).transpose(0, 1)
    lengths = torch.full((N,), log_probs.shape[0])
    loss = F.ctc_loss(log_probs, labels, lengths, torch.full((N,), 40), classes - 1, reduction="sum") / N
    adam.zero_grad()
    loss.backward()
    adam.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--decode", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    classes, make = MODELS[args.model]
    net = make().train(not args.decode)
    n_utterances = 1 if args.decode else N
    adam = torch.optim.Adam(net.parameters(), 1e-4, (0.9, 0.98), 1e-9)
    x, labels = torch.randn(n_utterances, T, FEATURES), torch.randint(1, classes - 1, (N, 40))
    clock = time.process_time if args.cpu else time.perf_counter
    seconds = []
    for _ in range(args.steps + 2):
        start = clock()
        if args.decode:
            with torch.inference_mode():
                net(x).log_softmax(-1)
        else:
            train_step(net, adam, classes, x, labels)
        seconds.append(clock() - start)
    best, size = min(seconds[2:]), sum(p.numel() for p in net.parameters())
    rate = n_utterances * T / best
    print(f"{args.model}: {size} parameters, {rate:.0f} frames per second, {best:.4f} s, torch {torch.__version__}")


if __name__ == "__main__":
    main()
