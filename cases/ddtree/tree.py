"""Inputs of the ddtree cases: draft tables, draft trees, masks.

Fill functions return the array of one buffer. The trees are drawn from the parameters alone, so that `token`, `parent`
and `target` of one shape belong together whatever seeds their buffers have.
"""

import numpy as np

VOCAB = 32000  # of the drafts where no model gives one
PROMPT_SEED = 91


def parents(streams, nodes):
    """A random tree per stream, [streams, nodes]: node 0 is the root, every other one hangs under an earlier one."""
    rng = np.random.default_rng([11, streams, nodes])
    tree = np.full((streams, nodes), -1, np.int32)
    for node in range(1, nodes):
        # Half of the nodes extend one of the last four, the others anywhere: long branches and wide forks in one tree.
        recent = rng.integers(max(0, node - 4), node, streams)
        tree[:, node] = np.where(rng.random(streams) < 0.5, recent, rng.integers(0, node, streams))
    return tree


def visibility(parent):
    """Parents [streams, nodes] to the mask [streams, nodes, nodes]: column is an ancestor of row, or row itself."""
    streams, nodes = parent.shape
    vis = np.zeros((streams, nodes, nodes), np.uint8)
    for stream in range(streams):
        for node in range(nodes):
            if parent[stream, node] >= 0:
                vis[stream, node] = vis[stream, parent[stream, node]]
            vis[stream, node, node] = 1
    return vis


def parent(shape):
    """Fill: parents of a random tree, shape [streams, nodes]."""
    return parents(*shape)


def mask(shape):
    """Fill: visibility of a random tree, shape [streams, nodes, nodes]."""
    return visibility(parents(shape[0], shape[1]))


def logp(shape):
    """Fill: log-probabilities of the k best tokens per depth, best first, shape [streams, depth, topk].

    Softmax of random logits over a vocabulary of 64, rounded to multiples of 1/64, so that equal scores do occur and
    the order among them is tested too.
    """
    streams, depth, topk = shape
    logits = np.random.default_rng([12, *shape]).normal(0, 2.5, (streams, depth, 64))
    logprob = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    best = -np.sort(-logprob, axis=-1)[..., :topk]
    return (np.round(best * 64) / 64).astype(np.float32)


def draft(shape, vocab=VOCAB):
    """Fill: the tokens of `logp`, all different at one depth, shape [streams, depth, topk]."""
    streams, depth, topk = shape
    rng = np.random.default_rng([13, *shape, vocab])
    order = rng.random((streams, depth, vocab)).argpartition(topk, axis=-1)[..., :topk]
    return order.astype(np.int32)


def next_token(token, vocab):
    """What the toy model of `ddtree_ok` puts after a token: a permutation of the vocabulary (a power of two)."""
    return (5 * token + 3) % vocab


def cache_table(shape):
    """Fill: a cache row per token, shape [vocab, latent + rope]."""
    return np.random.default_rng([18, *shape]).standard_normal(shape, np.float32)


def query_table(shape):
    """Fill: queries that put about half of their weight on their own cache row, shape [vocab, heads, latent + rope]."""
    vocab, _, width = shape
    noise = np.random.default_rng([19, *shape]).standard_normal(shape, np.float32)
    return np.float32(8 / width**0.5) * (cache_table((vocab, width))[:, None] + np.float32(0.5) * noise)


def output_table(shape, rope):
    """Fill: output embeddings that make `next_token(token)` the likeliest after `token`, shape [vocab, latent]."""
    vocab, latent = shape
    table = np.empty(shape, np.float32)
    table[next_token(np.arange(vocab), vocab)] = cache_table((vocab, latent + rope))[:, :latent]
    return table


def drafted(shape, vocab):
    """Fill: drafts for the toy model, shape [streams, depth, topk]: long, short and empty paths.

    The token that will be accepted has rank 0 in streams 0, 4, ..., rank 1 in streams 1, 5, ..., rank 2 in streams
    2, 6, ..., and is missing in streams 3, 7, ...
    """
    tokens = np.empty(shape, np.int32)
    streams, max_depth, topk = shape
    rng = np.random.default_rng([20, *shape, vocab])
    for stream, right in enumerate(root((streams,), vocab)):
        for depth in range(max_depth):
            right = next_token(right, vocab)
            others = rng.permutation(np.delete(np.arange(vocab), right))[:topk]
            if stream % 4 < 3:
                others[stream % 4] = right
            tokens[stream, depth] = others
    return tokens


def root(shape, vocab=VOCAB):
    """Fill: the last committed token of every stream, shape [streams]."""
    return np.random.default_rng([14, *shape, vocab]).integers(0, vocab, shape).astype(np.int32)


def prompts(shape, vocab, seed=PROMPT_SEED):
    """Fill: given tokens, shape [streams, prompt]: four prompts, each in every fourth stream.

    The seed is one with which the best two next tokens are never close: rounding must not choose the token.
    """
    streams, length = shape
    rows = np.random.default_rng([21, seed]).integers(0, vocab, (4, 64))
    return rows[np.arange(streams) % 4, :length].astype(np.int32)


def token(shape):
    """Fill: tokens of the nodes of `parents`; children of one node differ. Shape [streams, nodes]."""
    streams, nodes = shape
    rows = [np.random.default_rng([15, stream, nodes]).permutation(VOCAB)[:nodes] for stream in range(streams)]
    return np.stack(rows).astype(np.int32)


def target(shape):
    """Fill: the target model's choice after every node, [streams, nodes]: seven times in ten one of its children."""
    streams, nodes = shape
    rng = np.random.default_rng([16, *shape])
    tree, tokens = parents(streams, nodes), token(shape)
    choice = rng.integers(0, VOCAB, shape)
    for stream in range(streams):
        for node in range(nodes):
            children = np.flatnonzero(tree[stream] == node)
            if len(children) and rng.random() < 0.7:
                choice[stream, node] = tokens[stream, rng.choice(children)]
    return choice.astype(np.int32)


def count(shape, nodes):
    """Fill: nodes in use, shape [streams]: all of them, one less in every second stream."""
    return (nodes - np.arange(shape[0]) % 2).astype(np.int32)


def path(shape, nodes, accepted):
    """Fill: `accepted` ascending nodes per stream, then -1, shape [streams, depth]."""
    rng = np.random.default_rng([17, *shape, nodes, accepted])
    paths = np.full(shape, -1, np.int32)
    for row in paths:
        row[:accepted] = np.sort(rng.permutation(np.arange(1, nodes))[:accepted])
    return paths
