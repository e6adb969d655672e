"""Base of the gates that measure the masks of percept cases."""

from abc import abstractmethod

from carina.audits.gate import AuditContext, Gate, L
from carina.audits.percept.facts import read_rules
from carina.audits.percept.masks import CaseMasks, MaskDecoder
from carina.audits.result import Objections
from carina.cases.model import Case


class MaskGate(Gate[L]):
    """A gate that examines percept cases with masks and ignores all others."""

    def __init__(self, context: AuditContext, limits: L) -> None:
        super().__init__(context, limits)
        self._rules = context.shared(read_rules)
        self.decoder = self._decoder = context.shared(MaskDecoder)
        self._objections = Objections()
        self._n = 0

    def see(self, case: Case) -> None:
        masks = self._decoder.read(case)
        if masks is not None:
            self.examine(case, masks)

    @abstractmethod
    def examine(self, case: Case, masks: CaseMasks) -> None:
        """Examine one case; counts it in `_n` if it has what the gate is about."""
