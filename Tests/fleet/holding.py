"""What must hold of a fleet at the end: nothing acknowledged is lost, doubled or out of order, and no two attempts of a lane overlapped."""


class Failed(Exception):
    """What did not hold."""


def missing(acknowledged, effects):
    return [w for w in acknowledged if w[1] not in effects.get(w[0], [])]


def doubles(effects):
    return [(path, v) for path, values in effects.items() for v in set(values) if values.count(v) > 1]


def check_order(acknowledged, effects):
    """Each client's writes to one entity take effect in the order in which they were acknowledged."""
    places = {(path, v): i for path, values in effects.items() for i, v in enumerate(values)}
    last = {}
    for path, value in acknowledged:
        client, place = (path, value.split("-")[0]), places.get((path, value))
        if place is None:
            continue
        if place < last.get(client, -1):
            raise Failed(f"out of order: {path} {value}")
        last[client] = place


def check(fleet, isComplete=True):
    """Raises `Failed`; without `isComplete`, writes may still wait."""
    effects = fleet.upstream.effects()
    for name, server in fleet.nodes.items():
        for line in server.log.splitlines():
            if " error " in line and "SQLite error" in line:
                raise Failed(f"node {name}: {line[:300]}")
    lost = missing(fleet.acknowledged, effects) if isComplete else []
    if lost:
        raise Failed(f"{len(lost)} acknowledged writes are lost: {lost[:3]}")
    if doubled := doubles(effects):
        raise Failed(f"{len(doubled)} writes are doubled: {doubled[:3]}")
    check_order(fleet.acknowledged, effects)
    if fleet.upstream.overlaps:
        raise Failed(f"{fleet.upstream.overlaps} attempts of one lane overlapped: {fleet.upstream.collisions[:3]}")
