# On a bare Debian machine with a Swift toolchain: `make demo` or `make test`, nothing else first.

SWIFT ?= swift
PACKAGES := libcurl4-openssl-dev libsqlite3-dev zlib1g-dev
export ROCKPOOL_BINARY ?= $(CURDIR)/.build/release/rockpool

.PHONY: demo test simulate bench bench-outbox microbench build release deps lint format clean

## The whole story in one command: cached reads, an outage, queued writes, delivery, a conflict, cleanup.
demo: release
	.build/release/rockpool demo

## Every test but the simulation (`make simulate`). Those that go end to end drive the release binary with real clients, one after the other:
## several servers at once on a small machine would only test its scheduler. What only computes goes first, and does not starve what waits.
test: release
	$(SWIFT) test --filter RockpoolCoreTests --skip SimulationTests
	$(SWIFT) test --filter RockpoolEngineTests
	$(SWIFT) test --skip EndToEndTests --skip RockpoolCoreTests --skip RockpoolEngineTests
	$(SWIFT) test --filter EndToEndTests --no-parallel

## The outbox under everything that can go wrong, ten thousand times (SIM_RUNS); a failing seed is printed: SIM_SEED=n replays it.
simulate: deps
	SIM_RUNS=$${SIM_RUNS:-10000} $(SWIFT) test --filter RockpoolCoreTests.SimulationTests

## Rockpool beside nginx, Squid and Varnish, as ratios in one run on this machine (Benchmarks/README.md); about six minutes.
bench: release
	Benchmarks/peers/run --output Benchmarks/RESULTS.md

## The outbox's rates: acknowledged writes with one and with 64 clients, replay of ten thousand; about a minute.
bench-outbox: release
	Benchmarks/outbox/run --output Benchmarks/RESULTS.md

## What a hit is made of, piece by piece. The variable adds a dependency; what was resolved without it is put back.
microbench: deps
	@kept=$$(mktemp) && { cp Package.resolved $$kept 2>/dev/null || rm $$kept; }; \
	trap 'rm -f Package.resolved; [ ! -e $$kept ] || mv $$kept Package.resolved' EXIT; \
	ROCKPOOL_BENCHMARKS=1 $(SWIFT) package benchmark --target CoreBenchmarks --no-progress --grouping metric --time-units nanoseconds

build: deps
	$(SWIFT) build

release: deps
	$(SWIFT) build -c release --product rockpool

## Installs what is missing of the system's libraries, and asks the network for nothing when none is.
deps:
	@missing=""; \
	for package in $(PACKAGES); do \
		dpkg-query -W -f '$${db:Status-Status}\n' "$$package" 2>/dev/null | grep -qx installed || missing="$$missing $$package"; \
	done; \
	command -v pkg-config >/dev/null || missing="$$missing pkg-config"; \
	[ -n "$$missing" ] || exit 0; \
	echo "installing$$missing"; \
	if [ "$$(id -u)" -eq 0 ]; then sudo=""; \
	elif command -v sudo >/dev/null; then sudo="sudo"; \
	else echo "not root and no sudo: install$$missing yourself" >&2; exit 1; fi; \
	$$sudo apt-get update -q && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing

lint:
	$(SWIFT) format lint --strict --recursive Sources Tests Benchmarks Package.swift

format:
	$(SWIFT) format --in-place --recursive Sources Tests Benchmarks Package.swift

clean:
	$(SWIFT) package clean
