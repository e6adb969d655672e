"""Tiny random vision-language models, saved as transformers publishes them. One character is one token."""

import json
import string
from pathlib import Path

SIDE = 16
"""Of the pictures."""
CONTEXT = 256
CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " \n"
CHAT = (
    "{{ bos_token }}{% for message in messages %}{{ message.role }}: {% for part in message.content %}"
    "{% if part.type == 'image' %}PICTURE{% else %}{{ part.text }}{% endif %}{% endfor %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
PICTURES = {
    "llava": "<image>",
    "qwen2_5_vl": "<|vision_start|><|image_pad|><|vision_end|>",
    "gemma3": "<start_of_image>",
}
"""What the template of each kind writes for a picture."""
TOKENS = {"llava": "<image>", "qwen2_5_vl": "<|image_pad|>", "gemma3": "<image_soft_token>"}
"""What stands for a patch of a picture."""
PATCHES = 4
"""Tokens of a picture, in all kinds."""
AROUND = {"llava": 0, "qwen2_5_vl": 2, "gemma3": 6}
"""Tokens beside them: marks of begin and end, and Gemma's empty lines."""


def _tokenizer(transformers, special, **named):
    from tokenizers import Tokenizer, decoders, models

    made = Tokenizer(models.BPE(vocab={c: n for n, c in enumerate(CHARACTERS)}, merges=[]))
    made.decoder = decoders.Fuse()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token="<s>",  # noqa: S106
        eos_token="</s>",  # noqa: S106
        pad_token="<pad>",  # noqa: S106
        additional_special_tokens=list(special),
        **named,
    )


def _language(kind, tokenizer, **more):
    return kind(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **more,
    ).to_dict()


_VISION = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}


def _llava(transformers, path, chat):
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = _tokenizer(transformers, ["<image>"])
    vision = {"model_type": "clip_vision_model", "image_size": SIDE, "patch_size": 8, **_VISION}
    config = transformers.LlavaConfig(
        vision_config=vision,
        text_config=_language(transformers.LlamaConfig, tokenizer),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    size = {"height": SIDE, "width": SIDE}
    transformers.LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size=size),
        tokenizer=tokenizer,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=chat,
    ).save_pretrained(path)
    return transformers.LlavaForConditionalGeneration(config)


def _qwen2_5_vl(transformers, path, chat):
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    special = {
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
        "image_token_id": "<|image_pad|>",
        "video_token_id": "<|video_pad|>",
    }
    tokenizer = _tokenizer(transformers, special.values())
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    config = transformers.Qwen2_5_VLConfig(
        text_config=_language(transformers.Qwen2_5_VLTextConfig, tokenizer, rope_parameters=rope),
        vision_config={
            "depth": 2, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "patch_size": 4,
            "out_hidden_size": 16, "window_size": 16, "fullatt_block_indexes": [1], "spatial_merge_size": 2,
        },
        **{name: tokenizer.convert_tokens_to_ids(token) for name, token in special.items()},
    )  # fmt: skip
    # As published: no processor_config.json, the template as a string in JSON.
    tokenizer.save_pretrained(path)
    Qwen2VLImageProcessorPil(patch_size=4, merge_size=2, min_pixels=256, max_pixels=1024).save_pretrained(
        path
    )
    prepared = path / "preprocessor_config.json"
    said = json.loads(prepared.read_text()) | {"processor_class": "Qwen2_5_VLProcessor"}
    prepared.write_text(json.dumps(said))
    if chat is not None:
        (path / "chat_template.json").write_text(json.dumps({"chat_template": chat}))
    return transformers.Qwen2_5_VLForConditionalGeneration(config)


def _gemma3(transformers, path, chat):
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

    named = {"boi": "<start_of_image>", "eoi": "<end_of_image>", "image": "<image_soft_token>"}
    tokenizer = _tokenizer(
        transformers, [], extra_special_tokens={f"{name}_token": token for name, token in named.items()}
    )
    config = transformers.Gemma3Config(
        text_config=_language(transformers.Gemma3TextConfig, tokenizer, head_dim=8, sliding_window=32),
        vision_config={"image_size": SIDE, "patch_size": 4, **_VISION},
        mm_tokens_per_image=PATCHES,
        **{f"{name}_token_id": tokenizer.convert_tokens_to_ids(token) for name, token in named.items()},
    )
    transformers.Gemma3Processor(
        image_processor=Gemma3ImageProcessorPil(size={"height": SIDE, "width": SIDE}),
        tokenizer=tokenizer,
        image_seq_length=PATCHES,
        chat_template=chat,
    ).save_pretrained(path)
    return transformers.Gemma3ForConditionalGeneration(config)


MAKERS = {"llava": _llava, "qwen2_5_vl": _qwen2_5_vl, "gemma3": _gemma3}


def save_tiny(kind: str, path: Path, *, chat: str | None = CHAT) -> Path:
    """Random weights of one kind in a folder, with everything that prepares its input."""
    import torch
    import transformers

    path.mkdir(parents=True)
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    model = MAKERS[kind](transformers, path, chat and chat.replace("PICTURE", PICTURES[kind]))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Fresh weights are so small, some even 0, that every prompt and picture gets nearly the same answer.
            if "input_projection" in name:
                parameter.normal_()
            elif parameter.dim() > 1:
                parameter.mul_(6 if "embed_tokens" in name or "lm_head" in name else 32)
        # An answer that may end at once tells little.
        ends = model.generation_config.eos_token_id
        if model.lm_head.weight is not model.get_input_embeddings().weight:
            model.lm_head.weight[ends] = 0
    model.save_pretrained(path)
    return path
