"""What an audit of conversations costs: microseconds a question for every gate, on one core, and what it keeps.

    python benchmarks/trek_audit.py BENCH --questions 500000

BENCH is a trek benchmark. Its conversations are repeated under new ids until there are as many questions; each gate is
timed by the processor time of its thread. The bound is 60 us a question, so that 11.28 million take 11 minutes.
"""

import argparse
import resource
import time
from collections.abc import Iterator
from itertools import count, islice

import msgspec

from carina.cases import Case, open_benchmark
from carina.cases.audit import Thresholds, common_gates
from carina.trek.audit import trek_gates

ALL = 11.28e6
BOUND = 60.0


def repeated(cases: list[Case]) -> Iterator[Case]:
    """The same conversations again and again, of other patients."""
    for turn in count():
        for case in cases:
            studies = {
                name: f"{study}-{turn}" if (study := getattr(case, name)) else None
                for name in ("study", "reference_study", "later_study", "patient")
            }
            yield msgspec.structs.replace(case, id=f"{case.id}-{turn}", **studies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--questions", type=int, default=200_000)
    options = parser.parse_args()
    cases = list(islice(open_benchmark(options.bench), 4096))
    limits = Thresholds(slack=0.05, most_cases=1500)  # as the command sets them
    gates = [("common", gate) for gate in common_gates(limits)] + [
        ("trek", gate) for gate in trek_gates(limits)
    ]
    spent = [0.0] * len(gates)
    questions = conversations = 0
    for case in repeated(cases):
        if questions >= options.questions:
            break
        conversations += 1
        questions += len(case.steps)
        for at, (_, gate) in enumerate(gates):
            begun = time.thread_time()
            gate.see(case)
            spent[at] += time.thread_time() - begun
    begun = time.thread_time()
    for _, gate in gates:
        gate.result()
    finish = time.thread_time() - begun
    print(f"{conversations} conversations, {questions} questions")
    print(f"{'gates':<8} {'gate':<12} {'us a question':>13}")
    for seconds, (kind, gate) in sorted(zip(spent, gates, strict=True), key=lambda entry: -entry[0]):
        print(f"{kind:<8} {type(gate).__name__:<12} {seconds / questions * 1e6:13.2f}")
    for kind in ("common", "trek"):
        each = sum(s for s, (of, _) in zip(spent, gates, strict=True) if of == kind) / questions * 1e6
        print(f"{kind:<8} {'all':<12} {each:13.2f}")
    each = sum(spent) / questions * 1e6
    print(f"all gates: {each:.1f} us a question, {each / BOUND:.2f} of the bound of {BOUND:g}")
    print(
        f"11.28 million questions: {ALL * each / 1e6 / 60:.1f} minutes, then {finish:.0f} s for the results"
    )
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
