"""Classifiers as ONNX, on a model whose figures are known: how bright the picture is, and where."""

import importlib.util
import json

import numpy as np
import pytest

from carina import models
from carina.cases import Option, Step
from carina.models import Reply
from carina.models.onnx import FindingClassifier, InputSpec, prepare
from carina.runs.classifier import OnnxModel
from carina.store.errors import CarinaError

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")
pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")

PRESENT = Step(id="1", stage=1, task="presence", format="yes_no", question="Is there a mass?", uses=("v1",))
ABSENT = Step(
    id="2", stage=1, task="presence", format="yes_no", question="Is there an effusion?", uses=("v1",)
)
WHERE = Step(id="3", stage=3, task="finding box", format="boxes", question="Where is the mass?", uses=("v1",))


def save_model(path, *, batch="batch", channels=1, side=4, outputs=("p", "g"), log_odds=False):
    """P(mass) is the mean grey value, P(effusion) the rest to 1; for the whole and for each quarter of the picture."""
    from onnx import TensorProto, helper

    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["mean4"]),
        helper.make_node("Flatten", ["mean4"], ["mean"]),
        helper.make_node("Sub", ["one", "mean"], ["rest"]),
        helper.make_node("Concat", ["mean", "rest"], ["whole"], axis=1),
        helper.make_node("AveragePool", ["image"], ["quarter"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Sub", ["one", "quarter"], ["other"]),
        helper.make_node("Concat", ["quarter", "other"], ["parts"], axis=1),
    ]
    for made, output in (("whole", outputs[0]), ("parts", outputs[1])):
        if log_odds:
            nodes += [
                helper.make_node("Sub", ["one", made], [f"not {made}"]),
                helper.make_node("Div", [made, f"not {made}"], [f"odds {made}"]),
                helper.make_node("Log", [f"odds {made}"], [output]),
            ]
        else:
            nodes.append(helper.make_node("Identity", [made], [output]))
    graph = helper.make_graph(
        nodes,
        "brightness",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, channels, side, side])],
        [
            helper.make_tensor_value_info(outputs[0], TensorProto.FLOAT, [batch, 2]),
            helper.make_tensor_value_info(outputs[1], TensorProto.FLOAT, [batch, 2, side // 2, side // 2]),
        ],
        [one],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def described(**changes):
    return {
        "kind": "carina/classifier",
        "schema": "1.0",
        "input": {"size": [4, 4]},
        "output": "p",
        "findings": ["mass", "effusion"],
        "thresholds": {"mass": 0.6},
        "grid": {"output": "g", "threshold": 0.5},
    } | changes


@pytest.fixture
def saved(tmp_path):
    """The folder of a classifier."""

    def of(description=None, **model):
        path = tmp_path / "bright"
        path.mkdir()
        save_model(path / "model.onnx", **model)
        (path / "carina.json").write_text(json.dumps(described(**(description or {}))))
        return path

    return of


@pytest.fixture
def opened(saved):
    return lambda *args, **named: models.open(f"onnx:{saved(*args, **named)}")


@pytest.fixture
def grey(png):
    """Pictures whose grey value is the number in their case's name, and how often they were asked for."""

    class Pictures:
        def __init__(self):
            self.asked = []

        def __call__(self, case, view):
            self.asked.append((case, view))
            return png(np.full((6, 5), int(case), np.uint8))

    return Pictures()


def texts(replies):
    assert all(reply == Reply(text=reply.text, stop="stop") for reply in replies)
    return [reply.text for reply in replies]


@pytest.mark.parametrize("batch", ["batch", 1], ids=["any batch", "one at a time"])
def test_answers_come_from_the_images(opened, turn, grey, batch):
    model = opened(batch=batch)
    assert model.name == "onnx:bright"
    # 0.6 of 255 is 153: the threshold itself counts.
    turns = [turn(case, ("?", ("v1",)), step=PRESENT) for case in ("152", "153", "255", "0")]
    turns += [turn(case, ("?", ("v1",)), step=ABSENT) for case in ("120", "130")]
    assert texts(model.answer(turns, grey)) == ["No.", "Yes.", "Yes.", "No.", "Yes.", "No."]


def test_log_odds_become_probabilities(opened, turn, grey):
    model = opened({"activation": "sigmoid", "grid": {"output": "g", "activation": "sigmoid"}}, log_odds=True)
    turns = [turn(case, ("?", ("v1",)), step=PRESENT) for case in ("150", "156")]
    assert texts(model.answer(turns, grey)) == ["No.", "Yes."]


def test_an_image_is_predicted_once(opened, turn, grey):
    model = opened()
    turns = [turn("200", ("?", ("v1",)), step=step) for step in (PRESENT, ABSENT, PRESENT)]
    assert texts(model.answer(turns, grey)) == ["Yes.", "No.", "Yes."]
    assert texts(model.answer(turns[:1], grey)) == ["Yes."]
    assert grey.asked == [("200", "v1")]


def test_the_first_image_that_a_question_needs_is_used(opened, turn, grey):
    needs = Step(id="1", stage=1, task="presence", format="yes_no", question="A mass?", uses=("v2", "v3"))
    model = opened()
    model.answer([turn("1", ("Look.", ("v1",)), ("Yes.", ()), ("?", ("v2", "v3")), step=needs)], grey)
    bare = Step(id="1", stage=1, task="presence", format="yes_no", question="A mass?")
    model.answer([turn("2", ("Look.", ("v7",)), ("Yes.", ()), ("?", ("v8",)), step=bare)], grey)
    assert grey.asked == [("1", "v2"), ("2", "v7")]
    # None was shown.
    assert texts(model.answer([turn("3", ("?", ()), step=PRESENT)], grey)) == ["Uncertain."]


def test_the_grid_gives_the_boxes(opened, turn, png):
    picture = np.zeros((40, 40), np.uint8)
    picture[20:, :20] = 255
    (said,) = texts(opened().answer([turn("a", ("?", ("v1",)), step=WHERE)], lambda *_: png(picture)))
    assert said == "mass: [0%, 50%, 50%, 100%]"


def test_a_padded_image_keeps_its_shape(opened, turn, png):
    # 40 x 20 fills the left half of the input: the lower half of the picture is the lower left quarter.
    picture = np.zeros((40, 20), np.uint8)
    picture[20:] = 255
    model = opened({"input": {"size": [4, 4], "fit": "pad"}})
    (said,) = texts(model.answer([turn("a", ("?", ("v1",)), step=WHERE)], lambda *_: png(picture)))
    assert said == "mass: [0%, 50%, 100%, 100%]"


def test_more_images_than_a_batch_holds(opened, turn, grey):
    model = opened()
    model.batch = 3
    cases = [str(n) for n in range(100, 200, 10)]
    replies = model.answer([turn(case, ("?", ("v1",)), step=PRESENT) for case in cases], grey)
    assert texts(replies) == ["Yes." if int(case) >= 153 else "No." for case in cases]


def test_images_are_prepared_as_described(png):
    values = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    made, filled = prepare(png(values), InputSpec(size=(3, 4), mean=(0.5,), std=(0.25,)))
    assert np.allclose(made, (values[None] / 255 - 0.5) / 0.25, atol=1e-6)
    assert filled == (1.0, 1.0)
    spec = InputSpec(size=(6, 4), channels=3, mean=(0.1, 0.2, 0.3), std=(1.0, 2.0, 4.0), fit="pad")
    made, filled = prepare(png(values), spec)
    assert (made.shape, filled) == ((3, 6, 4), (0.5, 1.0))
    for channel, (mean, std) in enumerate(zip((0.1, 0.2, 0.3), (1.0, 2.0, 4.0), strict=True)):
        assert np.allclose(made[channel, :3], (values / 255 - mean) / std, atol=1e-6)
    # What fills the input up is the value that the mean becomes.
    assert not made[:, 3:].any()


def test_a_torch_model_exports_to_the_same_layout(tmp_path, turn, grey):
    """Weights that torch.onnx writes: the way in which reference models are made."""
    torch = pytest.importorskip("torch", reason="the extra torch is not installed")

    class Bright(torch.nn.Module):
        def forward(self, image):
            mean = image.mean(dim=(2, 3))
            return torch.cat([mean, 1 - mean], dim=1)

    path = tmp_path / "bright"
    path.mkdir()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, about itself
        torch.onnx.export(
            Bright().eval(),
            (torch.zeros(2, 1, 4, 4),),
            str(path / "model.onnx"),
            input_names=["image"],
            output_names=["p"],
            dynamic_axes={"image": {0: "batch"}, "p": {0: "batch"}},
            dynamo=False,
        )
    (path / "carina.json").write_text(json.dumps(described(grid=None)))
    model = OnnxModel.open(str(path))
    turns = [turn(case, ("?", ("v1",)), step=PRESENT) for case in ("152", "154", "10")]
    assert texts(model.answer(turns, grey)) == ["No.", "Yes.", "No."]


def test_options_are_chosen_by_number(opened, turn, grey):
    options = tuple(Option(id=name, text=name) for name in ("effusion", "mass", "none of these"))
    asked = Step(
        id="1", stage=2, task="presence", format="choice", question="Which?", options=options, uses=("v1",)
    )
    turns = [turn(case, ("?", ("v1",)), step=asked) for case in ("10", "250", "140")]
    # At 140 of 255 neither is there: 0.55 is below 0.6, 0.45 below 0.5.
    assert texts(opened().answer(turns, grey)) == ["Answer: 1", "Answer: 2", "Answer: 3"]


# ---- refused --------------------------------------------------------------------------------------------------------


def refused(path, **options):
    with pytest.raises(CarinaError) as caught:
        OnnxModel.open(str(path), **options)
    return str(caught.value)


def test_missing_files_are_named(tmp_path, saved):
    assert refused(tmp_path / "no") == (
        f"{tmp_path / 'no'}: no such folder; expected one with model.onnx and carina.json"
    )
    path = saved()
    (path / "model.onnx").unlink()
    assert refused(path) == f"{path / 'model.onnx'}: missing; put the classifier's ONNX file here"
    (path / "carina.json").unlink()
    assert refused(path).startswith(f"{path / 'carina.json'}: missing")


def test_without_the_extra_one_sentence_says_what_to_install(saved, monkeypatch):
    path = saved()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert refused(path) == (
        "this needs onnxruntime: pip install 'carina[onnx]', in a clone pip install -e '.[onnx]'"
    )


def test_a_file_that_is_no_onnx_is_refused(saved):
    path = saved()
    (path / "model.onnx").write_bytes(b"no model")
    assert refused(path).startswith(f"{path / 'model.onnx'}: cannot be loaded as ONNX: ")


@pytest.mark.parametrize(
    ("description", "model", "words"),
    [
        ({"output": "q"}, {}, "carina.json: output 'q' is no output of model.onnx, which has p, g"),
        ({"grid": {"output": "q"}}, {}, "carina.json: grid.output 'q' is no output of model.onnx"),
        (
            {"input": {"size": [8, 8]}},
            {},
            "model.onnx: its input is ['batch', 1, 4, 4], carina.json says (1, 8, 8)",
        ),
        (
            {"input": {"size": [4, 4], "channels": 3}},
            {},
            "carina.json says (3, 4, 4) in batches of any size or of 1",
        ),
        ({}, {"batch": 2}, "model.onnx: its input is [2, 1, 4, 4]"),
    ],
)
def test_a_model_that_is_not_as_described_is_refused(saved, description, model, words):
    assert words in refused(saved(description, **model))


def test_outputs_of_another_shape_are_refused(opened, turn, grey):
    model = opened({"findings": ["mass"], "grid": None})
    with pytest.raises(CarinaError, match=r"output 'p' is float32 \(1, 2\); expected finite numbers, 1 x 1"):
        model.answer([turn("9", ("?", ("v1",)), step=PRESENT)], grey)


def test_outputs_that_are_not_finite_are_refused(opened, turn, grey):
    # The log-odds of 1 are infinite.
    model = opened({"activation": "sigmoid"}, log_odds=True)
    with pytest.raises(CarinaError, match="expected finite numbers"):
        model.answer([turn("255", ("?", ("v1",)), step=PRESENT)], grey)


def test_unknown_devices_are_refused(saved):
    assert refused(saved(), device="abacus").startswith("device 'abacus': onnxruntime does not have it")


def test_a_failure_of_onnxruntime_names_the_model(saved, monkeypatch, png):
    path = saved()
    classifier = FindingClassifier.open(str(path))

    class Broken:
        def run(self, *_):
            raise RuntimeError("[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION\nNon-zero status code")

    monkeypatch.setattr(classifier, "_session", Broken())
    with pytest.raises(CarinaError, match=r"model\.onnx: cannot be run: \[ONNXRuntimeError\] : 6"):
        classifier.predict([png(np.zeros((4, 4), np.uint8))])


@pytest.mark.parametrize("size", [[0, 4], [2**31, 4], [4, 10**6]])
def test_an_input_of_a_size_that_no_classifier_has_is_refused(saved, size):
    path = saved()
    content = json.loads((path / "carina.json").read_text())
    content["input"]["size"] = size
    (path / "carina.json").write_text(json.dumps(content))
    with pytest.raises(CarinaError, match=r"carina\.json: `size` must be"):
        FindingClassifier.open(str(path))
