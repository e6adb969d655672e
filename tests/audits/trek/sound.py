"""A small sound set of trek conversations, made in code: all gates pass on it, and tests break one thing at a time.

Labels, places and wordings are dealt from shuffled blocks, so that each comes equally often; nothing that is asked
depends on what is right.
"""

import hashlib

from carina.cases.model import (
    Box,
    Case,
    CaseImage,
    CaseView,
    Constraints,
    Evidence,
    Fact,
    Key,
    Option,
    Panel,
    Slot,
    Step,
)
from carina.store.seeding import rng
from carina.studies.model import ReportSection
from carina.studies.vocabulary import DEVICES, FINDINGS, ZONES

SEVERITIES = ("mild", "moderate", "severe")
TRENDS = ("new", "worse", "improved", "unchanged")
REGIONS = ("right lung", "left lung", "heart", "mediastinum")
TEMPLATES = 90
LEAD_INS = ("Here is the current radiograph.", "This is the image of today.", "Please look at this image.")
ENDINGS = (
    "",
    " Please look closely.",
    " Take your time.",
    " Consider the whole image.",
    " What do you think?",
)


class Deck:
    """Deals values in shuffled blocks."""

    def __init__(self, chance):
        self.chance, self.decks = chance, {}

    def deal(self, name, values):
        deck = self.decks.setdefault((name, len(values)), [])
        if not deck:
            deck.extend(self.chance.permutation(len(values)).tolist())
        return values[deck.pop()]

    def shuffled(self, values):
        return [values[at] for at in self.chance.permutation(len(values))]


def benchmark(n=150, seed=3):
    """So many conversations, each of its own patient."""
    deck = Deck(rng(seed, "sound trek"))
    return [Maker(f"{seed}-{at}", deck).case() for at in range(n)]


def present(name):
    return Fact(name="truth", about=f"id {name}", text="present")


def target(kind, name):
    return Fact(name="target", about=kind, text=name)


