"""Our residual network against that of transformers, on the same tiny random weights under torchvision's names."""

import re

import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
transformers = pytest.importorskip("transformers", reason="the extra torch is not installed")

from carina.models.clip.resnet import ResNetShape, ResNetTower, to_patches  # noqa: E402

SHAPE = ResNetShape(blocks=(1, 2, 2, 2), width=4)


def shaken(model, seed=0):
    """Every weight and statistic random; variances above zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.dtype.is_floating_point:
                value.copy_(torch.randn(value.shape, generator=generator) * 0.3)
                if name.endswith("running_var"):
                    value.abs_().add_(0.5)
    return model.eval()


def torchvision_name(name):
    """What transformers calls a weight, in torchvision's layout."""
    inner = {"convolution": "conv", "normalization": "bn"}
    stem = re.fullmatch(r"embedder\.embedder\.(\w+)\.(\w+)", name)
    if stem:
        return f"{inner[stem[1]]}1.{stem[2]}"
    block = re.fullmatch(r"encoder\.stages\.(\d)\.layers\.(\d)\.(.*)", name)
    layer = f"layer{int(block[1]) + 1}.{block[2]}"
    short = re.fullmatch(r"shortcut\.(\w+)\.(\w+)", block[3])
    if short:
        return f"{layer}.downsample.{'01'[short[1] == 'normalization']}.{short[2]}"
    deep = re.fullmatch(r"layer\.(\d)\.(\w+)\.(\w+)", block[3])
    return f"{layer}.{inner[deep[2]]}{int(deep[1]) + 1}.{deep[3]}"


@pytest.fixture(scope="module")
def both():
    config = transformers.ResNetConfig(
        embedding_size=4, hidden_sizes=[16, 32, 64, 128], depths=[1, 2, 2, 2], layer_type="bottleneck",
    )  # fmt: skip
    theirs = shaken(transformers.ResNetModel(config))
    ours = ResNetTower(SHAPE)
    ours.load_state_dict({torchvision_name(name): value for name, value in theirs.state_dict().items()})
    return theirs, ours.eval()


def pixels(side=64, number=2):
    return torch.randn((number, 3, side, side), generator=torch.Generator().manual_seed(3))


def test_every_tap_equals_transformers(both):
    theirs, ours = both
    expected = theirs(pixels(), output_hidden_states=True).hidden_states
    taps = ours(pixels())
    for got, wanted in zip((taps.layer2, taps.layer3, taps.layer4), expected[2:], strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    assert taps.last is taps.layer4


@pytest.mark.parametrize("side", [64, 75, 97, 224, 299])
@pytest.mark.parametrize("dilated", [False, True])
def test_grids_are_as_large_as_said(side, dilated):
    tower = ResNetTower(ResNetShape(blocks=(1, 1, 1, 2), width=2, dilated=dilated)).eval()
    taps = tower(pixels(side, 1))
    for stage, features in enumerate((taps.layer2, taps.layer3, taps.layer4), 2):
        assert features.shape[1] == tower.shape.channels(stage)
        assert tuple(features.shape[2:]) == tower.grid(side, stage)


def test_grids_have_the_published_sizes():
    tower, finer = ResNetTower(SHAPE), ResNetTower(ResNetShape(blocks=(1, 1, 1, 1), width=2, dilated=True))
    assert [tower.grid(299, stage) for stage in (2, 3, 4)] == [(38, 38), (19, 19), (10, 10)]  # AFLoc, GLoRIA
    assert tower.grid(480, 4) == (15, 15)  # BioViL
    assert finer.grid(480, 4) == (30, 30)
    assert tower.grid(224, 4) == (7, 7)  # MedCLIP


def test_the_weights_have_the_names_and_shapes_of_a_resnet_50():
    state = ResNetTower().state_dict()
    # 53 convolutions, and as many norms of five numbers each.
    assert len(state) == 53 * 6
    assert (
        sum(value.numel() for name, value in state.items() if name.endswith(("weight", "bias"))) == 23_508_032
    )
    assert state["layer4.0.downsample.0.weight"].shape == (2048, 1024, 1, 1)
    assert state["layer3.5.conv2.weight"].shape == (256, 256, 3, 3)


def test_a_spread_last_stage_keeps_the_grid_and_sees_as_far(both):
    """As torchvision spreads it: the first block is plain, its stride left out; later kernels have gaps of one."""
    _, plain = both
    spread = ResNetTower(ResNetShape(blocks=(1, 2, 2, 2), width=4, dilated=True)).eval()
    spread.load_state_dict(plain.state_dict())
    layer3 = plain(pixels()).layer3
    first, second = plain.layer4[0], plain.layer4[1]

    def bottleneck(block, came, dilation):
        inner = torch.relu(block.bn1(block.conv1(came)))
        inner = torch.nn.functional.conv2d(inner, block.conv2.weight, padding=dilation, dilation=dilation)
        inner = block.bn3(block.conv3(torch.relu(block.bn2(inner))))
        kept = came
        if block.downsample is not None:
            kept = block.downsample[1](torch.nn.functional.conv2d(came, block.downsample[0].weight))
        return torch.relu(inner + kept)

    expected = bottleneck(second, bottleneck(first, layer3, 1), 2)
    torch.testing.assert_close(spread(pixels()).layer4, expected, atol=1e-5, rtol=1e-5)


def test_a_network_may_end_after_its_third_stage():
    tower = ResNetTower(ResNetShape(blocks=(1, 1, 1), width=2)).eval()
    taps = tower(pixels(64, 1))
    assert taps.layer4 is None
    assert taps.last.shape == (1, 32, 4, 4)
    assert not any(name.startswith("layer4") for name in tower.state_dict())
    with pytest.raises(ValueError, match="2 stages"):
        ResNetTower(ResNetShape(blocks=(1, 1)))


def test_features_are_patches_with_channels_last():
    features = torch.arange(24.0).reshape(1, 2, 3, 4)
    assert to_patches(features)[0, 1, 2].tolist() == [6.0, 18.0]
