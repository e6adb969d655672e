"""Every profile against a slow re-computation that follows the projects' descriptions pixel by pixel."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy import ndimage

from carina.maps import PROFILES, Scorer, Thresholds, score_pair
from carina.maps.summary import chexlocalize_interval, chexlocalize_replicates
from carina.models.frame import Frame

SIDE = 56
GRID = 7
NAN = math.nan
Grid = list[list[float]]


def made_pair(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A map of few binary digits, so that sampling it eight or thirty-two times as fine rounds nowhere; and a truth."""
    draw = np.random.default_rng(seed)
    values = draw.integers(0, 1 << 10, (GRID, GRID)).astype(np.float32) / 8192
    row, column = draw.integers(2, 5, 2)
    values[row, column] += 1 / 8
    truth = np.zeros((SIDE, SIDE), bool)
    top, left = draw.integers(8, 30, 2)
    truth[top : top + draw.integers(5, 20), left : left + draw.integers(5, 20)] = True
    truth[50:53, 3:6] = seed % 2 == 0
    return values, truth


SEEDS = range(6)
PAIRS = [made_pair(seed) for seed in SEEDS]
FINDINGS = ["edema" if seed % 3 else "mass" for seed in SEEDS]
FRAME = Frame.stretched(SIDE, SIDE, side=224)


# ---- bringing maps to pixels, one pixel at a time ----


def bilinear(values: np.ndarray, side: int) -> Grid:
    """align_corners=False: pixel i lies at (i + 1/2) * cells / side - 1/2, held to the outermost centres."""

    def along(i: int) -> tuple[int, int, float]:
        at = min(max((i + 0.5) * GRID / side - 0.5, 0.0), GRID - 1.0)
        before = min(int(at), GRID - 2)
        return before, before + 1, at - before

    made = []
    for i in range(side):
        y0, y1, v = along(i)
        row = []
        for j in range(side):
            x0, x1, u = along(j)
            upper = float(values[y0, x0]) * (1 - u) + float(values[y0, x1]) * u
            lower = float(values[y1, x0]) * (1 - u) + float(values[y1, x1]) * u
            row.append(upper * (1 - v) + lower * v)
        made.append(row)
    return made


def aligned(values: np.ndarray) -> Grid:
    """align_corners=True to 224: pixel i lies at i * (cells - 1) / 223."""
    at = [i * (GRID - 1) / 223 for i in range(224)]
    cells = range(GRID)
    rows = np.array([np.interp(at, cells, [float(v) for v in row]) for row in values])
    return [list(row) for row in np.array([np.interp(at, cells, column) for column in rows.T]).T]


