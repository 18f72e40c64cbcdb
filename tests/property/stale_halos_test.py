"""What `peal check` accepts never reads a stale halo: random specs, executed point by point here.

Each spec has its fields cut over a few ranks; exchanges, messages, tasks that read around their
points, tasks that write parts of fields, in loops, under conditions of counters, of ranks and counters
and of run-time values, with swaps. Here every point of every rank has a version. A halo point is stale where its
owner's version is another one. A spec that reads one must be refused; one that never does should
be accepted: how many are not is counted, and bounded.

stale_halos_test.py PEAL [SPECS [FIRST SEED]]
"""
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile

NAMES = ("a", "b", "c")
STEPS = 7


class Sim:
    """A job of ranks in two dimensions, point by point."""

    def __init__(self, spec):
        self.spec = spec
        self.dims, self.periodic = spec["dims"], spec["periodic"]
        self.size, self.halo = spec["size"], spec["halo"]
        self.ranks = list(itertools.product(range(self.dims[1]), range(self.dims[0])))
        self.part = {}
        for ry, rx in self.ranks:
            self.part[ry, rx] = tuple(self.cut(k, (rx, ry)[k]) for k in range(2))
        self.version, self.clock = {}, 0
        self.values = {"x": 0, "y": 0}
        self.stale = None
        for name in NAMES:
            for rank in self.ranks:
                for point in self.stored(rank):
                    self.version[name, rank, point] = 0
        self.flight = {}

    def cut(self, k, position):
        base, longer = divmod(self.size[k], self.dims[k])
        first = position * base + min(position, longer)
        return first, first + base + (position < longer)

    def has_neighbour(self, rank, k, side):
        at = rank[1 - k] + side
        return self.periodic[k] or 0 <= at < self.dims[k]

    def stored(self, rank):
        part, h = self.part[rank], self.halo
        return itertools.product(*(range(part[k][0] - h, part[k][1] + h) for k in range(2)))

    def direction(self, rank, point):
        """The direction of the owner; (0, 0): mine, and so are ghost points at the ends."""
        out = []
        for k in range(2):
            lo, hi = self.part[rank][k]
            d = -1 if point[k] < lo else 1 if point[k] >= hi else 0
            out.append(d if d and self.has_neighbour(rank, k, d) else 0)
        return tuple(out)

    def owner(self, rank, point):
        dx, dy = self.direction(rank, point)
        other = ((rank[0] + dy) % self.dims[1], (rank[1] + dx) % self.dims[0])
        moved = list(point)
        for k, d in enumerate((dx, dy)):
            at = rank[1 - k] + d
            moved[k] += self.size[k] if at < 0 else -self.size[k] if at >= self.dims[k] else 0
        return other, tuple(moved)

    def is_fresh(self, name, rank, point):
        other, at = self.owner(rank, point)
        return self.version[name, rank, point] == self.version[name, other, at]

    def box(self, rank, how):
        """Points that a task visits, as a pair of ranges."""
        part = self.part[rank]
        kind, amount = how
        if kind == "all":
            return part
        if kind == "part":  # so many of the halo's points, too
            return tuple((lo - (amount if self.has_neighbour(rank, k, -1) else 0),
                          hi + (amount if self.has_neighbour(rank, k, 1) else 0))
                         for k, (lo, hi) in enumerate(part))
        if kind == "shrink":
            return tuple((max(lo, amount), min(hi, self.size[k] - amount)) for k, (lo, hi) in enumerate(part))
        return tuple((max(lo, amount[k][0]), min(hi, amount[k][1])) for k, (lo, hi) in enumerate(part))

    def read(self, s, name, rank, box, reach, star):
        for y in range(*box[1]):
            for x in range(*box[0]):
                for dy in range(-reach, reach + 1):
                    for dx in range(-reach, reach + 1):
                        if star and dx and dy:
                            continue
                        point = (x + dx, y + dy)
                        if (name, rank, point) in self.version and not self.is_fresh(name, rank, point):
                            self.stale = self.stale or (s["line"], name, rank, point)

    def task(self, s):
        self.clock += 1
        for rank in self.ranks:
            box = self.box(rank, s["box"])
            if box[0][0] >= box[0][1] or box[1][0] >= box[1][1]:
                continue
            for name, reach, star in s["read"]:
                self.read(s, name, rank, box, reach, star)
            if s["update"] is not None:
                self.read(s, s["write"], rank, box, s["update"], True)
        for rank in self.ranks:  # redundant points get what their owners get
            box = self.box(rank, s["box"])
            for y in range(*box[1]):
                for x in range(*box[0]):
                    self.version[s["write"], rank, (x, y)] = self.clock
        # a halo point that its owner has not written is the writer's, and as good as new
        for rank in self.ranks:
            box = self.box(rank, s["box"])
            for y in range(*box[1]):
                for x in range(*box[0]):
                    other, at = self.owner(rank, (x, y))
                    self.version[s["write"], rank, (x, y)] = self.version[s["write"], other, at]

    def exchange(self, s):
        name, reach, star = s["item"]
        for rank in self.ranks:
            for point in self.stored(rank):
                d = self.direction(rank, point)
                if d == (0, 0) or (star and d[0] and d[1]):
                    continue
                lo = [self.part[rank][k][0] - reach for k in range(2)]
                hi = [self.part[rank][k][1] + reach for k in range(2)]
                if all(not d[k] or lo[k] <= point[k] < hi[k] for k in range(2)):
                    other, at = self.owner(rank, point)
                    self.version[name, rank, point] = self.version[name, other, at]

    def takes_turn(self, s, rank, counters):
        """Whether it is the turn of the sender of what comes from a direction."""
        if not s["turns"]:
            return True
        counter, modulus, first = s["turns"]
        x, y = ((rank[1 - k] + s["direction"][k]) % self.dims[k] for k in range(2))
        return counters[counter] % modulus == (x + 2 * y + first) % modulus

    def send(self, s, counters):
        for rank in self.ranks:
            for point in self.stored(rank):
                if self.direction(rank, point) == s["direction"] and self.takes_turn(s, rank, counters):
                    other, at = self.owner(rank, point)
                    self.flight[s["number"], rank, point] = self.version[s["name"], other, at]

    def recv(self, s, counters):
        for rank in self.ranks:
            for point in self.stored(rank):
                if self.direction(rank, point) == s["direction"] and self.takes_turn(s, rank, counters):
                    self.version[s["name"], rank, point] = self.flight[s["number"], rank, point]

    def swap(self, s):
        one, other = s["names"]
        for rank in self.ranks:
            for point in self.stored(rank):
                a, b = (one, rank, point), (other, rank, point)
                self.version[a], self.version[b] = self.version[b], self.version[a]

    def holds(self, when, counters):
        text = when.replace("and", " and ").replace("or", " or ")
        return eval(text, {}, {**counters, **self.values})

    def body(self, body, counters):
        for s in body:
            if s["when"] and not self.holds(s["when"], counters):
                continue
            kind = s["kind"]
            if kind == "loop":
                for k in range(s["count"]):
                    self.body(s["body"], {**counters, s["as"]: k})
            elif kind == "set":
                self.values[s["name"]] = eval(s["value"], {}, {**counters, **self.values})
            elif kind in ("send", "recv"):
                getattr(self, kind)(s, counters)
            else:
                getattr(self, kind)(s)

    def run(self):
        self.body(self.spec["setup"], {})
        for step in range(self.spec["steps"]):
            self.body(self.spec["step"], {"step": step})
        return self.stale


