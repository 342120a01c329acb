"""The references of the ddtree cases against loops, enumeration, recursion and double precision."""

from __future__ import annotations

import itertools
import sys
import zlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cases_kit import CASES, case_named, kernel_steps
from hypothesis import given, settings
from hypothesis import strategies as st

FOLDER = str(CASES / "ddtree")
Modules = tuple[ModuleType, ModuleType]


@pytest.fixture(scope="module")
def ddtree() -> Iterator[Modules]:
    """The modules `reference` and `tree` of cases/ddtree; forgotten afterwards, as other cases have their own."""
    sys.path.insert(0, FOLDER)
    for name in ("reference", "tree"):
        sys.modules.pop(name, None)
    import reference  # type: ignore[import-not-found]
    import tree  # type: ignore[import-not-found]

    yield reference, tree
    sys.path.remove(FOLDER)
    for name in ("reference", "tree"):
        sys.modules.pop(name, None)


def random_buffer(buffer: dict[str, Any]) -> np.ndarray:
    """A buffer as the harness fills it at random."""
    rng = np.random.Generator(np.random.PCG64([buffer["seed"], zlib.crc32(buffer["name"].encode())]))
    fill, shape = buffer["fill"], tuple(buffer["shape"])
    if fill["kind"] == "randint":
        return rng.integers(fill.get("low", 0), fill["high"], shape).astype(buffer["dtype"])
    return (rng.standard_normal(shape, np.float32) * np.float32(fill.get("std", 1))).astype(buffer["dtype"])


def test_attention_equals_loops_in_double_precision(ddtree: Modules) -> None:
    reference, tree = ddtree
    rng = np.random.default_rng(1)
    streams, q_len, heads, latent, rope, prefix = 2, 5, 3, 8, 4, 11
    q = rng.standard_normal((streams, q_len, heads, latent + rope)).astype(np.float32)
    kv = rng.standard_normal((streams, prefix + q_len, latent + rope)).astype(np.float32)
    vis = tree.mask((streams, q_len, q_len))
    got = reference.verify_attn(q, kv, vis, latent)
    for s, row, head in itertools.product(range(streams), range(q_len), range(heads)):
        seen = [key for key in range(prefix + q_len) if key < prefix or vis[s, row, key - prefix]]
        scores = [float(np.dot(q[s, row, head].astype(float), kv[s, key].astype(float))) / 12**0.5 for key in seen]
        weights = np.exp(np.array(scores) - max(scores))
        expected = (weights / weights.sum()) @ kv[s, seen, :latent].astype(float)
        np.testing.assert_allclose(got[s, row, head], expected, rtol=1e-5, atol=1e-6)


def every_prefix(logp: np.ndarray) -> list[tuple[float, tuple[int, ...]]]:
    """All paths of ranks with their scores, summed as the definition says, best first."""
    depth, topk = logp.shape
    paths = []
    for length in range(1, depth + 1):
        for ranks in itertools.product(range(topk), repeat=length):
            score = np.float32(0)
            for level, rank in enumerate(ranks):
                score = np.float32(score + logp[level, rank])
            paths.append((float(score), ranks))
    return sorted(paths, key=lambda item: -item[0])


def path_of(node: int, made: list[Any], draft: np.ndarray) -> tuple[int, ...]:
    ranks: tuple[int, ...] = ()
    while node > 0:
        token, parent, depth, _ = made[node]
        ranks = (int(np.flatnonzero(draft[depth - 1] == token)[0]), *ranks)
        node = parent
    return ranks


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 3), st.integers(1, 40))
def test_the_tree_holds_the_best_prefixes(ddtree: Modules, seed: int, depth: int, topk: int, budget: int) -> None:
    reference, _ = ddtree
    rng = np.random.default_rng(seed)
    logp = -np.sort(rng.exponential(1, (depth, topk)), axis=-1).astype(np.float32)
    draft = rng.permuted(np.tile(np.arange(100, dtype=np.int32), (depth, 1)), axis=1)[:, :topk]
    made = reference.best_first_tree(logp, draft, np.int32(7), budget)
    expected = every_prefix(logp)[:budget]
    assert len(made) == 1 + len(expected)
    assert [float(node[3]) for node in made[1:]] == pytest.approx([score for score, _ in expected], abs=0)
    if len({score for score, _ in expected}) == len(expected):
        assert [path_of(node, made, draft) for node in range(1, len(made))] == [ranks for _, ranks in expected]


