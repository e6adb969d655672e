"""Chests drawn by hand, images of them, and turns about them."""

import cv2
import numpy as np

from carina.cases import Option, Step
from carina.cases.messages import Message
from carina.runs.records import Turn

BODY, LUNG, BONE = 170, 60, 210
LUNG_OUTLINE = (
    (96, 31), (78, 40), (62, 66), (50, 100), (42, 140), (37, 175), (36, 204), (50, 188), (75, 181), (116, 179),
    (116, 120), (118, 60), (112, 36),
)  # fmt: skip
"""Of the right lung on an image of 256 x 256; the left one is its mirror image."""
RIGHT, LEFT, HEART = (76, 120), (196, 110), (140, 148)
"""Places in the lungs, and the middle of the heart."""
FRAME = (36, 220, 31, 204)
"""Left, right, top and bottom of both lungs."""


def chest(*, heart_half=42, size=256):
    """Two dark lungs in a bright body, a brighter spine and heart between them, a belly below."""
    image = np.full((256, 256), BODY, np.uint8)
    image[190:, 20:236] = BONE
    right = np.array(LUNG_OUTLINE, np.int32)
    for outline in (right, right * (-1, 1) + (256, 0)):
        cv2.fillPoly(image, [outline], LUNG)
    cv2.rectangle(image, (118, 0), (138, 255), BONE, -1)
    cv2.ellipse(image, HEART, (heart_half, 40), 0, 0, 360, BONE, -1)
    return image if size == 256 else cv2.resize(image, (size, size), interpolation=cv2.INTER_AREA)


def with_disc(image, centre, radius, value):
    image = image.copy()
    cv2.circle(image, centre, radius, int(value), -1)
    return image


def disc(centre, radius, size=256):
    y, x = np.mgrid[:size, :size]
    return (x - centre[0]) ** 2 + (y - centre[1]) ** 2 <= radius**2


def png(image):
    """Grey, or RGB as an array has it."""
    written = image if image.ndim == 2 else np.ascontiguousarray(image[:, :, ::-1])
    done, content = cv2.imencode(".png", written)
    assert done
    return content.tobytes()


def tint_mask(image, mask):
    """RGB with a mask half covered in cyan, as cases are drawn."""
    rgb = np.repeat(image[:, :, None], 3, axis=2).astype(float)
    rgb[mask] = 0.5 * rgb[mask] + 0.5 * np.array([0, 255, 255])
    return np.round(rgb).astype(np.uint8)


def make_options(*texts, views=None):
    return tuple(
        Option(id=f"o{n}", text=text, view=views[n] if views else None) for n, text in enumerate(texts)
    )


def step(task, fmt, question, options=(), *, stage=3, multiple=False, uses=("v1",)):
    """A question without any key."""
    lines = "".join(f"\n({n}) {option.text}" for n, option in enumerate(options, start=1))
    return Step(
        id="s",
        stage=stage,
        task=task,
        format=fmt,
        question=question + lines,
        options=tuple(options),
        multiple=multiple,
        uses=uses,
    )


def turn(asked, views=("v1",)):
    message = Message(role="user", step=asked.id, text=asked.question, shows=tuple(views))
    return Turn(case="c", step=asked, system="", messages=(message,))


def answer_text(reader, asked, **images):
    """What a reader answers, given an image for each view."""
    reply = reader.answer([turn(asked, tuple(images))], lambda _case, view: images[view])[0]
    assert reply.error is None
    assert reply.stop == "stop"
    return reply.text
