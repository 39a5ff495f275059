"""One random C program a seed, for the differential test of the embedded GPU (see README.md beside this file).

A program is a function of the seed alone. It has no undefined behaviour, and no result that C leaves open: NaNs are made
one before their bits are seen, operations that two compilers may evaluate differently are not used.
"""

import random

INTS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
BITS = {"8": 8, "6": 16}
FLOATS = ["f32", "f32", "f64", "f16"]
VECTORS = ["i8x4", "u8x4", "i16x2", "u16x2", "i16x4", "u16x4", "i32x2", "u32x2", "i32x4", "u32x4", "i64x2", "u64x2",
           "f16x2", "f16x4", "f32x2", "f32x4", "f64x2"]


def width(t):
    return int(t[1:])


def signed(t):
    return t[0] == "i"


def is_float(t):
    return t[0] == "f"


def unsigned(t):
    return "u" + t[1:]


class Program:
    """Builds the text of one program."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.scopes = []
        self.next_name = 0
        self.functions = []
        self.tables = []
        self.loops = 0
        self.in_function = False
        self.calls = 1
        # programs differ in what they are rich in
        self.float_share = self.rng.choice([0.1, 0.3, 0.6])
        self.wide_share = self.rng.choice([0.1, 0.3, 0.5])
        self.memory_share = self.rng.choice([0.05, 0.15, 0.3])

    # ---- names -----------------------------------------------------------------------------------------------------
    def name(self, kind):
        self.next_name += 1
        return f"{kind}{self.next_name}"

    def variables(self, t):
        return [n for scope in self.scopes for n, vt in scope if vt == t]

    def declare(self, t, n):
        self.scopes[-1].append((n, t))

    def scalar_type(self):
        if self.rng.random() < self.float_share:
            return self.rng.choice(FLOATS)
        if self.rng.random() < self.wide_share:
            return self.rng.choice(["i64", "u64"])
        return self.rng.choice(["i32", "u32", "i32", "u32", "i16", "u16", "i8", "u8"])

    # ---- constants -------------------------------------------------------------------------------------------------
    def constant(self, t):
        r = self.rng
        if is_float(t):
            values = ["0.0", "-0.0", "1.0", "-1.0", "0.5", "2.0", "-4.0", "3.25", "1e-3", "100.0", "65504.0",
                      "0.15915494309189532", f"{r.uniform(-10, 10):.6f}", f"{r.uniform(-1, 1) * 10 ** r.randint(-4, 4):.6e}"]
            if t == "f64":
                values += ["1e300", "5e-324", "2.2250738585072014e-308", "1e17"]
            if t == "f32":
                values += ["3.4028235e38", "1.17549435e-38", "1e-45", "16777216.0"]
            return f"({t}){r.choice(values)}"
        bits = width(t)
        pick = r.randint(0, 5)
        if pick == 0:
            v = r.choice([0, 1, 2, 3, 7, 15, 16, 31, 63, 64, -1, -2, -16, -17, 65, 255, 256])
        elif pick == 1:
            v = (1 << r.randint(0, bits - 1)) + r.randint(-1, 1)
        elif pick == 2:
            v = -(1 << r.randint(0, bits - 1)) + r.randint(-1, 1)
        else:
            v = r.getrandbits(bits)
        v &= (1 << bits) - 1
        if signed(t) and v >> (bits - 1):
            v -= 1 << bits
        if v == -(1 << 63):
            return "(i64)(-9223372036854775807ll - 1)"
        return f"({t}){v}" + ("ull" if t == "u64" else "ll" if bits == 64 else "u" if t == "u32" else "")

    # ---- expressions -----------------------------------------------------------------------------------------------
    def expr(self, t, depth):
        """An expression of exactly the type `t`."""
        if "x" in t:
            return self.vector_expr(t, depth)
        if depth <= 0 or self.rng.random() < 0.12:
            return self.leaf(t)
        if is_float(t):
            return self.float_expr(t, depth - 1)
        return self.int_expr(t, depth - 1)

    def leaf(self, t):
        r = self.rng
        names = self.variables(t)
        pick = r.random()
        if names and pick < 0.75:
            return r.choice(names)
        if pick > 1 - self.memory_share / 2 and not self.in_function:
            return self.load(t, "0", 0)
        return self.constant(t)

    def index(self, count, depth):
        return f"({self.expr('u32', depth)} & {count - 1})"

    def load(self, t, _, depth):
        r = self.rng
        size = width(t) // 8
        place = r.choice(["in", "in", "mem", "lds"])
        total = {"in": 4096, "mem": 256, "lds": 64}[place]
        base = {"in": "in", "mem": "mem", "lds": "lds"}[place]
        space = "LOCAL" if place == "lds" else "GLOBAL"
        const = "const " if place == "in" else ""
        u = "u" + t[1:]
        i = self.index(total // size, depth)
        word = f"(({const}{u} {space}*){base})[{i}]"
        if r.random() < 0.3 and place != "lds":
            # a constant displacement from an index of the upper half
            k = r.randint(-3, 3)
            word = f"(({const}{u} {space}*){base})[({i} & {total // size // 2 - 1}) + {total // size // 4 + k}]" \
                if total // size >= 16 else word
        return f"of_{t}({word})" if is_float(t) else f"({t}){word}"

    def cond(self, depth):
        r = self.rng
        if depth > 0 and r.random() < 0.25:
            op = r.choice(["&&", "||"])
            return f"({self.cond(depth - 1)} {op} {self.cond(depth - 1)})"
        t = self.scalar_type()
        return f"({self.expr(t, depth)} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {self.expr(t, depth)})"

    def int_expr(self, t, d):
        r = self.rng
        bits = width(t)
        e = lambda u=t: self.expr(u, d)
        choices = ["arith"] * 6 + ["logic"] * 3 + ["shift"] * 3 + ["cast"] * 3 + ["divide", "select", "select", "minmax",
                   "bits", "bits", "not", "from_float", "saturate", "load", "element", "call", "combine"]
        if bits == 32:
            choices += ["special"] * 2
        if bits == 64:
            choices += ["wide"] * 2
        pick = r.choice(choices)
        if pick == "arith":
            return f"({t})({e()} {r.choice(['+', '-', '*', '+', '-'])} {e()})"
        if pick == "logic":
            return f"({t})({e()} {r.choice(['&', '|', '^', '& ~', '| ~', '^ ~'])}{e()})"
        if pick == "shift":
            amount = r.randint(0, bits - 1) if r.random() < 0.5 else f"({self.expr('u32', d)} & {bits - 1})"
            if r.random() < 0.6:
                return f"({t})(({unsigned(t)}){e()} << {amount})"
            return f"({t})({e()} >> {amount})"
        if pick == "cast":
            return f"({t}){self.expr(r.choice(INTS), d)}"
        if pick == "divide":
            return f"{r.choice(['div', 'rem'])}_{t}({e()}, {e()})"
        if pick == "select":
            return f"({self.cond(d)} ? {e()} : {e()})"
        if pick == "minmax":
            return f"{r.choice(['min', 'max'])}_{t}({e()}, {e()})"
        if pick == "not":
            return f"({t})({r.choice(['~', '-'])}{e()})"
        if pick == "bits":
            u = unsigned(t)
            which = r.choice(["popcount", "clz", "ctz", "reverse", "swap", "rotate"])
            if which == "popcount":
                return f"({t})__builtin_popcountll({e(u)})"
            if which == "clz":
                return f"({t})__builtin_clz{'ll' if bits == 64 else ''}(({u}){e(u)} | 1{'ull' if bits == 64 else 'u'})"
            if which == "ctz":
                top = 1 << (bits - 1)
                return f"({t})__builtin_ctz{'ll' if bits == 64 else ''}({e(u)} | {top}{'ull' if bits == 64 else 'u'})"
            if which == "reverse":
                return f"({t})__builtin_bitreverse{bits}({e(u)})"
            if which == "swap" and bits > 8:
                return f"({t})__builtin_bswap{bits}({e(u)})"
            return f"({t})__builtin_rotateleft{bits}({e(u)}, ({u}){self.expr('u32', d)})"
        if pick == "from_float":
            f = r.choice(["f32", "f64"])
            return f"{t}_of_{f}({self.expr(f, d)})"
        if pick == "saturate":
            return f"{r.choice(['add', 'sub'])}_sat_{t}({e()}, {e()})"
        if pick == "load":
            return self.load(t, "0", min(d, 1)) if not self.in_function else e()
        if pick == "element":
            names = [n for v in VECTORS if v.startswith(t + "x") for n in self.variables(v)]
            if names:
                n = r.choice(names)
                count = int([vt for s in self.scopes for vn, vt in s if vn == n][0].split("x")[1])
                return f"{n}[{r.randrange(count)}]" if r.random() < 0.6 else f"{n}[{self.index(count, min(d, 1))}]"
            return e()
        if pick == "call" and self.functions and not self.in_function and self.calls > 0 and not self.loops:
            self.calls -= 1
            f = r.choice(self.functions)
            args = ", ".join(self.expr(a, min(d, 1)) for a in f[2])
            return f"({t}){f[0]}({args})" if not is_float(f[1]) else f"({t})bits_{f[1]}({f[0]}({args}))"
        if pick == "special":
            which = r.choice(["ubfe", "sbfe", "perm", "alignbit", "alignbyte", "sad_u8", "lerp", "bits", "mulhi", "table"])
            x, y, z = (self.expr("u32", d) for _ in range(3))
            if which == "ubfe":
                return f"({t})ubfe({x}, {r.choice([y, str(r.randrange(32))])}, {r.choice([z, str(r.randrange(32))])})"
            if which == "sbfe":
                return f"({t})sbfe((i32){x}, {r.choice([y, str(r.randrange(32))])}, {r.choice([z, str(r.randrange(32))])})"
            if which == "bits":
                return f"({t})bits_f32({self.expr('f32', d)})"
            if which == "mulhi":
                s = r.choice(["u", "i"])
                return f"({t})((({s}64)({s}32){x} * ({s}32){y}) >> 32)"
            if which == "table" and self.tables:
                n, tt, count = r.choice(self.tables)
                return f"({t}){n}[{self.index(count, min(d, 1))}]"
            if which == "table":
                return f"({t}){x}"
            return f"({t}){which}({x}, {y}, {z})"
        if pick == "wide":
            which = r.choice(["mulhi", "mad", "bits", "add128"])
            if which == "mulhi":
                s = r.choice(["u", "i"])
                return f"({t})((({s}128)({s}64){e()} * ({s}64){e()}) >> 64)"
            if which == "mad":
                s = r.choice(["u", "i"])
                return f"({t})(({s}64)({s}32){self.expr('u32', d)} * ({s}32){self.expr('i32', d)} + ({s}64){e()})"
            if which == "bits":
                return f"({t})bits_f64({self.expr('f64', d)})"
            return f"({t})((((u128){e()} << 64 | (u64){e()}) + (((u128){e()} << 64) | (u64){e()})) >> {r.choice([0, 40, 64])})"
        # parts of one value put together in another order
        if bits >= 16:
            half = bits // 2
            u = unsigned(t)
            return f"({t})(({u})({u}){e(u)} << {half} | ({u}){e(u)} >> {half})"
        return f"({t})({e()} + {e()})"

    def float_expr(self, t, d):
        r = self.rng
        e = lambda: self.expr(t, d)
        suffix = {"f16": "f16", "f32": "f", "f64": ""}[t]
        choices = ["arith"] * 8 + ["select", "select", "neg", "abs", "from_int", "from_int", "convert", "convert", "copysign"]
        if t != "f16":
            choices += ["divide", "fma", "fma", "sqrt", "round", "round", "of_bits", "load", "ldexp", "frexp"]
        else:
            choices += ["round16", "of_bits", "load"]
        pick = r.choice(choices)
        if pick == "arith":
            return f"({t})({e()} {r.choice(['+', '-', '*'])} {e()})"
        if pick == "divide":
            return f"({e()} / {e()})"
        if pick == "fma":
            return f"__builtin_fma{suffix}({e()}, {e()}, {e()})"
        if pick == "sqrt":
            return f"__builtin_sqrt{suffix}(__builtin_fabs{suffix}({e()}))"
        if pick == "round":
            return f"__builtin_{r.choice(['floor', 'ceil', 'trunc', 'rint', 'round'])}{suffix}({e()})"
        if pick == "round16":
            return f"(f16)__builtin_{r.choice(['floor', 'ceil', 'trunc', 'rint'])}f((f32){e()})"
        if pick == "select":
            return f"({self.cond(d)} ? {e()} : {e()})"
        if pick == "neg":
            return f"(-{e()})"
        if pick == "abs":
            return f"({t})__builtin_fabs{'f' if t != 'f64' else ''}({e()})"
        if pick == "copysign":
            s = "f" if t != "f64" else ""
            return f"({t})__builtin_copysign{s}({e()}, of_{t}(bits_{t}({e()})))"
        if pick == "from_int":
            if t == "f16":
                return f"(f16){self.expr(r.choice(['i16', 'u16', 'i8', 'u8']), d)}"
            return f"({t}){self.expr(r.choice(INTS), d)}"
        if pick == "convert":
            other = {"f16": "f32", "f32": r.choice(["f64", "f16"]), "f64": "f32"}[t]
            if t == "f16":
                # clang 19 makes one v_fma_mixlo_f16 with +0 of a product that is narrowed, and loses the sign of -0
                return f"(f16)of_f32(bits_f32({self.expr(other, d)}))"
            return f"({t}){self.expr(other, d)}"
        if pick == "of_bits":
            u = {"f16": "u16", "f32": "u32", "f64": "u64"}[t]
            return f"of_{t}({self.expr(u, d)})"
        if pick == "load":
            return self.load(t, "0", min(d, 1)) if not self.in_function else e()
        if pick == "ldexp":
            return f"__builtin_ldexp{suffix}({e()}, (i32)({self.expr('u32', d)} & 63) - 32)"
        n = r.choice(["m", "e"])
        if n == "m":
            return f"({{ i32 e_; frexp_{t}({e()}, &e_); }})"
        return f"({{ i32 e_; frexp_{t}({e()}, &e_); ({t})e_; }})"

    def vector_expr(self, t, depth):
        r = self.rng
        element, count = t.split("x")
        count = int(count)
        names = self.variables(t)
        if depth <= 0 or r.random() < 0.2:
            if names and r.random() < 0.7:
                return r.choice(names)
            return f"({t}){{{', '.join(self.expr(element, 0) for _ in range(count))}}}"
        d = depth - 1
        e = lambda: self.vector_expr(t, d)
        if element[0] == "f":
            pick = r.choice(["arith", "arith", "arith", "shuffle", "build"])
            if pick == "arith":
                return f"({e()} {r.choice(['+', '-', '*'])} {e()})"
        else:
            pick = r.choice(["arith", "arith", "logic", "shift", "shuffle", "minmax", "saturate", "build", "splat"])
            if pick == "arith":
                return f"({e()} {r.choice(['+', '-', '*'])} {e()})"
            if pick == "logic":
                return f"({e()} {r.choice(['&', '|', '^'])} {e()})"
            if pick == "shift":
                return f"({e()} {r.choice(['<<', '>>'])} ({e()} & ({element}){width(element) - 1}))"
            if pick == "minmax":
                return f"__builtin_elementwise_{r.choice(['min', 'max'])}({e()}, {e()})"
            if pick == "saturate":
                return f"__builtin_elementwise_{r.choice(['add', 'sub'])}_sat({e()}, {e()})"
            if pick == "splat":
                return f"({e()} + ({t})({self.expr(element, d)}))"
        if pick == "shuffle":
            lanes = ", ".join(str(r.randrange(2 * count)) for _ in range(count))
            return f"__builtin_shufflevector({e()}, {e()}, {lanes})"
        return f"({t}){{{', '.join(self.expr(element, d) for _ in range(count))}}}"

    # ---- statements ------------------------------------------------------------------------------------------------
    def block(self, depth, statements):
        self.scopes.append([])
        text = "".join(self.statement(depth) for _ in range(statements))
        self.scopes.pop()
        return "{\n" + text + "}\n"

    def statement(self, depth):
        r = self.rng
        choices = ["assign"] * 6 + ["declare"] * 3
        if not self.in_function:
            choices += ["store"] * (1 + int(self.memory_share * 10)) + ["atomic"]
        if depth > 0:
            choices += ["if", "if", "for", "switch", "while", "array"]
        pick = r.choice(choices)
        if pick == "declare":
            t = r.choice(VECTORS) if r.random() < 0.25 else self.scalar_type()
            n = self.name("v")
            text = f"{t} {n} = {self.expr(t, 3)};\n"
            self.declare(t, n)
            return text
        if pick == "assign":
            every = [(n, t) for s in self.scopes for n, t in s if not n.startswith(("lane", "k"))]
            if not every:
                return ""
            n, t = r.choice(every)
            if "x" in t and r.random() < 0.4:
                element, count = t.split("x")
                i = str(r.randrange(int(count))) if r.random() < 0.6 else self.index(int(count), 1)
                return f"{n}[{i}] = {self.expr(element, 3)};\n"
            return f"{n} = {self.expr(t, 4)};\n"
        if pick == "store":
            t = self.scalar_type()
            place, total = r.choice([("mem", 256), ("mem", 256), ("lds", 64)])
            space = "LOCAL" if place == "lds" else "GLOBAL"
            u = "u" + t[1:]
            value = self.expr(t, 3)
            value = f"bits_{t}({value})" if is_float(t) else f"({u}){value}"
            return f"(({u} {space}*){place})[{self.index(total // (width(t) // 8), 2)}] = {value};\n"
        if pick == "atomic":
            t = r.choice(["u32", "u32", "i32", "u64", "i64"])
            place, total = r.choice([("mem", 256), ("lds", 64)])
            space = "LOCAL" if place == "lds" else "GLOBAL"
            p = f"(({t} {space}*){place} + {self.index(total // (width(t) // 8), 1)})"
            op = r.choice(["add", "sub", "and", "or", "xor", "min", "max", "exchange", "compare"])
            n = self.name("v")
            if op == "exchange":
                text = f"{t} {n} = __atomic_exchange_n({p}, {self.expr(t, 2)}, __ATOMIC_RELAXED);\n"
            elif op == "compare":
                text = (f"{t} {n} = {self.expr(t, 2)};\n{{ {t} {space}*p_ = {p}; if (!({self.expr('u32', 1)} & 1)) {n} = *p_;\n"
                        f"__atomic_compare_exchange_n(p_, &{n}, {self.expr(t, 2)}, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED); }}\n")
            else:
                text = f"{t} {n} = __atomic_fetch_{op}({p}, {self.expr(t, 2)}, __ATOMIC_RELAXED);\n"
            self.declare(t, n)
            return text
        if pick == "if":
            text = f"if {self.cond(2)} " + self.block(depth - 1, r.randint(1, 4))
            if r.random() < 0.5:
                text += "else " + self.block(depth - 1, r.randint(1, 4))
            return text
        if pick == "for":
            k = self.name("k")
            count = self.index(8, 2) if r.random() < 0.7 else str(r.randint(1, 5))
            self.scopes.append([(k, "u32")])
            self.loops += 1
            body = self.block(depth - 1, r.randint(1, 4))
            self.loops -= 1
            self.scopes.pop()
            return f"for (u32 {k} = 0; {k} < {count}; {k}++) {body}" if count.isdigit() else \
                f"{{ u32 n_{k} = {count};\nfor (u32 {k} = 0; {k} < n_{k}; {k}++) {body}}}\n"
        if pick == "while":
            k = self.name("k")
            self.scopes.append([(k, "u32")])
            self.loops += 1
            body = self.block(depth - 1, r.randint(1, 3))
            leave = f"if {self.cond(1)} {r.choice(['break', 'continue'])};\n"
            self.loops -= 1
            self.scopes.pop()
            return f"{{ u32 {k} = {self.index(16, 2)};\nwhile ({k}-- > 0) {{\n{leave}{body}}} }}\n"
        if pick == "switch":
            text = f"switch {self.index(8, 2)} {{\n"
            for case in r.sample(range(8), r.randint(2, 7)):
                text += f"case {case}: " + self.block(depth - 1, r.randint(1, 2)) + "break;\n"
            return text + "default: " + self.block(depth - 1, 1) + "}\n"
        # an array indexed by lane-dependent values
        t = r.choice(["u8", "u16", "u32", "u64", "i32", "f32", "f64", "i16"])
        count = r.choice([4, 8, 16])
        a, k = self.name("a"), self.name("k")
        text = f"{t} {a}[{count}];\nfor (u32 {k} = 0; {k} < {count}; {k}++) {a}[{k}] = ({t})({k} * {r.randint(1, 99)}u);\n"
        for _ in range(r.randint(1, 4)):
            text += f"{a}[{self.index(count, 2)}] = {self.expr(t, 2)};\n"
        n = self.name("v")
        text += f"{t} {n} = {a}[{self.index(count, 2)}] + {a}[{self.index(count, 2)}];\n"
        self.declare(t, n)
        return text

    # ---- the whole -------------------------------------------------------------------------------------------------
    def function(self):
        r = self.rng
        t = self.scalar_type()
        params = [self.scalar_type() for _ in range(r.randint(1, 6))]
        n = self.name("f")
        self.in_function = True
        self.scopes = [[(f"p{i}", p) for i, p in enumerate(params)]]
        self.scopes.append([])
        body = "".join(self.statement(2) for _ in range(r.randint(2, 5)))
        result = self.expr(t, 3)
        self.scopes = []
        self.in_function = False
        head = ", ".join(f"{p} p{i}" for i, p in enumerate(params))
        self.functions.append((n, t, params))
        return f"FUNCTION {t} {n}({head}) {{\n{body}return {result};\n}}\n"

    def text(self):
        r = self.rng
        out = '#include "random.h"\n'
        for _ in range(r.randint(0, 2)):
            t, count, n = r.choice(["u8", "i16", "u32", "i32", "u64"]), r.choice([8, 16, 32]), self.name("t")
            out += f"static const {t} {n}[{count}] = {{{', '.join(self.constant(t) for _ in range(count))}}};\n"
            self.tables.append((n, t, count))
        for _ in range(r.choice([0, 1, 2])):
            out += self.function()
        self.calls = 3
        self.scopes = [[("lane", "u32")]]
        body = ""
        for t in ["u32", "i32", "u64", "i64", "f32", "f64", "u16", "i16", "u8", "i8", "f16"]:
            n = self.name("v")
            size = width(t) // 8
            u = "u" + t[1:]
            word = f"((const {u} GLOBAL*)in)[(lane * {r.choice([1, 3, 5, 7])} + {r.randint(0, 99)}) & {4096 // size - 1}]"
            body += f"{t} {n} = " + (f"of_{t}({word})" if is_float(t) else f"({t}){word}") + ";\n"
            self.declare(t, n)
        body += "".join(self.statement(3) for _ in range(r.randint(8, 22)))
        # every variable that is still in scope is a result
        results = [(n, t) for n, t in self.scopes[0] if n != "lane"]
        words = []
        for n, t in results:
            element, count = (t.split("x") + ["0"])[:2]
            parts = [f"{n}[{i}]" for i in range(int(count))] or [n]
            for p in parts:
                words.append(f"(u64)bits_{element}({p})" if is_float(element) else f"(u64)(u{element[1:]}){p}")
        body += "".join(f"out[{i}] = {w};\n" for i, w in enumerate(words))
        out += f"#define RESULTS {len(words)}\n"
        out += ("INLINE void body(u32 lane, const u8 GLOBAL* in, u8 GLOBAL* mem, u8 LOCAL* lds, u64 GLOBAL* out) {\n"
                + body + "}\n#include \"ends.h\"\n")
        return out


def generate(seed):
    """The C text of the program of `seed`."""
    return Program(seed).text()


if __name__ == "__main__":
    import sys
    print(generate(int(sys.argv[1])), end="")