def test_of_equal_scores_the_one_pushed_first_comes_first(ddtree: Modules) -> None:
    reference, _ = ddtree
    logp = np.full((2, 3), -1, np.float32)  # every sibling equals its brothers, every child is worse
    draft = np.array([[10, 11, 12], [20, 21, 22]], np.int32)
    made = reference.best_first_tree(logp, draft, np.int32(0), 8)
    assert [(node[0], node[1]) for node in made] == [
        (0, -1), (10, 0), (11, 0), (12, 0), (20, 1), (20, 2), (20, 3), (21, 1), (21, 2),
    ]  # fmt: skip


def test_the_inputs_of_the_tree_hold_equal_scores(ddtree: Modules) -> None:
    reference, tree = ddtree
    built = reference.tree_build(tree.logp((8, 8, 8)), tree.draft((8, 8, 8)), tree.root((8,)), 64)
    ties = sum(len(row) - len(set(row.tolist())) for row in built["score"])
    assert ties > 8


def walk(node: int, token: list[int], parent: list[int], target: list[int], used: int, left: int) -> list[int]:
    """The greedy path by recursion."""
    children = [child for child in range(used) if parent[child] == node and token[child] == target[node]]
    return [children[0], *walk(children[0], token, parent, target, used, left - 1)] if children and left else []


@pytest.mark.parametrize("nodes", [2, 9, 33, 129])
def test_accept_equals_a_recursive_walk_and_has_paths_of_many_lengths(ddtree: Modules, nodes: int) -> None:
    reference, tree = ddtree
    shape = (32, nodes)
    token, parent, target, count = tree.token(shape), tree.parent(shape), tree.target(shape), tree.count((32,), nodes)
    got = reference.tree_accept(token, parent, target, count, 8)
    lengths = set()
    for s in range(32):
        path = walk(0, token[s].tolist(), parent[s].tolist(), target[s].tolist(), count[s], 8)
        assert got["path"][s].tolist() == path + [-1] * (8 - len(path))
        assert got["accepted"][s] == len(path)
        assert got["bonus"][s] == target[s, path[-1] if path else 0]
        lengths.add(len(path))
    assert lengths >= {0, 1}


def test_commit_moves_the_branch_behind_the_prefix_and_nothing_else(ddtree: Modules) -> None:
    reference, _ = ddtree
    kv = np.arange(2 * 9 * 2, dtype=np.float32).reshape(2, 9, 2)
    kept = reference.commit(kv, np.array([[2, 4, -1], [-1, -1, -1]]), np.array([2, 0]), prefix=3)
    assert kept["length"].tolist() == [6, 4]
    assert kept["kv"][0, :, 0].tolist() == [0, 2, 4, 6, 10, 14, 12, 14, 16]
    assert (kept["kv"][1] == kv[1]).all()


@pytest.mark.parametrize("device", ["cuda:0", "emulator"])
def test_the_decoded_tokens_are_no_matter_of_rounding(ddtree: Modules, device: str) -> None:
    reference, tree = ddtree
    case = case_named("decode_loop").on_device(device)
    for step in kernel_steps(case, device):
        if step["params"]["generated"] != 256:
            continue
        tables = [random_buffer(b) for b in step["buffers"] if b["name"] in ("embedding", "output_table")]
        layers = step["params"]["layers"]
        for prompt in tree.prompts((4, step["params"]["prompt"]), step["params"]["vocab"]):
            single, margin = reference._decode(*tables, prompt, layers, 256)
            double, _ = reference._decode(*(table.astype(np.float64) for table in tables), prompt, layers, 256)
            assert (single == double).all()
            assert margin > 1e-4  # a thousand times the rounding error of a logit


@pytest.mark.parametrize("device", ["cuda:0", "emulator"])
def test_the_decode_step_accepts_long_short_and_empty_paths_by_wide_margins(ddtree: Modules, device: str) -> None:
    reference, tree = ddtree
    case = case_named("ddtree_ok").on_device(device)
    lengths = set()
    for step in kernel_steps(case, device):
        p = step["params"]
        if p["prefix"] != 256 or p["budget"] not in (8, 32):
            continue
        shape = {b["name"]: tuple(b["shape"]) for b in step["buffers"]}
        kv = random_buffer(next(b for b in step["buffers"] if b["name"] == "kv"))
        output = tree.output_table(shape["output_table"], p["rope"])
        done = reference.ddtree(
            tree.logp(shape["logp"]), tree.drafted(shape["draft"], p["vocab"]), tree.root(shape["root"], p["vocab"]),
            kv, tree.query_table(shape["query_table"]), tree.cache_table(shape["cache_table"]), output,
            p["budget"], p["max_depth"], p["prefix"], p["latent"],
        )  # fmt: skip
        best = np.sort(reference.logits(done["attn"], output), axis=-1)
        assert (best[..., -1] - best[..., -2]).min() > 1e-2 * np.abs(best).max()
        lengths |= set(done["accepted"].tolist())
    assert lengths >= {0, 1, 2, 4}