class Writer:
    """A random spec: as text for peal, and as what is executed here."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.number, self.lines = 0, []
        r = self.r
        self.halo = r.choice((1, 2, 2, 3))
        self.dims = r.choice(((2, 1), (2, 2), (1, 2), (3, 1), (1, 1), (2, 2)))
        self.size = tuple(d * (self.halo + r.randrange(3)) + r.randrange(2) for d in self.dims)
        self.size = tuple(max(n, d * self.halo) for n, d in zip(self.size, self.dims))
        self.periodic = (r.random() < 0.5, r.random() < 0.4)
        self.with_values = r.random() < 0.4

    def condition(self, counters):
        r = self.r
        if r.random() < 0.65:
            return None
        kinds = [f"{c} % {r.choice((2, 2, 3))} == {r.randrange(2)}" for c in counters]
        kinds += [f"{c} > {r.randrange(4)}" for c in counters] + [f"{c} == 0" for c in counters]
        if self.with_values:
            kinds += ["x < 1", "y == 0", "x < 1 and y == 0"] * 3
        return r.choice(kinds) if kinds else None

    def text(self, s):
        kind, when = s["kind"], s["when"]
        if kind in ("send", "recv") and s["turns"]:
            when = f"{when} and {self.turn(s)}" if when else self.turn(s)
        elif kind == "exchange" and when and s["names_rank"] and "x" not in when and "y" not in when:
            when = f"rank < ranks and {when}"
        more = f", when: {when}" if when else ""
        if kind == "task":
            box = {"all": "a", "part": f"{{a: {{part: {s['box'][1]}}}}}", "shrink": f"{{a: {{grow: -{s['box'][1]}}}}}"}
            where = box.get(s["box"][0]) or f"{{a: {[list(b) for b in s['box'][1]] if s['box'][0] == 'ranges' else ''}}}"
            reads = ", ".join(f"{{{n}: {{{'star' if star else 'grow'}: {k}}}}}" for n, k, star in s["read"])
            out = s["write"]
            if s["update"] is not None:
                touch = f"update: {{{out}: {{star: {s['update']}}}}}, independent: true" if s["update"] else f"update: {out}"
            else:
                touch = f"write: {out}"
            return f"{{task: t{s['line']}, kernel: k, box: {where}, {f'read: [{reads}], ' if reads else ''}{touch}{more}}}"
        if kind == "exchange":
            n, k, star = s["item"]
            return f"{{exchange: {{{n}: {{{'star' if star else 'grow'}: {k}}}}}{more}}}"
        if kind == "swap":
            return f"{{swap: [{', '.join(s['names'])}]{more}}}"
        if kind == "set":
            return f"{{set: {s['name']}, value: \"{s['value']}\"{more}}}"
        d = list(s["direction"])
        back = [-x for x in d]
        if kind == "send":
            return f"{{send: {{{s['name']}: {{border: {back}}}}}, to: {back}, tag: {s['number']}{more}}}"
        return f"{{recv: {{{s['name']}: {{halo: {d}}}}}, from: {d}, tag: {s['number']}{more}}}"

    @staticmethod
    def turn(s):
        """Of the rank itself where it sends, of the one in the direction where it receives."""
        counter, modulus, first = s["turns"]
        x, y = ("rx", "ry") if s["kind"] == "send" else (
            f"(r{a} + {s['direction'][k]} + R{a}) % R{a}" for k, a in enumerate("xy"))
        return f"{counter} % {modulus} == ({x} + 2 * ({y}) + {first}) % {modulus}"

    def task(self):
        r = self.r
        target = r.choice(NAMES)
        kind = r.choice(("all", "all", "all", "part", "part", "shrink", "ranges"))
        amount, room = 0, self.halo
        if kind == "part":
            amount = r.randint(0, self.halo)
            room -= amount
        elif kind == "shrink":
            amount = 1
        elif kind == "ranges":
            amount = tuple((r.randrange(n), n) for n in self.size)
        update = r.choice((None, None, None, 0, min(1, room)))
        if kind in ("shrink", "ranges"):  # what star reaches may be written, says peal: more than here
            update = update and None
        others = [n for n in NAMES if n != target]
        reads = [(n, r.randint(0 if r.random() < 0.3 else min(1, room), room), r.random() < 0.6)
                 for n in others if r.random() < 0.55]
        return {"kind": "task", "box": (kind, amount), "read": reads, "write": target, "update": update}

    def statements(self, counters, count, depth):
        r, out = self.r, []
        while count > 0:
            count -= 1
            roll = r.random()
            s = None
            if roll < 0.42:
                s = self.task()
            elif roll < 0.78:
                full = r.random() < 0.6
                s = {"kind": "exchange", "item": (r.choice(NAMES), self.halo if full else r.randint(1, self.halo),
                                                  r.random() < 0.35), "names_rank": r.random() < 0.3}
            elif roll < 0.84:
                s = {"kind": "swap", "names": tuple(r.sample(NAMES, 2))}
            elif roll < 0.90 and self.with_values:
                s = {"kind": "set", "name": r.choice("xy"), "value": r.choice(
                    [f"{c} % 3" for c in counters] + ["(x + 1) % 3", "1 - y"] if counters else ["0", "1"])}
            elif roll < 0.96 and depth < 2:
                self.number += 1
                name = f"k{self.number}"
                s = {"kind": "loop", "as": name, "count": r.randint(0, 4),
                     "body": self.statements(counters + [name], r.randint(2, 4), depth + 1)}
            elif depth < 2:
                out += self.message(counters)
                continue
            if s:
                s["when"] = self.condition(counters)
                out.append(s)
        return out

    def message(self, counters):
        """A halo by hand: all directions or one, perhaps with something between."""
        r, name, when = self.r, self.r.choice(NAMES), self.condition(counters)
        all_of = [d for d in itertools.product((-1, 0, 1), repeat=2) if d != (0, 0)]
        chosen = all_of if r.random() < 0.5 else [d for d in all_of if 0 in d] if r.random() < 0.7 else [r.choice(all_of)]
        sends, recvs, turns = [], [], None
        if counters and r.random() < 0.4 and not (when and ("x" in when or "y" in when)):
            turns = (r.choice(counters), r.choice((2, 2, 3)), r.randrange(2))
        for d in chosen:
            self.number += 1
            same = {"name": name, "direction": d, "number": self.number, "when": when, "turns": turns}
            sends.append({"kind": "send", **same})
            recvs.append({"kind": "recv", **same})
        between = self.task() if r.random() < 0.4 else None
        if between:
            between["when"] = None
        return sends + ([between] if between else []) + recvs

    def lay(self, body, indent):
        for s in body:
            s["line"] = len(self.lines) + 1
            if s["kind"] != "loop":
                self.lines.append(" " * indent + "- " + self.text(s))
                continue
            self.lines.append(" " * indent + f"- repeat: {s['count']}")
            self.lines.append(" " * indent + f"  as: {s['as']}")
            if s["when"]:
                self.lines.append(" " * indent + f"  when: {s['when']}")
            self.lines.append(" " * indent + "  step:")
            self.lay(s["body"], indent + 4)

    def spec(self):
        r = self.r
        spec = {"dims": self.dims, "periodic": self.periodic, "size": self.size, "halo": self.halo,
                "steps": r.choice((1, 2, STEPS, STEPS)),
                "setup": self.statements([], r.randint(0, 3), 1)}
        self.lines = ["peal: 1", "kernels: k.c",
                      f"topology: {{dims: {list(self.dims)}, periodic: {str(list(self.periodic)).lower()}}}",
                      f"fields: {{a: {{size: {list(self.size)}, halo: {self.halo}}}, b: {{like: a}}, c: {{like: a}}}}",
                      "buffers: {x: {type: i64}, y: {type: i64}}"]
        spec["step"] = self.statements(["step"], r.randint(2, 7), 0)
        if spec["setup"]:
            self.lines.append("setup:")
            self.lay(spec["setup"], 0)
        self.lines += [f"repeat: {spec['steps']}", "step:"]
        self.lay(spec["step"], 0)
        return spec, "\n".join(self.lines) + "\n"


def check(peal, path, ranks):
    done = subprocess.run([peal, "check", path, "-n", str(ranks)], capture_output=True, text=True)
    codes = set(re.findall(r"error: .*\[(E\d+)\]", done.stderr + done.stdout))
    return done.returncode, codes, done.stderr + done.stdout


def main():
    peal, specs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 250
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    sound = unsound = refused = other = missed = 0
    refused_values = sound_values = 0
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "k.c"), "w") as file:
            file.write("/* `peal check` wants kernel k to be named here, and compiles nothing */\n")
        path = os.path.join(folder, "t.yaml")
        for seed in range(first, first + specs):
            writer = Writer(seed)
            spec, text = writer.spec()
            with open(path, "w") as file:
                file.write(text)
            status, codes, said = check(peal, path, writer.dims[0] * writer.dims[1])
            codes -= {"E210", "E211"}
            if status and codes - {"E148"} or (status and not codes and status != 4):
                other += 1  # not about halos: a footprint that is too wide, a message's condition
                if "-v" in sys.argv:
                    print(seed, said.splitlines()[0])
                continue
            stale = Sim(spec).run()
            is_refused = "E148" in codes
            if stale and not is_refused:
                missed += 1
                print(f"seed {seed}: line {stale[0]} reads stale {stale[1]} on {stale[2]} at {stale[3]}, not found:\n{text}")
            unsound += bool(stale)
            if not stale:
                sound += 1
                sound_values += writer.with_values
                refused += is_refused
                refused_values += is_refused and writer.with_values
                if is_refused and "-v" in sys.argv:
                    print(f"seed {seed}: sound, refused {'(values)' if writer.with_values else ''}:\n{text}\n{said}")
    print(f"{unsound} specs read stale halos, {missed} not found; {sound} are sound, of which {refused} were refused "
          f"({refused_values} of {sound_values} with run-time conditions); {other} wrong otherwise")
    if missed or unsound < specs // 20 or sound < specs // 20:
        sys.exit("accepted, but stale; or too few specs of a kind")
    if refused > refused_values:
        sys.exit("sound specs without run-time conditions are refused")
    if refused_values * 5 > sound_values:
        sys.exit("too many sound specs with run-time conditions are refused")


main()
