"""Triton kernels of the shapes that users write: element-wise, softmax, layer norm, matmul, attention."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, 0), mask=inside)


@triton.jit
def layer_norm(x, weight, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, 0) / columns
    centred = tl.where(inside, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / columns + epsilon)
    result = centred * scale * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside)
    tl.store(out + row * columns + at, result, mask=inside)


@triton.jit
def matmul(a, b, out, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        left = tl.load(a + rows[:, None] * k + (start + inner)[None, :],
                       mask=(rows[:, None] < m) & ((start + inner)[None, :] < k), other=0.0)
        right = tl.load(b + (start + inner)[:, None] * n + columns[None, :],
                        mask=((start + inner)[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(out + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def attention(q, k, v, out, length, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Flash attention, forward, one head: a block of queries against all keys, with a running maximum."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    features = tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + features[None, :], mask=rows[:, None] < length, other=0.0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    weight = tl.zeros((BM,), dtype=tl.float32)
    total = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, length, BN):
        keys = start + tl.arange(0, BN)
        key = tl.load(k + keys[None, :] * D + features[:, None], mask=keys[None, :] < length, other=0.0)
        score = tl.dot(query, key) * scale
        score = tl.where(keys[None, :] < length, score, -float("inf"))
        new = tl.maximum(largest, tl.max(score, 1))
        power = tl.exp(score - new[:, None])
        fade = tl.exp(largest - new)
        weight = weight * fade + tl.sum(power, 1)
        value = tl.load(v + keys[:, None] * D + features[None, :], mask=keys[:, None] < length, other=0.0)
        total = tl.dot(power.to(value.dtype), value, total * fade[:, None])
        largest = new
    tl.store(out + rows[:, None] * D + features[None, :], total / weight[:, None], mask=rows[:, None] < length)
