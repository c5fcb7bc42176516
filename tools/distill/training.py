"""Stage 3: training, with a checkpoint every minute, and with what the drafter would reach on texts that it never saw."""

import json
import queue
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import losses, optimiser
from .network import Batch, Constants, Network, compare
from .optimiser import Weights
from .quantise import straight_through
from .states import Data
from .target import Array
from .work import Work, replace_file, say, write_json

SHARE_FOR_BENCH = 0.05  # of the time
PROMPT_WEIGHT = 0.2  # of tokens that the model did not write, for which nobody drafts
ROUND_FROM = 0.5  # from here on the weights are rounded as in the file
WARM_UP_STEPS, FULL_RATE_UNTIL = 20, 0.25
SAY_SECONDS, KEEP_SECONDS, EVALUATIONS = 10, 60, 20
HELD_OUT_ROWS = 128


def rate_at(progress: float, step: int) -> float:
    falling = min(1.0, (1 - progress) / (1 - FULL_RATE_UNTIL))
    return max(0.0, falling) * min(1.0, (step + 1) / WARM_UP_STEPS)


def as_in_file(weights: Weights, types: dict[str, str], now: jax.Array | bool = True) -> Weights:
    return {name: jnp.where(now, straight_through(w, types[name]), w) if name in types else w for name, w in weights.items()}


class Trainer:
    def __init__(self, network: Network, precision: Any):
        self.network, self.precision = network, precision
        self.constants = network.constants()
        self._step = jax.jit(self._one_step, donate_argnums=(0, 1))
        self._measure = jax.jit(self._measured)

    def _loss(self, weights: Weights, constants: Constants, batch: Batch, rounds: jax.Array) -> jax.Array:
        weights = as_in_file(weights, self.network.types(), rounds)
        total, whole = jnp.zeros(()), 0.0
        for guesses in self.network.guess(weights, constants, batch, self.precision):
            parts = compare(guesses, weights[self.network.output_name], constants["places"])
            counts = guesses.valid * jnp.where(guesses.own, 1.0, PROMPT_WEIGHT)
            total += guesses.weight * losses.mean_loss(parts, counts)
            whole += guesses.weight
        return total / whole

    def _one_step(self, weights: Weights, state: dict[str, Any], constants: Constants, batch: Batch, rate: jax.Array,
                  number: jax.Array, rounds: jax.Array) -> tuple[Weights, dict[str, Any], jax.Array]:
        loss, gradients = jax.value_and_grad(self._loss)(weights, constants, batch, rounds)
        weights, state = optimiser.step(weights, gradients, state, rate, number)
        return weights, state, loss

    def _measured(self, weights: Weights, constants: Constants, batch: Batch) -> Array:
        """Sums over the model's own tokens: by steps ahead, how many, agreeing, overlap."""
        weights = as_in_file(weights, self.network.types())
        sums = []
        for guesses in self.network.guess(weights, constants, batch, self.precision):
            parts = compare(guesses, weights[self.network.output_name], constants["places"])
            counts = (guesses.valid & guesses.own).astype(jnp.float32)
            sums.append(jnp.stack([counts.sum(), (parts["agrees"] * counts).sum(), (parts["overlap"] * counts).sum()]))
        return jnp.stack(sums)  # type: ignore[return-value]

    def step(self, weights: Weights, state: dict[str, Any], batch: Batch, progress: float, number: int) -> tuple[Weights, dict[str, Any], jax.Array]:
        return self._step(weights, state, self.constants, batch, jnp.float32(rate_at(progress, number)),  # type: ignore[no-any-return]
                          jnp.float32(number), jnp.asarray(progress >= ROUND_FROM))

    def measure(self, weights: Weights, batches: list[Batch]) -> dict[str, list[float]]:
        """The share of drafted tokens that would be accepted, by place in the draft if those before were: at temperature 0
        ("agrees") and at 1 ("overlap")."""
        sums = np.zeros((self.network.ahead, 3)) + sum(np.asarray(self._measure(weights, self.constants, batch)) for batch in batches)
        counts = np.maximum(sums[:, 0], 1)
        return {"agrees": [round(float(x), 4) for x in sums[:, 1] / counts],
                "overlap": [round(float(x), 4) for x in sums[:, 2] / counts]}


class Feeder:
    """Reads batches in a thread of its own, while the device computes."""

    def __init__(self, data: Data, row: int, batch: int, seed: int, first_epoch: int):
        self._data, self._row, self._batch, self._seed = data, row, batch, seed
        self._ready: queue.Queue[tuple[int, dict[str, Array]] | BaseException] = queue.Queue(2)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(first_epoch,), daemon=True)
        self._thread.start()

    def _batches(self, epoch: int) -> Iterator[dict[str, Array]]:
        rows = self._data.plan(self._row, np.random.default_rng([self._seed, epoch]))
        if not rows:
            raise ValueError
        while len(rows) < self._batch:
            rows += rows
        for at in range(0, len(rows) - self._batch + 1, self._batch):
            yield self._data.batch(rows[at : at + self._batch])

    def _read(self, epoch: int) -> None:
        try:
            while True:
                for batch in self._batches(epoch):
                    while not self._ended.is_set():
                        try:
                            self._ready.put((epoch, batch), timeout=0.2)
                            break
                        except queue.Full:
                            continue
                    if self._ended.is_set():
                        return
                epoch += 1
        except BaseException as error:  # noqa: BLE001  told by next()
            self._ready.put(error)

    def next(self) -> tuple[int, dict[str, Array]]:
        got = self._ready.get()
        if isinstance(got, BaseException):
            raise got
        return got

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


