# On a bare Debian machine with a Swift toolchain: `make demo` or `make test`, nothing else first.

SWIFT ?= swift
PACKAGES := libcurl4-openssl-dev libsqlite3-dev zlib1g-dev
# What the tests drive end to end; a test without its program is skipped.
CLIENTS := curl wget aria2 git openssl nginx-light python3 python3-pip python3-requests nodejs default-jdk-headless chromium libnss3-tools
export ROCKPOOL_BINARY ?= $(CURDIR)/.build/release/rockpool
SUITES ?= EndToEndTests

# Where `make install` puts things; DESTDIR goes before all of it.
PREFIX ?= /usr/local
BINDIR := $(PREFIX)/bin
SHARE := $(DESTDIR)$(PREFIX)/share
UNITS := $(DESTDIR)$(PREFIX)/lib/systemd/system

.PHONY: demo test unit end-to-end simulate bench bench-outbox bench-million bench-tls microbench build release install uninstall deps clients lint format clean faults soak faults-all fuzz tsan asan

## The whole story in one command: cached reads, an outage, queued writes, delivery, a conflict, cleanup.
demo: release
	.build/release/rockpool demo

## Every test but the simulation (`make simulate`).
test: unit end-to-end

## Those that need no server of their own. What only computes goes first, and does not starve what waits.
unit: deps clients
	$(SWIFT) test --filter RockpoolCoreTests --skip SimulationTests
	$(SWIFT) test --filter RockpoolEngineTests --no-parallel
	$(SWIFT) test --filter RockpoolNetworkTests --no-parallel
	$(SWIFT) test --skip EndToEndTests --skip RockpoolCoreTests --skip RockpoolEngineTests --skip RockpoolNetworkTests

## The release binary with real clients (SUITES: a regular expression), one test after the other: several servers at once on a small
## machine would only test its scheduler.
end-to-end: release clients
	$(SWIFT) test --filter '$(SUITES)' --no-parallel

## The outbox under everything that can go wrong, ten thousand times (SIM_RUNS); a failing seed is printed: SIM_SEED=n replays it.
simulate: deps
	SIM_RUNS=$${SIM_RUNS:-10000} $(SWIFT) test --filter RockpoolCoreTests.SimulationTests

## Rockpool beside nginx, Squid and Varnish, as ratios in one run on this machine (Benchmarks/README.md); about six minutes.
bench: release
	Benchmarks/peers/run --output Benchmarks/RESULTS.md

## The outbox's rates: acknowledged writes with one and with 64 clients, replay of ten thousand; about a minute.
bench-outbox: release
	Benchmarks/outbox/run --output Benchmarks/RESULTS.md

## A million entries (ENTRIES): filling, starting, memory, eviction and compaction, beside nginx; forty minutes, and 20 GB of disk for a while.
bench-million: release
	Benchmarks/million/run --entries $${ENTRIES:-1000000} --output Benchmarks/RESULTS.md

## TLS handshakes with a cached leaf beside nginx's; half a minute.
bench-tls: release
	Benchmarks/tls/run --output Benchmarks/RESULTS.md

## Crowds, mutated requests (FLIPS), an upstream that hangs at every byte, no descriptors left; five minutes.
faults: release
	Tests/faults/run hang descriptors crowd flips --output Benchmarks/RESULTS.md

## Every fault there is a run for (`Tests/faults/run --help`): networks, clocks, bombs, torn files, failing disks, crashes; as root, with
## iptables, libfaketime, nginx, haproxy, node and a C compiler. A run that lacks something says so and is skipped.
faults-all: release
	Tests/faults/run --all --output Benchmarks/RESULTS.md

## An hour (SOAK_SECONDS; SOAK_PAUSE seconds between groups of requests) of hits, misses and an upstream that comes and goes: memory, descriptors and disk must not grow.
soak: release
	Tests/faults/run soak --output Benchmarks/RESULTS.md

