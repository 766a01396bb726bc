"""Samples of rounds, their medians, and ratios within one round, so that a disturbance affects both values."""

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Sample:
    """One proxy, one workload, one round."""

    cpu: float  # µs per request: user and system time of the whole process tree
    rate: float  # requests per second
    megabytes: float  # per second, including heads
    p50: float  # ms
    p99: float
    p999: float  # 0 if it is not measured
    core: float  # share of its core that the proxy used
    others: float  # share of both cores used by processes outside this benchmark


@dataclass(frozen=True)
class Ratio:
    middle: float
    low: float
    high: float


class Results:
    """Samples by workload and proxy, in the order of the rounds."""

    def __init__(self):
        self.samples = {}
        self.stored = {}  # of "store" workloads, the share of a sample of URLs found stored, per proxy
        self.half = {}  # of hit workloads, p50, p99 and p99.9 in ms at half the lower of the two rates, per proxy

    def add(self, workload, proxy, sample):
        self.samples.setdefault(workload, {}).setdefault(proxy, []).append(sample)

    def workloads(self):
        return list(self.samples)

    def proxies(self, workload):
        return list(self.samples[workload])

    def middle(self, workload, proxy, measure):
        return median(getattr(sample, measure) for sample in self.samples[workload][proxy])

    def ratio(self, workload, peer, measure):
        """Rockpool's measure divided by the peer's, round by round."""
        ours, theirs = self.samples[workload]["rockpool"], self.samples[workload][peer]
        ratios = [getattr(our, measure) / getattr(their, measure) for our, their in zip(ours, theirs, strict=True)]
        return Ratio(median(ratios), min(ratios), max(ratios))

    def others(self):
        """The share of both cores used by other processes: median and maximum."""
        shares = [sample.others for proxies in self.samples.values() for samples in proxies.values() for sample in samples]
        return median(shares), max(shares)