class Checkpoint:
    """Weights, the optimiser's state and the curve, in one file. In another one the weights that were best on held-out texts: with
    little text and much time, a drafter that goes on learning knows its texts by heart, and guesses others worse."""

    def __init__(self, work: Work):
        self._path, self._best = work.path("checkpoint.npz"), work.path("best.npz")
        self._work = work

    def keep_best(self, weights: Weights) -> None:
        arrays = {name: np.asarray(w) for name, w in weights.items()}
        replace_file(self._best, partial(np.savez, **arrays))  # type: ignore[arg-type]

    def best(self) -> Weights:
        with np.load(self._best) as file:
            return {name: jnp.asarray(file[name]) for name in file.files}

    def keep(self, weights: Weights, state: dict[str, Any], told: dict[str, Any]) -> None:
        arrays = {f"w:{name}": np.asarray(w) for name, w in weights.items()}
        arrays |= {f"{kind}:{name}": np.asarray(x) for name, kinds in state.items() for kind, x in kinds.items()}
        arrays["told"] = np.frombuffer(json.dumps(told).encode(), np.uint8)
        replace_file(self._path, partial(np.savez, **arrays))  # type: ignore[arg-type]
        write_json(self._work.path("curve.json"), told["curve"])
        self._work.keep_time()

    def load(self) -> tuple[Weights, dict[str, Any], dict[str, Any]] | None:
        if not self._path.exists():
            return None
        weights: Weights = {}
        state: dict[str, Any] = {}
        with np.load(self._path) as file:
            told = json.loads(bytes(file["told"]))
            for key in file.files:
                kind, _, name = key.partition(":")
                if kind == "w":
                    weights[name] = jnp.asarray(file[key])
                elif name:
                    state.setdefault(name, {})[kind] = jnp.asarray(file[key])
        return weights, state, told


def held_out_batches(data: Data, row: int, batch: int) -> list[Batch]:
    rows = data.plan(max(16, min(row, data.tokens)), np.random.default_rng(0))[:HELD_OUT_ROWS]
    size = min(batch, len(rows))
    return [data.batch(rows[at : at + size]) for at in range(0, len(rows) - size + 1, size)] if size else []  # type: ignore[misc]


def score(point: dict[str, Any]) -> float:
    """Of all places in a draft: the first one counts most, because the others count only if it is right."""
    pairs = zip(point["agrees"], point["overlap"], strict=True)
    return float(sum((agrees + overlap) * 0.5**place for place, (agrees, overlap) in enumerate(pairs)))


def percent(values: list[float]) -> str:
    return " ".join(f"{100 * value:.1f}" for value in values)


def train(work: Work, network: Network, data: Data, held_out: Data) -> tuple[Weights, list[dict[str, Any]]]:
    settings = work.settings
    checkpoint = Checkpoint(work)
    kept = checkpoint.load()
    if kept:
        weights, state, told = kept
        if told["finished"]:
            say("training: was finished before")
            return checkpoint.best(), told["curve"]
        say(f"training: goes on at step {told['step']:,}")
    else:
        weights = network.begin(jax.random.key(settings.seed))
        state = optimiser.begin(weights)
        told = {"step": 0, "epoch": 0, "begun": work.seconds(), "finished": False, "curve": []}
    trainer = Trainer(network, jnp.bfloat16 if settings.device == "cuda" else jnp.float32)
    test = held_out_batches(held_out, settings.row, settings.batch)
    say(f"training: {network.describe()}, on {data.tokens:,} tokens; measured on {held_out.tokens:,} others")
    begun = float(told["begun"])
    available = max(1.0, work.budget() * (1 - SHARE_FOR_BENCH) - begun)
    feeder = Feeder(data, min(settings.row, data.tokens), settings.batch, settings.seed, told["epoch"] + 1 if kept else 0)
    last_said, last_kept, loss = -1e9, work.seconds(), jnp.zeros(())

    def progress() -> float:
        if settings.steps:
            return min(1.0, int(told["step"]) / settings.steps)
        return min(1.0, (work.seconds() - begun) / available)

    def evaluate() -> None:
        point = {"seconds": round(work.seconds(), 1), "step": told["step"], "progress": round(progress(), 4),
                 "loss": round(float(loss), 4), **trainer.measure(weights, test)}
        told["curve"].append(point)
        if score(point) >= max(map(score, told["curve"])):
            checkpoint.keep_best(weights)
        say(f"training: step {told['step']:,}, {100 * progress():.0f} %, loss {point['loss']:.3f}; accepted of texts it never "
            f"saw: {percent(point['agrees'])} % at T = 0, {percent(point['overlap'])} % at T = 1")

    try:
        while (now := progress()) < 1:
            told["epoch"], batch = feeder.next()
            weights, state, loss = trainer.step(weights, state, batch, now, told["step"])  # type: ignore[arg-type]
            told["step"] += 1
            if len(told["curve"]) <= now * EVALUATIONS:
                evaluate()
            elif work.seconds() - last_said > SAY_SECONDS:
                last_said = work.seconds()
                say(f"training: step {told['step']:,}, {100 * now:.0f} %, loss {float(loss):.3f}")
            if work.seconds() - last_kept > KEEP_SECONDS or work.stopping:
                last_kept = work.seconds()
                checkpoint.keep(weights, state, told)
                work.check_stop()
    finally:
        feeder.end()
    evaluate()
    told["finished"] = True
    checkpoint.keep(weights, state, told)
    return checkpoint.best(), told["curve"]
