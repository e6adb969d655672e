"""Gates for tests: those of every protocol, or of one, with some limits set."""

from carina.audits import AuditContext, audit_cases, list_gates, make_gates

COMMON, PERCEPT, TREK = (), ("percept",), ("trek",)


def gates_of(*groups, limits=None, protocols=("percept", "trek"), without=(), **context):
    """Fresh gates of these groups; `limits` by gate, everything else as in `AuditContext`."""
    stated = limits or {}
    infos = [info for info in list_gates() if info.protocols in groups and info.name not in without]
    read = {
        info.name: info.read_limits(stated.get(info.name, {}), protocols, where="limits") for info in infos
    }
    assert set(stated) <= set(read), "limits of a gate that is not there"
    return make_gates(infos, AuditContext(**context), read)


def audited(cases, *groups, **options):
    return audit_cases(cases, gates_of(*groups, **options))


def objecting(result, *, to=("fail", "warn")):
    """Names of the gates with one of these statuses."""
    return {gate.name for gate in result.gates if gate.status in to}
