# Elementwise operations, reductions and a matrix product by tinygrad, compared with Python's own arithmetic. All numbers are
# small integers, so sums are exact in any order.
from tinygrad import Tensor, dtypes

a = [float(i % 17) - 8 for i in range(64 * 48)]
b = [float(i % 13) - 6 for i in range(48 * 32)]
x, y = Tensor(a).reshape(64, 48), Tensor(b).reshape(48, 32)
got = (x @ y).tolist()
for i in range(64):
    for j in range(32):
        want = sum(a[48 * i + k] * b[32 * k + j] for k in range(48))
        assert got[i][j] == want, (i, j, got[i][j], want)
assert (x * 2 + 1).relu().sum().item() == sum(max(0, 2 * v + 1) for v in a)
assert x.max(axis=1).tolist() == [max(a[48 * i : 48 * i + 48]) for i in range(64)]
assert (Tensor(list(range(1000)), dtype=dtypes.int) * 3).tolist() == [3 * i for i in range(1000)]
print("good")