def repeated(values: np.ndarray) -> Grid:
    return [[float(values[i // 32][j // 32]) for j in range(224)] for i in range(224)]


def truth_224(truth: np.ndarray) -> list[list[bool]]:
    return [[bool(truth[i * SIDE // 224][j * SIDE // 224]) for j in range(224)] for i in range(224)]


def flat(grid: object) -> list:
    return [value for row in grid for value in row]


# ---- what the projects do ----


def ratio(above: float, below: float) -> float:
    return above / below if below else NAN


def counted(predicted: list[bool], truth: list[bool]) -> tuple[int, int, int, int]:
    hit = sum(p and t for p, t in zip(predicted, truth, strict=True))
    false = sum(p and not t for p, t in zip(predicted, truth, strict=True))
    missed = sum(t and not p for p, t in zip(predicted, truth, strict=True))
    return hit, false, missed, len(truth) - hit - false - missed


def iou(predicted: list[bool], truth: list[bool]) -> float:
    hit, false, missed, _ = counted(predicted, truth)
    return ratio(hit, hit + false + missed)


def dice(predicted: list[bool], truth: list[bool]) -> float:
    hit, false, missed, _ = counted(predicted, truth)
    return ratio(2 * hit, 2 * hit + false + missed)


def tp_only(
    score: Callable[[list[bool], list[bool]], float], predicted: list[bool], truth: list[bool]
) -> float:
    return score(predicted, truth) if any(predicted) and any(truth) else NAN


def minmax(values: list[float]) -> list[float]:
    low = min(values)
    shifted = [v - low for v in values]
    high = max(shifted)
    return [float(np.float32(v) / np.float32(high)) for v in shifted]


def otsu_filled(values: list[float]) -> list[bool]:
    """Cut to 8 bits; the level that most divides the classes, by trying all; small specks dropped, holes filled."""
    grey = [int(np.float32(255) * np.float32(v)) for v in minmax(values)]
    n = len(grey)
    best, highest = 0, -1.0
    for level in range(256):
        low = [g for g in grey if g <= level]
        high = [g for g in grey if g > level]
        if not low or not high:
            continue
        between = len(low) / n * len(high) / n * (sum(low) / len(low) - sum(high) / len(high)) ** 2
        if between > highest + 1e-12:
            best, highest = level, between
    mask = np.array([g > best for g in grey]).reshape(SIDE, SIDE)
    labels, number = ndimage.label(mask, np.ones((3, 3)))
    for label in range(1, number + 1):
        if (labels == label).sum() == 1:
            mask[labels == label] = False
    return [bool(v) for v in ndimage.binary_fill_holes(mask).ravel()]


def check(found: float, expected: float) -> None:
    assert found == pytest.approx(expected, abs=1e-9, rel=0, nan_ok=True)


def scored(
    name: str, tuned: Thresholds | None = None
) -> tuple[list[dict[str, float]], dict[tuple[str, str], float | None]]:
    scorer = Scorer(name, split="test", tuned=tuned)
    for at, (values, truth) in enumerate(PAIRS):
        scorer.add(f"i{at}", FINDINGS[at], values, truth, FRAME)
    cells = scorer.summary(replicates=20)
    figures = {
        (cell.variant, cell.group): cell.value
        for cell in cells
        if cell.average == "micro" and cell.level in ("all", "finding")
    }
    return [row.values for row in scorer.rows()], figures


# ---- one test a profile ----


def test_profile_chexlocalize_equals_a_plain_implementation() -> None:
    thresholds = [0.2 + 0.1 * k for k in range(7)]
    maps = [flat(bilinear(values, SIDE)) for values, _ in PAIRS]
    truths = [flat(truth.tolist()) for _, truth in PAIRS]
    above = [[[s > np.float32(t) for s in minmax(m)] for t in thresholds] for m in maps]
    ious = [[tp_only(iou, p, t) for p in ps] for ps, t in zip(above, truths, strict=True)]

    def best(chosen: list[int]) -> int:
        means = [np.nanmean([ious[at][k] for at in chosen]) for k in range(7)]
        return means.index(max(means))

    validation = Scorer("chexlocalize", split="val")
    for at, (values, truth) in enumerate(PAIRS):
        validation.add(f"v{at}", FINDINGS[at], values, truth, FRAME)
    tuned = validation.tune()
    name = "iou.torch_full.full_image.tuned_iou_minmax7.tp_only.per_image"
    own = {finding: [at for at in SEEDS if FINDINGS[at] == finding] for finding in set(FINDINGS)}
    assert tuned.chosen[name] == {
        "": pytest.approx(thresholds[best(list(SEEDS))]),
        **{finding: pytest.approx(thresholds[best(chosen)]) for finding, chosen in own.items()},
    }

    rows, figures = scored("chexlocalize", tuned)
    pooled = {finding: np.zeros(4, int) for finding in own}
    for at, row in enumerate(rows):
        first = maps[at].index(max(maps[at]))
        check(row["hit.torch_full.full_image.first_argmax.positives.per_image"], float(truths[at][first]))
        lit = otsu_filled(maps[at])
        check(row["iou.torch_full.full_image.otsu_filled.tp_only.per_image"], tp_only(iou, lit, truths[at]))
        check(row["iou.torch_full.full_image.otsu_filled.any_mask.per_image"], iou(lit, truths[at]))
        check(row[name], ious[at][best(own[FINDINGS[at]])])
        pooled[FINDINGS[at]] += counted(lit, truths[at])
    for finding, (hit, false, missed, right) in pooled.items():
        for metric, expected in (
            ("precision", hit / (hit + false)),
            ("recall", hit / (hit + missed)),
            ("specificity", right / (right + false)),
        ):
            check(figures[f"{metric}.torch_full.full_image.otsu_filled.pooled", finding], expected)
    drawn = slow_replicates(
        [[row[name] if FINDINGS[at] == f else NAN for f in sorted(own)] for at, row in enumerate(rows)]
    )
    for finding, column in zip(sorted(own), np.array(drawn).T, strict=True):
        check(figures[name, finding], round(float(np.nanmean(column)), 3))


def slow_replicates(table: list[list[float]], replicates: int = 1000) -> list[list[float]]:
    """Rows drawn by numpy's global legacy stream after seed 0, and the mean of each column without NaN."""
    np.random.seed(0)  # noqa: NPY002 - the stream that is reproduced
    made = []
    for _ in range(replicates):
        chosen = np.random.choice(len(table), size=len(table), replace=True)  # noqa: NPY002
        columns = zip(*(table[at] for at in chosen), strict=True)
        kept = [[v for v in column if not math.isnan(v)] for column in columns]
        made.append([sum(k) / len(k) if k else NAN for k in kept])
    return made


def test_chexlocalize_intervals_equal_the_slow_loop_and_have_no_upper_bound_with_few_positives() -> None:
    draw = np.random.default_rng(3)
    table = draw.random((60, 3))
    table[draw.random(table.shape) < 0.3] = NAN
    table[:, 2] = NAN
    table[5, 2] = 0.25  # drawn in two of three replicates
    slow = np.array(slow_replicates(table.tolist()))
    np.testing.assert_allclose(chexlocalize_replicates(table), slow, rtol=0, atol=1e-12)
    for column in slow.T[:2]:
        ordered = sorted(column)
        expected = (round(sum(ordered) / 1000, 3), round(ordered[24], 3), round(ordered[974], 3))
        assert chexlocalize_interval(column) == pytest.approx(expected)
    mean, low, high = chexlocalize_interval(slow[:, 2])
    assert (mean, low) == (0.25, 0.25)
    assert math.isnan(high)


def test_profile_medklip_equals_a_plain_implementation() -> None:
    rows, _ = scored("medklip")
    for (values, truth), row in zip(PAIRS, rows, strict=True):
        m, t = flat(repeated(values)), flat(truth_224(truth))
        high = max(m)
        check(
            row["hit.nearest_224.any_max.positives.per_image"],
            float(any(t[i] for i in range(len(m)) if m[i] == high)),
        )
        lit = [v > 0.008 for v in m]
        check(row["iou.nearest_224.raw_0.008.positives.per_image"], iou(lit, t))
        check(row["dice.nearest_224.raw_0.008.positives.per_image"], dice(lit, t))


def test_profile_mavl_equals_a_plain_implementation() -> None:
    rows, _ = scored("mavl")
    thresholds = np.arange(0.0001, 0.1, 0.00001)
    assert len(thresholds) == 9990
    kept = []
    for values, truth in PAIRS:
        m = np.array(flat(aligned(values)), np.float32)
        t = np.array(flat(truth_224(truth)))
        # A value's place among the thresholds is the number of them below it.
        below = [np.digitize(part, thresholds.astype(np.float32), right=True) for part in (m[t], m[~t])]
        hit, false = (np.bincount(part, minlength=9991)[::-1].cumsum()[::-1][1:] for part in below)
        kept.append((m, t, hit, false))
    mean = np.mean([2 * hit / (t.sum() + hit + false) for _, t, hit, false in kept], axis=0)
    best = int(np.argmax(mean))
    rule = "corners_224.oracle_set_dice_raw9990.positives.per_image"
    for (m, t, hits, falses), row in zip(kept, rows, strict=True):
        hit, false = int(hits[best]), int(falses[best])
        true = int(t.sum())
        check(row["hit.corners_224.any_max.positives.per_image"], float(t[m == m.max()].any()))
        check(row[f"iou.{rule}"], hit / (true + false))
        check(row[f"dice.{rule}"], 2 * hit / (true + hit + false))
        check(row[f"precision.{rule}"], ratio(hit, hit + false))
        check(row[f"recall.{rule}"], hit / true)
        check(row[f"accuracy.{rule}"], (hit + len(t) - true - false) / len(t))
        highest = 0.0
        for x in np.unique(m[t]):
            precision, recall = t[m >= x].mean(), (m[t] >= x).mean()
            highest = max(highest, 2 * precision * recall / (precision + recall))
        check(row["dice.corners_224.oracle_image.positives.per_image"], highest)


def test_profile_radzero_equals_a_plain_implementation() -> None:
    negative = (PAIRS[0][0], np.zeros((SIDE, SIDE), bool))
    quiet = (PAIRS[1][0] - 8, np.zeros((SIDE, SIDE), bool))
    pairs = [*PAIRS, negative, quiet]
    boxes = [[(10.0, 10.0, 22.0, 18.0), (40.0, 3.0, 5.0, 9.0)]] * len(PAIRS) + [[], []]
    scorer = Scorer("radzero", split="test")
    for at, (values, truth) in enumerate(pairs):
        scorer.add(f"i{at}", "pneumothorax", values, truth, FRAME, boxes=boxes[at])
    rows = [row.values for row in scorer.rows()]
    maps = [flat(bilinear(values, SIDE)) for values, _ in pairs]
    truths = [flat(truth.tolist()) for _, truth in pairs]
    chances = [[1 / (1 + math.exp(-v)) for v in m] for m in maps]
    best, highest = 0.0, 0.0
    for t in np.arange(0, 1.01, 0.01):
        mean = np.mean([dice([c > t for c in chances[at]], truths[at]) for at in SEEDS])
        if mean > highest:
            best, highest = float(t), float(mean)
    rule = "bilinear_full.full_image.oracle_set_dice_sigmoid101"
    for at, row in enumerate(rows):
        first = maps[at].index(max(maps[at]))
        x, y = first % SIDE, first // SIDE
        inside = any(a <= x <= a + w and b <= y <= b + h for a, b, w, h in boxes[at])
        check(
            row["hit_box.bilinear_full.full_image.first_argmax.positives.per_image"],
            float(inside) if boxes[at] else NAN,
        )
        lit = [c > best for c in chances[at]]
        check(row[f"dice.{rule}.positives.per_image"], dice(lit, truths[at]) if at in SEEDS else NAN)
        check(row[f"image_specificity.{rule}.per_image"], NAN if at in SEEDS else float(not any(lit)))
    inside = np.sort(
        [v for m, t in zip(maps, truths, strict=True) for v, true in zip(m, t, strict=True) if true]
    )
    outside = [v for m, t in zip(maps, truths, strict=True) for v, true in zip(m, t, strict=True) if not true]
    wins = sum(np.searchsorted(inside, v, "right") + np.searchsorted(inside, v, "left") for v in outside)
    expected = 1 - wins / 2 / (len(inside) * len(outside))
    figures = {cell.variant: cell.value for cell in scorer.summary(replicates=20) if cell.level == "all"}
    check(figures["auroc.bilinear_full.full_image.pooled"], expected)


def test_afloc_leaves_out_the_margin() -> None:
    """Half of a wide image is unseen; the map covers its middle."""
    frame = Frame.cropped(SIDE, 2 * SIDE, shortest=224, side=224)
    at = "bilinear_full.visible_only.symmetric_0.1+0.2+0.3+0.4+0.5.tp_only.per_image"
    for values, truth in PAIRS:
        wide = np.zeros((SIDE, 2 * SIDE), bool)
        wide[:, 14 : 14 + SIDE] = truth  # half of it in the margin
        row = score_pair(values, wide, frame, "afloc")
        m = flat(bilinear(values, SIDE))
        t = [bool(v) for v in wide[:, 28 : 28 + SIDE].ravel()]
        scaled = [2 * v - 1 for v in minmax(m)]
        for metric, score in (("iou", iou), ("dice", dice)):
            each = [tp_only(score, [s > np.float32(x) for s in scaled], t) for x in (0.1, 0.2, 0.3, 0.4, 0.5)]
            check(row[f"{metric}.{at}"], float(np.mean(each)))
        inside = np.array([v for v, true in zip(m, t, strict=True) if true])
        outside = np.array([v for v, true in zip(m, t, strict=True) if not true])
        expected = (
            (inside.mean() - outside.mean()) / math.sqrt(inside.var() + outside.var()) if len(inside) else NAN
        )
        check(row["cnr.bilinear_full.visible_only.per_image"], expected)


def test_profile_torchray_equals_a_plain_implementation() -> None:
    rows, _ = scored("torchray")
    for (values, truth), row in zip(PAIRS, rows, strict=True):
        m = flat(bilinear(values, SIDE))
        first = m.index(max(m))
        near = any(
            truth[i, j] and (i - first // SIDE) ** 2 + (j - first % SIDE) ** 2 < 15**2
            for i, j in product(range(SIDE), range(SIDE))
        )
        check(row["hit.bilinear_full.full_image.within_15.positives.per_image"], float(near))


def test_profile_quantus_equals_a_plain_implementation() -> None:
    rows, _ = scored("quantus")
    where = "bilinear_full.full_image"
    for (values, truth), row in zip(PAIRS, rows, strict=True):
        m, t = flat(bilinear(values, SIDE)), flat(truth.tolist())
        true, n = sum(t), len(t)
        high = max(m)
        hit = float(any(t[i] for i in range(n) if m[i] == high))
        check(row[f"hit.{where}.any_max.empty_is_hit.per_image"], hit)
        check(row[f"hit_weighted.{where}.any_max.empty_is_hit.per_image"], hit * (1 - true / n))
        inside = math.fsum(v for v, is_true in zip(m, t, strict=True) if is_true)
        check(row[f"mass.{where}.per_image"], inside / math.fsum(m))
        check(row[f"mass_signed.{where}.per_image"], inside / math.fsum(m))
        check(row[f"rank.{where}.per_image"], expected_top(m, t, true))
        check(row[f"topk.{where}.top_1000.per_image"], expected_top(m, t, 1000))
        check(row[f"topk_gain.{where}.top_1000.per_image"], expected_top(m, t, 1000) * n / true)
        other = np.sort([v for v, is_true in zip(m, t, strict=True) if not is_true])
        won = [
            (np.searchsorted(other, v, "left") + np.searchsorted(other, v, "right")) / 2
            for v, is_true in zip(m, t, strict=True)
            if is_true
        ]
        check(row[f"auroc.{where}.per_image"], sum(won) / (true * (n - true)))
    empty = score_pair(PAIRS[0][0], np.zeros((SIDE, SIDE), bool), FRAME, "quantus")
    assert [name.split(".")[0] for name, value in empty.items() if not math.isnan(value)] == [
        "hit",
        "hit_weighted",
    ]


def expected_top(m: list[float], t: list[bool], k: int) -> float:
    """Share of true ones among the k highest, the tied last ones in proportion."""
    last = sorted(m, reverse=True)[k - 1]
    above = [is_true for v, is_true in zip(m, t, strict=True) if v > last]
    tied = [is_true for v, is_true in zip(m, t, strict=True) if v == last]
    return (sum(above) + (k - len(above)) * sum(tied) / len(tied)) / k


def test_profile_carina_equals_a_plain_implementation() -> None:
    """Our own, with thresholds that were tuned on other images."""
    tuned_on = Scorer("carina", split="val")
    for at, (values, truth) in enumerate(PAIRS):
        tuned_on.add(f"v{at}", FINDINGS[at], values[::-1].copy(), truth, FRAME)
    tuned = tuned_on.tune()
    rows, _ = scored("carina", tuned)
    maps = [flat(bilinear(values, SIDE)) for values, _ in PAIRS]
    truths = [flat(truth.tolist()) for _, truth in PAIRS]
    grid = [k / 256 for k in range(256)]
    scaled = [np.array(minmax(m)) for m in maps]
    ious = np.array(
        [[iou((s > t).tolist(), truth) for t in grid[::16]] for s, truth in zip(scaled, truths, strict=True)]
    )
    every = np.array([fast_curve(s, np.array(truth)) for s, truth in zip(scaled, truths, strict=True)])
    np.testing.assert_allclose(every[:, ::16], ious, rtol=0, atol=1e-12)
    best = int(np.argmax(every.mean(axis=0)))
    for at, row in enumerate(rows):
        m, t = maps[at], truths[at]
        peak = [is_true for v, is_true in zip(m, t, strict=True) if v == max(m)]
        threshold = tuned.chosen["iou.bilinear_full.full_image.tuned_iou_minmax256.positives.per_image"][
            FINDINGS[at]
        ]
        last = sorted(m, reverse=True)[sum(t) - 1]
        values = {v for v, is_true in zip(m, t, strict=True) if is_true}
        highest = {
            metric: max(score((np.array(m) >= v).tolist(), t) for v in values) if at < 3 else NAN
            for metric, score in (("iou", iou), ("dice", dice))
        }
        for margin in ("full_image", "visible_only"):
            where = f"bilinear_full.{margin}"
            check(row[f"hit.{where}.expected.positives.per_image"], sum(peak) / len(peak))
            for metric, score in (("iou", iou), ("dice", dice)):
                for rule, lit in (
                    ("minmax_0.5", scaled[at] > 0.5),
                    ("tuned_iou_minmax256", scaled[at] > threshold),
                    ("oracle_set_iou_minmax256", scaled[at] > grid[best]),
                    ("oracle_area", np.array(m) >= last),
                ):
                    check(row[f"{metric}.{where}.{rule}.positives.per_image"], score(lit.tolist(), t))
                if at < 3:
                    check(row[f"{metric}.{where}.oracle_image.positives.per_image"], highest[metric])
        shares = sorted(
            (
                (PAIRS[at][1][8 * i : 8 * i + 8, 8 * j : 8 * j + 8].sum())
                for i in range(GRID)
                for j in range(GRID)
            ),
            reverse=True,
        )
        cells = max(sum(shares[:k]) / (sum(t) + 64 * k - sum(shares[:k])) for k in range(1, 50))
        check(row["iou.nearest_full.full_image.oracle_grid.positives.per_image"], float(cells))


def fast_curve(scaled: np.ndarray, truth: np.ndarray) -> list[float]:
    return [(truth & (scaled > k / 256)).sum() / (truth | (scaled > k / 256)).sum() for k in range(256)]


def test_every_profile_has_a_test() -> None:
    words = {word for name in globals() if name.startswith("test_") for word in name.split("_")}
    assert set(PROFILES) <= words
