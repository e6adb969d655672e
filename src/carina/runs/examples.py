"""Few-shot examples: cases with their right answers that a model sees before each case that it is asked about.

All cases of a protocol get the same examples, so that a service can keep them in its prompt cache. No example is of a
patient of whom a case is asked.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

import msgspec
import polars as pl

from carina.cases import Benchmark, Case, open_benchmark
from carina.cases.messages import Message
from carina.models import ModelName, Reply
from carina.runs.images import EXAMPLE, CaseImages
from carina.runs.options import ExampleRequest, RunOptions, rank_by_stratum
from carina.runs.prompts import introduce_example, write_key_as_answer
from carina.runs.records import Example, Policy, Prompts
from carina.runs.user_prompts import check_model_takes
from carina.runs.walk import Walk, count_example_images
from carina.store.counts import format_count
from carina.store.errors import CarinaError


def prepare_prompts(bench: Benchmark, model: ModelName, options: RunOptions) -> RunOptions:
    """The options with the examples that were asked for, after checking that the model takes such prompts.

    Raises:
        CarinaError: The model would ignore a part of the prompts, or there are not enough examples.
    """
    check_model_takes(model, options.prompts, has_examples=options.examples is not None)
    if options.examples is None:
        return options
    shown = tuple(_choose_examples(bench, options.examples, options))
    return replace(options, prompts=msgspec.structs.replace(options.prompts, examples=shown))


def open_images(bench: Benchmark, options: RunOptions) -> CaseImages:
    """The images of a run as they are sent, those of its examples included."""
    images = CaseImages(bench, max_side=options.max_side, blind=options.blind)
    request, examples = options.examples, options.prompts.examples
    if request is not None and examples:
        source = _open(request, verify_images=options.verify_images)
        shown = CaseImages(source, max_side=options.max_side, blind=options.blind)
        for case in source.pick(example_id(one) for one in examples):
            shown.add(case)
        images.show_examples(shown)
    return images


def example_id(example: Example) -> str:
    """Id of the case that an example shows."""
    return example.case.removeprefix(EXAMPLE)


def open_examples(options: RunOptions) -> Benchmark | None:
    """The benchmark of the examples; None for a run without examples."""
    return None if options.examples is None else _open(options.examples, verify_images=options.verify_images)


def _open(request: ExampleRequest, *, verify_images: bool) -> Benchmark:
    return open_benchmark(request.benchmark, request.images, verify=False, verify_images=verify_images)


# ---- selection ------------------------------------------------------------------------------------------------------


def _choose_examples(bench: Benchmark, request: ExampleRequest, options: RunOptions) -> Iterator[Example]:
    """Examples for every protocol of a benchmark, one of every stratum before a second one of any."""
    source = open_benchmark(request.benchmark, request.images, verify_images=options.verify_images)
    columns = ["id", "protocol", "target", "path", "patient", "split"]
    table = source.table(columns).collect()
    patients = _patients_of(bench, options.split)
    for protocol in sorted(bench.table(["protocol"]).collect()["protocol"].unique()):
        offered = table.filter(pl.col("protocol") == protocol)
        if offered.is_empty():
            raise CarinaError(
                f"{request.benchmark}: has no cases of the protocol {protocol}, which {bench.directory} asks; choose "
                "another benchmark for the examples"
            )
        own = offered if request.split is None else offered.filter(pl.col("split") == request.split)
        others = own.filter(pl.col("patient").is_not_null() & ~pl.col("patient").is_in(list(patients)))
        if others.height < request.per_protocol:
            raise CarinaError(_explain_lack(bench, request, options, protocol, (own.height, others.height)))
        ranked = rank_by_stratum(others.select("id", "protocol", "target", "path").rows(), options.seed)
        chosen = _within_limit(source, ranked, request, options)
        source.require_sound([case.id for case in chosen])
        for number, case in enumerate(chosen, start=1):
            yield make_example(case, options.policy, options.prompts, number=number)


def _patients_of(bench: Benchmark, split: str | None) -> Collection[str]:
    """Patients of whom cases are asked, whatever number of cases is selected: a run may be extended."""
    table = bench.table(["patient", "split"]).collect()
    asked = (table if split is None else table.filter(pl.col("split") == split))["patient"]
    unknown = asked.null_count()
    if unknown:
        raise CarinaError(
            f"{bench.directory}: {format_count(unknown, 'case')} without a patient id, so no example can be shown to "
            "be of another patient; examples need a benchmark with patient ids"
        )
    return set(asked.to_list())


def _explain_lack(
    bench: Benchmark, request: ExampleRequest, options: RunOptions, protocol: str, found: tuple[int, int]
) -> str:
    where = str(request.benchmark) + ("" if request.split is None else f", split {request.split}")
    asked = str(bench.directory) + ("" if options.split is None else f", split {options.split}")
    return (
        f"{where}: {format_count(found[0], 'case')} of the protocol {protocol}, {found[1]} of them of a patient who is "
        f"known and not asked about in {asked}; expected {request.per_protocol} or more. Draw examples from another "
        "split than the one that is asked (--split, --examples-split), or from a benchmark of other patients"
    )


def _within_limit(
    source: Benchmark, ranked: list[str], request: ExampleRequest, options: RunOptions
) -> list[Case]:
    """The first cases in order of rank that together have no more images than allowed."""
    chosen: list[Case] = []
    images = 0
    for name in ranked:
        if len(chosen) == request.per_protocol:
            break
        case = source[name]
        number = count_example_images([make_example(case, options.policy, options.prompts, number=1)])
        if images + number <= request.max_images:
            chosen.append(case)
            images += number
    if len(chosen) < request.per_protocol:
        raise CarinaError(
            f"{request.benchmark}: only {format_count(len(chosen), 'example')} with {request.max_images} images or "
            f"fewer in all, expected {request.per_protocol}; ask for fewer examples or raise --max-example-images"
        )
    return chosen


def make_example(case: Case, policy: Policy, prompts: Prompts, *, number: int) -> Example:
    """A case as a model has to answer it, with the right answers."""
    walk = Walk(case, Policy(profile=policy.profile), msgspec.structs.replace(prompts, examples=()))
    messages: tuple[Message, ...] = ()
    while (turn := walk.turn) is not None:
        key = write_key_as_answer(case, case.step(turn.step.id), policy.profile)
        messages = (*turn.messages, Message(role="assistant", step=turn.step.id, text=key))
        walk.take(Reply(text=key, stop="stop"))
    first = messages[0]
    intro = msgspec.structs.replace(first, text=f"{introduce_example(number)}\n{first.text}")
    return Example(case=f"{EXAMPLE}{case.id}", protocol=case.protocol, messages=(intro, *messages[1:]))
