"""The networks of `srf bench train` from PyTorch's own modules, on the same work: 23 utterances of 300 frames.

python xtask/peers/torch_baselines.py blstm5 --threads 2 --steps 10
Prints the frames a second of the fastest step (forward, CTC, backward, Adam); --cpu counts processor time instead.
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
            x = norm(F.dropout(conv(x), 0.2).unflatten(1, (2, 64)).amax(1))
        return x


def flat(x):
    return x.permute(0, 2, 3, 1).flatten(2)


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
        x = F.dropout(flat(self.slicer(x)) if self.slicer else x, 0.3)
        for lstm, norm in zip(self.lstms, self.norms):
            x = lstm(x)[0]
            x = (x[..., : self.cells] + x[..., self.cells :]) / 2 if self.average else x
            x = F.dropout(norm(x), 0.4)
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
            x = F.dropout(conv(x), 0.2).unflatten(1, (2, -1)).amax(1)
            x = F.max_pool2d(x, (1, 3)) if index == 0 and not self.slicer else x
            x = F.dropout(norm(x.permute(0, 2, 3, 1)), 0.1).permute(0, 3, 1, 2)
        x = flat(x)
        for dense, norm in zip(self.dense, self.dense_norms):
            x = norm(F.dropout(dense(x), 0.2).unflatten(2, (2, -1)).amax(2))
        return x


class Transformer(nn.Module):
    def __init__(self, classes, layers, width, inner):
        super().__init__()
        self.slicer, self.proj, self.width = Slicer(), nn.Linear(31 * 64, width), width
        block = nn.TransformerEncoderLayer(width, 4, inner, 0.4, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.out = nn.Linear(width, classes)

    def forward(self, x):
        x = F.dropout(self.proj(flat(self.slicer(x))) * self.width**0.5, 0.3)
        places = torch.arange(x.shape[1])
        return self.out(self.blocks(x, -torch.log1p((places[:, None] - places[None]).abs().float())))


MODELS = {
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    classes, make = MODELS[args.model]
    net = make()
    adam = torch.optim.Adam(net.parameters(), 1e-4, (0.9, 0.98), 1e-9)
    x, labels = torch.randn(N, T, FEATURES), torch.randint(1, classes - 1, (N, 40))
    clock = time.process_time if args.cpu else time.perf_counter
    seconds = []
    for _ in range(args.steps + 2):
        start = clock()
        log_probs = net(x).log_softmax(-1).transpose(0, 1)
        lengths = torch.full((N,), log_probs.shape[0])
        loss = F.ctc_loss(log_probs, labels, lengths, torch.full((N,), 40), classes - 1, reduction="sum") / N
        adam.zero_grad()
        loss.backward()
        adam.step()
        seconds.append(clock() - start)
    best, size = min(seconds[2:]), sum(p.numel() for p in net.parameters())
    print(f"{args.model}: {size} parameters, {N * T / best:.0f} frames a second, {best:.4f} s, torch {torch.__version__}")


if __name__ == "__main__":
    main()