class Maker:
    """One conversation, turn by turn."""

    def __init__(self, name, deck):
        code = hashlib.sha256(name.encode()).hexdigest()
        self.deck, self.steps, self.code = deck, [], code
        self.study, self.patient = f"x{code[:8]}", f"w{code[8:16]}"
        self.reference = f"y{code[16:24]}" if deck.deal("reference", (True, False)) else None
        self.later = f"z{code[16:24]}" if deck.deal("later", (True, False, False)) else None
        self.view = deck.deal("view", ("PA", "AP"))
        keys = [(f"{self.study}/a.png", "current")]
        if self.reference:
            keys.append((f"{self.reference}/a.png", "reference"))
        self.images = tuple(
            CaseImage(key=key, width=512, height=400, role=role, view=self.view) for key, role in keys
        )
        self.findings, self.devices = deck.shuffled(FINDINGS), deck.shuffled(DEVICES)

    def ask(self, stage, task, form, question, key, **more):
        pool = f"{stage} {task} {form}"
        number = self.deck.deal(pool, range(TEMPLATES))
        self.steps.append(
            Step(
                id=f"t{len(self.steps) + 1}",
                stage=stage,
                task=task,
                format=form,
                question=question + ENDINGS[number % len(ENDINGS)],
                key=key,
                shows=more.pop("shows", ()),
                uses=more.pop("uses", ("v1",)),
                score=more.pop(
                    "score", {"boxes": "boxes", "yes_no": "exact", "choice": "exact"}.get(form, "text")
                ),
                template=f"s{stage}.{task.replace(' ', '-')}.{form}.{number:03}",
                **more,
            )
        )
        return self.steps[-1].id

    def choose(self, stage, task, question, right, wrong, **more):
        """A choice with the right options at dealt places; `none` stands last and may be right."""
        k = len(right) + len(wrong)
        texts = list(wrong)
        for text in right:
            texts.insert(self.deck.deal(f"place {task} {k}", range(len(texts) + 1)), text)
        if len(right) == 1:
            place = self.deck.deal(f"one {task} {k}", range(k))
            texts = [*wrong[:place], right[0], *wrong[place:]]
        none = more.pop("none", None)
        kinds = ["key" if text in right else "distractor" for text in texts]
        if none:
            texts, kinds = [*texts, none], [*kinds, "none"]
        options = tuple(Option(id="ABCDEF"[n], text=text) for n, text in enumerate(texts))
        keyed = [option for option in options if option.text in (right or [none])]
        listed = "; ".join(f"{option.id}. {option.text}" for option in options)
        return self.ask(
            stage,
            task,
            "choice",
            f"{question} ({listed})",
            Key(
                options=tuple(option.id for option in keyed),
                kinds=tuple(kinds),
                text=" and ".join(f"{option.id}. {option.text}" for option in keyed),
            ),
            options=options,
            multiple=len(right) > 1,
            score="set" if len(right) > 1 else "exact",
            **more,
        )

    def presence(self, kind, name, other, label):
        """Asks about a name and mentions another, whatever is true of either."""
        bare = self.deck.deal(f"bare {kind}", (True, False, False))
        word = {"yes": "Yes", "no": "No", "uncertain": "Uncertain"}[label]
        more = {
            "yes": f", {name} is seen.",
            "no": f", {name} is not seen.",
            "uncertain": f": {name} is neither shown nor excluded.",
        }[label]
        truth = {"yes": "present", "no": "absent", "uncertain": "uncertain"}[label]
        facts = [target(kind, name), Fact(name="truth", about=f"id {name}", text=truth)]
        origin = "stated"
        if label == "no":
            origin = self.deck.deal(f"origin {kind}", ("stated", "sibling", "sampled"))
            facts.append(Fact(name="negative", text=origin))
        task = "presence" if kind == "finding" else "device presence"
        self.ask(
            2,
            task,
            "yes_no",
            f"Apart from any {other}, is there evidence of {name}?" + (" Answer only." if bare else ""),
            Key(label=label, text=f"{word}." if bare else f"{word}{more}"),
            facts=tuple(facts),
            slots=(Slot(name="finding", value=name),),
            evidence=(Evidence(report="current", sentence=2),) if origin == "stated" else (),
            constraints=Constraints(answer_only=bare),
        )

    def case(self):
        self.look()
        self.identify()
        self.describe()
        if self.deck.deal("relation", (True, False)):
            self.relate()
        if self.reference:
            self.compare()
        if self.later:
            self.foresee()
        if self.deck.deal("advice", (True, True, False)):
            self.advise()
        self.report()
        orders = [("current", 1, self.study), ("reference", 0, self.reference), ("later", 2, self.later)]
        facts = [Fact(name="order", about=which, value=order) for which, order, study in orders if study]
        facts += [
            Fact(name="date", about=which, text=f"200{order}-05-01")
            for which, order, study in orders
            if study
        ]
        return Case(
            id=f"trek-{self.study}",
            protocol="trek",
            study=self.study,
            patient=self.patient,
            source="made",
            split="test",
            reference_study=self.reference,
            later_study=self.later,
            images=self.images,
            views=tuple(
                CaseView(id=f"v{n}", panels=(Panel(image=image.key),))
                for n, image in enumerate(self.images, 1)
            ),
            steps=tuple(self.steps),
            facts=tuple(facts),
        )

    def look(self):
        self.ask(
            1,
            "quality",
            "open",
            f"{self.deck.deal('lead-in', LEAD_INS)} How good is it technically?",
            Key(text="Inspiration and exposure are adequate and the patient is not rotated."),
            shows=("v1",),
            facts=(target("quality", "quality"),),
        )
        other = "AP" if self.view == "PA" else "PA"
        facts = (target("view", "view"), Fact(name="view", text=self.view))
        self.choose(1, "view", "Which projection is it?", [self.view], [other], facts=facts)

    def identify(self):
        asked = self.findings[:4]
        # The third name is mentioned before it is asked about; the others are fresh.
        others = (asked[2], *self.findings[4:6], self.findings[6])
        for name, other in zip(asked, others, strict=True):
            self.presence("finding", name, other, self.deck.deal(f"label {name}", ("yes", "no")))
        for name, other in zip(self.devices[:2], (self.devices[1], self.devices[2]), strict=True):
            self.presence("device", name, other, self.deck.deal(f"label {name}", ("yes", "no")))
        if self.deck.deal("uncertain", (True, False, False)):
            self.presence("finding", self.findings[6], self.findings[5], "uncertain")
        self.offer()
        self.ask(
            2,
            "abnormalities",
            "open",
            "Which abnormalities are there, in at most 40 words?",
            Key(text=f"There is {' and '.join(self.true())} among others."),
            facts=(target("study", "abnormalities"), *map(present, self.true())),
            constraints=Constraints(max_words=40),
        )

    def true(self):
        """Names of present findings that have been told."""
        named = [
            fact.text for s in self.steps if s.key.label == "yes" for fact in s.facts if fact.name == "target"
        ]
        return [name for name in named if name in FINDINGS] or ["no finding"]

    def offer(self):
        """One right of two, three with none of these, or two of four."""
        kind = self.deck.deal("offer", ("one", "none", "none", "two"))
        names = self.findings[7:11] if kind != "one" else self.findings[9:11]
        right = {"one": names[:1], "none": names[: self.deck.deal("some", (0, 1, 1, 1))], "two": names[:2]}[
            kind
        ]
        # As many options whether or not one is right: their number tells nothing.
        wrong = [name for name in names if name not in right][: 3 - len(right) if kind == "none" else 2]
        self.choose(
            2,
            "presence",
            "Which of these can be seen?",
            right,
            wrong,
            none="none of these" if kind == "none" else None,
            facts=(target("study", "offered"), *map(present, right)),
        )

    def describe(self):
        seen = self.findings[0]
        zone, other = self.deck.shuffled(ZONES)[:2]
        label = self.deck.deal("statement", ("yes", "no"))
        said = zone if label == "yes" else other
        word = "Yes, it does." if label == "yes" else f"No, it involves the {zone}."
        where = Fact(name="location", about=f"id {seen}", text=zone)
        about = (target("finding", seen), where)
        self.ask(
            3,
            "statement",
            "yes_no",
            f"Suppose there is {seen}: does it involve the {said}?",
            Key(label=label, text=word),
            facts=about,
            evidence=(Evidence(report="current", sentence=1),),
            restates=True,
        )
        self.ask(
            3,
            "location",
            "open",
            f"Where does the {seen} lie?",
            Key(text=f"It lies in the {zone}."),
            facts=about,
            restates=True,
            depends_on=("t3",),
        )
        severity = self.deck.deal("severity", SEVERITIES)
        wrong = [word for word in self.deck.shuffled(SEVERITIES) if word != severity]
        facts = (target("finding", seen), Fact(name="severity", about=f"id {seen}", text=severity))
        self.choose(
            3, "severity", f"How marked is the {seen}?", [severity], wrong, facts=facts, restates=True
        )
        region = self.deck.deal("region", REGIONS)
        x, y = (float(v) for v in self.deck.chance.integers(5, 15, 2) + 10 * REGIONS.index(region))
        self.ask(
            3,
            "region box",
            "boxes",
            f"[detection] Give the box of the {region} in percent.",
            Key(
                text=f"<|box|>({x}, {y}), ({x + 30}, {y + 40})<|/box|>",
                boxes=(
                    Box(
                        image=self.images[0].key,
                        xyxy=(x, y, x + 30, y + 40),
                        frame="percent",
                        name=region,
                        of="anatomy",
                    ),
                ),
            ),
            facts=(target("region", region),),
        )

    def relate(self):
        one, other = self.findings[:2]
        self.ask(
            4,
            "relation",
            "open",
            f"How do the {one} and the {other} go together?",
            Key(text="The one accompanies the other, without being its cause."),
            facts=(
                target("finding", one),
                target("finding", other),
                Fact(name="relation", about="x1", text="accompanies"),
            ),
            restates=True,
            depends_on=("t3", "t4"),
        )

    def compare(self):
        trend = self.deck.deal("trend", TRENDS)
        wrong = [word for word in self.deck.shuffled(TRENDS) if word != trend][:2]
        facts = (target("finding", self.findings[0]), Fact(name="trend", about="id", text=trend))
        self.choose(
            5,
            "change",
            f"An earlier radiograph follows. How has the {self.findings[0]} changed?",
            [trend],
            wrong,
            facts=facts,
            shows=("v2",),
            uses=("v1", "v2"),
            restates=True,
            evidence=(Evidence(report="reference", sentence=0),),
        )

    def foresee(self):
        self.ask(
            6,
            "outlook",
            "open",
            "What course do you expect?",
            Key(text="A slow recovery is to be expected over the next days."),
            facts=(target("study", "outlook"), Fact(name="trend", about="later", text="improved")),
            evidence=(Evidence(report="later", sentence=1),),
        )

    def advise(self):
        self.ask(
            7,
            "advice",
            "open",
            "What should be done next?",
            Key(text="A radiograph after treatment."),
            facts=(
                target("study", "advice"),
                Fact(name="recommendation", about="a1", text="follow-up radiograph"),
            ),
            evidence=(Evidence(report="current", sentence=4),),
        )

    def report(self):
        text = f"The heart is of normal size. There is {' and '.join(self.true())}."
        self.ask(
            8,
            "full report",
            "report",
            "Please write the report.",
            Key(text=text, sections=(ReportSection(name="findings", text=text),)),
            facts=(target("study", "report"),),
        )