## Every fuzz target for FUZZ_SECONDS (60), one after the other. A debug build of its own: it checks more than a release build does, takes two
## minutes on two cores instead of five, and what the sanitizer costs makes it no slower.
fuzz: deps
	ROCKPOOL_FUZZ=1 $(SWIFT) build --product RockpoolFuzz --sanitize=fuzzer -Xswiftc -sanitize=fuzzer,address --scratch-path .build/fuzz
	Fuzz/run

## The tests that start no server, under a sanitizer (Tests/sanitizers): a build of its own, a quarter of an hour each on two cores.
tsan asan: deps
	Tests/sanitizers/run $(if $(filter tsan,$@),thread,address)

## What a hit is made of, piece by piece. The variable adds a dependency; what was resolved without it is put back.
microbench: deps
	@kept=$$(mktemp) && { cp Package.resolved $$kept 2>/dev/null || rm $$kept; }; \
	trap 'rm -f Package.resolved; [ ! -e $$kept ] || mv $$kept Package.resolved' EXIT; \
	ROCKPOOL_BENCHMARKS=1 $(SWIFT) package benchmark --target CoreBenchmarks --no-progress --grouping metric --time-units nanoseconds

build: deps
	$(SWIFT) build

release: deps
	$(SWIFT) build -c release --product rockpool

## Puts the release build, its manual page, completions, a unit for systemd and, where there is none, a configuration in place.
install:
	@test -x .build/release/rockpool || { echo "there is no release build: run \`make release\` first, as yourself" >&2; exit 1; }
	install -D -m 755 .build/release/rockpool "$(DESTDIR)$(BINDIR)/rockpool"
	install -D -m 644 Config/rockpool.1 "$(SHARE)/man/man1/rockpool.1"
	install -d "$(SHARE)/bash-completion/completions" "$(SHARE)/zsh/site-functions" "$(SHARE)/fish/vendor_completions.d" "$(UNITS)"
	.build/release/rockpool --generate-completion-script bash > "$(SHARE)/bash-completion/completions/rockpool"
	.build/release/rockpool --generate-completion-script zsh > "$(SHARE)/zsh/site-functions/_rockpool"
	.build/release/rockpool --generate-completion-script fish > "$(SHARE)/fish/vendor_completions.d/rockpool.fish"
	sed 's|@BINDIR@|$(BINDIR)|' Config/rockpool.service > "$(UNITS)/rockpool.service"
	install -m 644 Config/rockpool.socket "$(UNITS)/rockpool.socket"
	test -e "$(DESTDIR)/etc/rockpool/rockpool.yaml" || install -D -m 644 Config/rockpool.yaml "$(DESTDIR)/etc/rockpool/rockpool.yaml"

## Takes it all away again, but for the configuration and what is stored.
uninstall:
	rm -f "$(DESTDIR)$(BINDIR)/rockpool" "$(SHARE)/man/man1/rockpool.1" "$(SHARE)/bash-completion/completions/rockpool" \
		"$(SHARE)/zsh/site-functions/_rockpool" "$(SHARE)/fish/vendor_completions.d/rockpool.fish" \
		"$(UNITS)/rockpool.service" "$(UNITS)/rockpool.socket"

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

## Installs the clients that are missing. Without root or network those tests are skipped.
clients:
	@missing=""; \
	for package in $(CLIENTS); do \
		dpkg-query -W -f '$${db:Status-Status}\n' "$$package" 2>/dev/null | grep -qx installed || missing="$$missing $$package"; \
	done; \
	[ -n "$$missing" ] || exit 0; \
	echo "installing$$missing"; \
	if [ "$$(id -u)" -eq 0 ]; then sudo=""; elif command -v sudo >/dev/null; then sudo="sudo -n"; else exit 0; fi; \
	$$sudo apt-get update -q && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing || \
		echo "some clients are missing; their tests are skipped"

lint:
	$(SWIFT) format lint --strict --recursive Sources Tests Benchmarks Fuzz Package.swift

format:
	$(SWIFT) format --in-place --recursive Sources Tests Benchmarks Fuzz Package.swift

clean:
	$(SWIFT) package clean
