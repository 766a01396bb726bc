"""The scenarios by name."""

from agreed import disagreed
from awakened import answered_late, read_late
from chance import by_chance
from clockshift import clocks_apart
from cloned import cloned
from copies import known_elsewhere
from databases import divided, promoted, spilled, unwarranted
from decided import decided, told
from defaults import muted, repeatable
from guide import guide
from handover import encoded, handed_over, keyed, refused
from losses import lost, unseen
from migrated import moved
from page import shown
from pooled import pooled
from promises import watermark, without_keys
from recovery import restarted
from scenarios import killed, killed_at, partitioned, plain, secluded, stopped
from severed import older, severed
from snapshot import held, rejoined
from upgrade import rolling


def three(scenario):
    """The same with three gateways."""

    def run(given):
        return scenario(given, nodes="abc")

    run.__doc__ = scenario.__doc__.rstrip(".") + ", of three."
    return run


SCENARIOS = {
    "S0": plain,
    "S0r": repeatable,
    "S1": killed,
    "S1k": killed_at,
    "S1u": without_keys,
    "S2": stopped,
    "S2a": answered_late,
    "S2b": read_late,
    "S3": partitioned,
    "S4": secluded,
    "S5": restarted,
    "S6": promoted,
    "S7": lost,
    "S7u": unseen,
    "S8": unwarranted,
    "S8m": muted,
    "S9": divided,
    "S10": spilled,
    "S11": clocks_apart,
    "S12": rolling,
    "S13": held,
    "S14": by_chance,
    "S15": moved,
    "S16": rejoined,
    "S17": decided,
    "S18": told,
    "S19": cloned,
    "S20": handed_over,
    "S21": refused,
    "S21e": encoded,
    "S22": severed,
    "S23": older,
    "S24": keyed,
    "S25": known_elsewhere,
    "S26": disagreed,
    "S27": pooled,
    "SR": watermark,
    "3S1": three(killed),
    "3S2": three(stopped),
    "3S5": three(restarted),
    "3S6": three(promoted),
    "guide": guide,
    "page": shown,
}
