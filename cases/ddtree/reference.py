"""References of the ddtree cases in numpy and heapq: what the kernels must compute, written to be read.

Called with the initial contents of the buffers and the case's parameters, by name.
"""

import heapq

import numpy as np
import tree


def verify_attn(q, kv, vis, latent):
    """Attention of every head over one shared latent cache; the last q_len rows of the cache are the tree.

    q [streams, q_len, heads, latent + rope], kv [streams, length, latent + rope], vis [streams, q_len, q_len];
    returns [streams, q_len, heads, latent], float32.
    """
    streams, q_len, heads, width = q.shape
    length = kv.shape[1]
    out = np.empty((streams, q_len, heads, latent), np.float32)
    for stream in range(streams):
        # Single precision is enough: the tolerance is a hundred times its error.
        scores = q[stream].reshape(-1, width) @ kv[stream].T
        scores = scores.reshape(q_len, heads, length) * np.float32(1 / np.sqrt(width))
        hidden = np.where(vis[stream] != 0, np.float32(0), np.float32(-np.inf))
        scores[:, :, length - q_len :] += hidden[:, None, :]
        weight = np.exp(scores - scores.max(-1, keepdims=True))
        weight /= weight.sum(-1, keepdims=True)
        values = weight.reshape(-1, length) @ kv[stream, :, :latent]
        out[stream] = values.reshape(q_len, heads, latent)
    return out


def best_first_tree(logp, draft, root, budget):
    """One stream's tree by heapq: (token, parent, depth, score) of node 0 (the root) and up to `budget` more.

    logp, draft [depth, topk]. Higher score first, of equal scores the candidate pushed earlier; a sibling is pushed
    before a child.
    """
    max_depth, topk = logp.shape
    nodes = [(root, -1, 0, np.float32(0))]
    heap = [(-(np.float32(0) + logp[0, 0]), 0, 0, 1, 0)]  # -score, when pushed, parent, depth, rank
    pushed = 1
    while heap and len(nodes) <= budget:
        negated, _, parent, depth, rank = heapq.heappop(heap)
        nodes.append((draft[depth - 1, rank], parent, depth, -negated))
        node = len(nodes) - 1
        if rank + 1 < topk:
            heapq.heappush(heap, (-(nodes[parent][3] + logp[depth - 1, rank + 1]), pushed, parent, depth, rank + 1))
            pushed += 1
        if depth < max_depth:
            heapq.heappush(heap, (-(nodes[node][3] + logp[depth, 0]), pushed, node, depth + 1, 0))
            pushed += 1
    return nodes


def tree_build(logp, draft, root, budget):
    """Best-first trees of all streams; unused nodes are padding (-1, score -inf, seen by themselves)."""
    streams, nodes = len(logp), budget + 1
    token, parent, depth = (np.full((streams, nodes), -1, np.int32) for _ in range(3))
    score = np.full((streams, nodes), -np.inf, np.float32)
    count = np.empty(streams, np.int32)
    for stream in range(streams):
        made = best_first_tree(logp[stream], draft[stream], root[stream], budget)
        count[stream] = len(made)
        for node, values in enumerate(made):
            token[stream, node], parent[stream, node], depth[stream, node], score[stream, node] = values
    vis = tree.visibility(parent)
    return {"token": token, "parent": parent, "depth": depth, "score": score, "vis": vis, "count": count}


def tree_mask(parent):
    """Visibility of the trees, [streams, nodes, nodes]."""
    return tree.visibility(parent)


def tree_accept(token, parent, target, count, max_depth):
    """Greedy walk along the target's tokens: path [streams, max_depth], then -1; accepted, bonus [streams]."""
    streams = len(token)
    path = np.full((streams, max_depth), -1, np.int32)
    accepted, bonus = np.zeros(streams, np.int32), np.empty(streams, np.int32)
    for stream in range(streams):
        node = 0
        while accepted[stream] < max_depth:
            used = np.arange(parent.shape[1]) < count[stream]
            matches = np.flatnonzero(used & (parent[stream] == node) & (token[stream] == target[stream, node]))
            if not len(matches):
                break
            node = int(matches[0])
            path[stream, accepted[stream]] = node
            accepted[stream] += 1
        bonus[stream] = target[stream, node]
    return {"path": path, "accepted": accepted, "bonus": bonus}


def commit(kv, path, accepted, prefix):
    """The accepted branch moved behind the prefix: kv (a copy) and length [streams]."""
    kv = kv.copy()
    for stream, steps in enumerate(accepted):
        kv[stream, prefix + 1 : prefix + 1 + steps] = kv[stream, prefix + path[stream, :steps]]
    return {"kv": kv, "length": (prefix + 1 + accepted).astype(np.int32)}


def ddtree(logp, draft, root, kv, query_table, cache_table, output_table, budget, max_depth, prefix, latent):
    """One decode step: build the tree, embed it, verify it, choose the target's tokens, accept, commit."""
    built = tree_build(logp, draft, root, budget)
    real = built["token"] >= 0
    q = query_table[built["token"]] * real[..., None, None]
    kv = kv.copy()
    kv[:, prefix:] = cache_table[built["token"]] * real[..., None]
    attn = verify_attn(q, kv, built["vis"], latent)
    target = logits(attn, output_table).argmax(-1).astype(np.int32)
    walked = tree_accept(built["token"], built["parent"], target, built["count"], max_depth)
    kept = commit(kv, walked["path"], walked["accepted"], prefix)
    return {**built, "attn": attn, "target": target, **walked, **kept}


def logits(attn, output_table):
    """[streams, nodes, heads, latent] to [streams, nodes, vocab]: the heads' sum times the output embedding."""
    return attn.sum(2) @ output_table.T


def bulk_tail(token, nodes):
    """The first `nodes` tokens of every stream, last first."""
    return token[:, :nodes][:, ::-1]


WINDOW = 256
SHARPNESS = np.float32(4)


def decode_loop(embedding, output_table, given, layers, generated):
    """Greedy decoding with a sliding window of 256 positions: tokens [streams, generated]."""
    prompts, which = np.unique(given, axis=0, return_inverse=True)  # streams with the same prompt say the same
    decoded = np.stack([_decode(embedding, output_table, prompt, layers, generated)[0] for prompt in prompts])
    return decoded[which.reshape(-1)]


def _decode(embedding, output_table, given, layers, generated):
    """One stream: the tokens, and the smallest distance between the best two logits.

    Near ties would make the tokens a matter of rounding.
    """
    prompt, width = len(given), embedding.shape[1]
    ring = np.zeros((layers, WINDOW, width), np.float32)
    tokens, margin, token = [], np.inf, given[0]
    for position in range(prompt + generated - 1):
        hidden = embedding[token]
        seen = min(position + 1, WINDOW)
        for layer in range(layers):
            ring[layer, position % WINDOW] = hidden
            weight = np.exp(SHARPNESS * (ring[layer, :seen] @ hidden))
            hidden = hidden + (weight @ ring[layer, :seen]) / weight.sum()
            hidden = hidden / np.sqrt(hidden @ hidden)
        if position + 1 < prompt:
            token = given[position + 1]
            continue
        scores = output_table @ hidden
        token = int(scores.argmax())
        tokens.append(token)
        margin = min(margin, float(np.diff(np.partition(scores, -2)[-2:])[0]))
    return np.array(tokens, np.int32), margin


def leaky_sweep(x):
    """Row sums of x [rows, columns], float32."""
    return x.sum(-1, dtype=np.float64).astype(np.float32)
