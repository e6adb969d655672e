"""Tiny random weights of the SAM family, saved as transformers publishes them."""

import json
import re
from pathlib import Path

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SIDE = 64
"""Of the models' input; mask prompts and answers are 16 x 16."""
_DECODER = {
    "hidden_size": 32, "mlp_dim": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "iou_head_hidden_dim": 16, "iou_head_depth": 2,
}  # fmt: skip
_PROMPT = {"hidden_size": 32, "image_size": SIDE, "patch_size": 16, "mask_input_channels": 8}
_SAM_VISION = {
    "hidden_size": 32, "output_channels": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "image_size": SIDE, "patch_size": 16, "window_size": 2, "global_attn_indexes": [1], "num_pos_feats": 16,
    "mlp_dim": 32,
}  # fmt: skip
_SAM2_BACKBONE = {
    "model_type": "sam2_hiera_det_model", "hidden_size": 8, "num_attention_heads": 1, "image_size": [SIDE, SIDE],
    "blocks_per_stage": [1, 1, 2, 1], "embed_dim_per_stage": [8, 16, 32, 64],
    "num_attention_heads_per_stage": [1, 1, 1, 1], "window_size_per_stage": [4, 4, 4, 2],
    "global_attention_blocks": [3], "window_positional_embedding_background_size": [2, 2],
}  # fmt: skip
_SAM2_VISION = {
    "backbone_config": _SAM2_BACKBONE, "backbone_channel_list": [64, 32, 16, 8], "fpn_hidden_size": 32,
    "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]],
}  # fmt: skip


def _sam(transformers):
    return transformers.SamModel(
        transformers.SamConfig(
            vision_config=_SAM_VISION, prompt_encoder_config=_PROMPT, mask_decoder_config=_DECODER
        )
    )


def _sam_hq(transformers):
    return transformers.SamHQModel(
        transformers.SamHQConfig(
            vision_config=_SAM_VISION,
            prompt_encoder_config=_PROMPT,
            mask_decoder_config=_DECODER | {"vit_dim": 32},
        )
    )


def _sam2(transformers):
    return transformers.Sam2Model(
        transformers.Sam2Config(
            vision_config=_SAM2_VISION, prompt_encoder_config=_PROMPT, mask_decoder_config=_DECODER
        )
    )


def _sam2_video(transformers):
    return transformers.Sam2VideoModel(
        transformers.Sam2VideoConfig(
            vision_config=_SAM2_VISION,
            prompt_encoder_config=_PROMPT,
            mask_decoder_config=_DECODER,
            image_size=SIDE,
            memory_attention_hidden_size=32,
            memory_attention_num_layers=1,
            memory_attention_feed_forward_hidden_size=32,
            memory_attention_rope_feat_sizes=[4, 4],
            memory_encoder_hidden_size=32,
            memory_encoder_output_channels=16,
            mask_downsampler_embed_dim=32,
            memory_fuser_num_layers=1,
            memory_fuser_embed_dim=32,
            memory_fuser_intermediate_dim=32,
        )
    )


def _sam3_tracker(transformers):
    backbone = {
        "model_type": "sam3_vit_model", "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "image_size": SIDE, "patch_size": 16, "window_size": 2,
        "global_attn_indexes": [1], "pretrain_image_size": SIDE,
    }  # fmt: skip
    vision = {
        "model_type": "sam3_vision_model", "backbone_config": backbone, "fpn_hidden_size": 32,
        "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]],
    }  # fmt: skip
    return transformers.Sam3TrackerModel(
        transformers.Sam3TrackerConfig(
            vision_config=vision, prompt_encoder_config=_PROMPT, mask_decoder_config=_DECODER
        )
    )


MAKERS = {
    "sam": _sam,
    "sam_hq": _sam_hq,
    "sam2": _sam2,
    "sam2_video": _sam2_video,
    "sam3_tracker": _sam3_tracker,
    "sam3_video": _sam3_tracker,
}
PADDED = ("sam", "sam_hq")


def save_tiny(kind: str, path: Path, *, seed: int = 0) -> Path:
    """Random weights of one kind in a folder."""
    import torch
    import transformers

    torch.manual_seed(seed)
    model = MAKERS[kind](transformers)
    # Fresh weights are so small that every answer is nearly 0 everywhere.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4)
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(path)
    if kind == "sam3_video":
        # As SAM 3 is published: the tracker is a part of the video model.
        from safetensors.torch import load_file, save_file

        weights = load_file(path / "model.safetensors")
        outer = re.compile(r"^tracker_model\.(detector_model|tracker_neck)\.")
        weights = {outer.sub(r"\1.", name): weight for name, weight in weights.items()}
        save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
        config = json.loads((path / "config.json").read_text()) | {"model_type": "sam3_tracker_video"}
        whole = {"model_type": kind, "architectures": ["Sam3VideoModel"], "tracker_config": config}
        (path / "config.json").write_text(json.dumps(whole))
    size = {"longest_edge": SIDE} if kind in PADDED else {"height": SIDE, "width": SIDE}
    said = {"size": size, "image_mean": MEAN, "image_std": STD, "rescale_factor": 1 / 255, "resample": 2}
    (path / "preprocessor_config.json").write_text(json.dumps(said))
    return path
