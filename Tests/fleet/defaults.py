"""Defaults of the database server that weaken a transaction. Each returns what was measured, or raises `Failed`."""

import time

from clients import Clients
from databases import unwarranted
from fleet import Fleet
from holding import Failed
from postgres import Cluster


def repeatable(given):
    """S0r: transactions of the server are REPEATABLE READ by default: none misses what was committed while it waited for the lock."""
    fleet = Fleet(given.binary, Cluster(settings="default_transaction_isolation = 'repeatable read'"))
    clients = Clients(fleet, "abab")
    time.sleep(5)
    clients.stop()
    # PostgreSQL refuses some of them (40001); what the others miss is lost without a word.
    refused = sum(server.log.count("40001") for server in fleet.nodes.values())
    if refused:
        raise Failed(f"{refused} transactions did not see what was committed before them")
    took = fleet.drained(30)
    return f"{fleet.judge()}; drained in {took:.1f} s; {clients.refused} refused"


def muted(given):
    """S8m: as S8, and the server says no warnings by default."""
    return unwarranted(given, settings="client_min_messages = error")
