# On a bare Debian machine with a Swift toolchain, `make demo` and `make test` need no other step.

SWIFT ?= swift
# Builds the tests and runs them; `.ci/run` has built them and only runs them.
SWIFT_TEST ?= $(SWIFT) test
PACKAGES := libcurl4-openssl-dev libsqlite3-dev zlib1g-dev libexpat1-dev
# The clients of the end-to-end tests; a test is skipped without its program.
CLIENTS := curl wget skopeo docker-registry aria2 git openssl nginx-light haproxy python3 python3-pip python3-requests nodejs default-jdk-headless chromium firefox-esr libnss3-tools python3-grpcio rclone cadaver squid krb5-kdc krb5-admin-server krb5-user nftables iproute2 ruby php-cli php-curl postgresql \
	restic zsync cups-client newsboat influxdb influxdb-client transmission-daemon transmission-cli prometheus python3-mwclient
# The other programs of `make programs`: larger, and not part of the end-to-end tests.
PROGRAMS := maven golang-go composer unzip dnf createrepo-c rpm ostree mercurial subversion apache2-bin libapache2-mod-svn ccache duplicity \
	gdal-bin mpv gcc
LINTERS := python3 python3-pip
# For packages, and for their tests.
PACKAGERS := python3 dpkg-dev xz-utils
PACKAGE_TESTERS := debootstrap lintian crun umoci iproute2 curl
RUFF_VERSION := 0.17.6
RUFF := .build/ruff-$(RUFF_VERSION)/bin/ruff
SWIFT_PATHS := Sources Tests Benchmarks Package.swift
PYTHON_PATHS := Tests Benchmarks docs Packaging
export ROCKPOOL_BINARY ?= $(CURDIR)/.build/release/rockpool
SUITES ?= EndToEndTests

# The target directories of `make install`; DESTDIR is prepended to all of them.
PREFIX ?= /usr/local
BINDIR := $(PREFIX)/bin
SHARE := $(DESTDIR)$(PREFIX)/share
UNITS := $(DESTDIR)$(PREFIX)/lib/systemd/system
USER_UNITS := $(DESTDIR)$(PREFIX)/lib/systemd/user

.PHONY: demo help test quick unit end-to-end programs simulate bench bench-outbox bench-fleet bench-million bench-tls bench-idle bench-loops bench-eviction bench-allocations microbench build release install uninstall deb tarball image package-test service-test release-check packagers package-testers deps clients linters lint house format clean faults fleet-faults fleet-mistakes sessions soak faults-all fuzz fuzzer tsan asan evidence evidence-table

### Try
## Shows all main features in one command: cached reads, an outage, queued writes, delivery, a conflict, cleanup.
demo: release
	.build/release/rockpool demo

## Prints the targets with their descriptions.
help:
	@awk '/^### / { printf "%s%s\n", (n ? "\n" : ""), toupper(substr($$0, 5)); n = 1; next } \
		/^## / { text = text " " substr($$0, 4); next } \
		/^[a-z][a-z -]*:/ && text != "" { \
			sub(/:.*/, ""); line = sprintf("%-14s", $$0); count = split(text, words, " "); text = ""; \
			for (n = 1; n <= count; n++) { \
				if (length(line) + length(words[n]) > 110) { print line; line = sprintf("%14s", "") } \
				line = line " " words[n] } \
			print line }' $(firstword $(MAKEFILE_LIST))

### Test
## Runs every test except the simulation (`make simulate`); with FILTER, a regular expression, only the tests and suites of that name.
test: $(if $(FILTER),deps,unit end-to-end)
	$(if $(FILTER),$(SWIFT_TEST) --no-parallel --filter '$(FILTER)')

## The quick lane, a few minutes: lint, a debug build, and the tests of Core and Store without the simulation.
quick: lint build
	$(SWIFT_TEST) --filter 'RockpoolCoreTests|RockpoolStoreTests' --skip SimulationTests

## Runs the tests without a server process. Pure computation runs in parallel; of tests that wait, each has the machine to itself.
unit: unit-core unit-engine unit-network unit-store unit-rest
unit-core unit-engine unit-network unit-store unit-rest: deps clients
unit-core:
	$(SWIFT_TEST) --filter RockpoolCoreTests --skip SimulationTests
unit-engine:
	$(SWIFT_TEST) --filter RockpoolEngineTests --no-parallel
unit-network:
	$(SWIFT_TEST) --filter RockpoolNetworkTests --no-parallel
unit-store:
	$(SWIFT_TEST) --filter RockpoolStoreTests --no-parallel
unit-rest:
	$(SWIFT_TEST) --skip EndToEndTests --skip RockpoolCoreTests --skip RockpoolEngineTests --skip RockpoolNetworkTests \
		--skip RockpoolStoreTests --no-parallel

## Runs the release binary with real clients (SUITES: a regular expression), one test after the other; `.ci/suites` runs several
## suites at once.
end-to-end: release clients
	$(SWIFT_TEST) --filter '$(SUITES)' --no-parallel

## Runs real programs against the release binary, each online, away and back: git, S3, WebDAV, gRPC, GraphQL, and those of the table in
## docs/guide/programs.md (Tests/programs/run); and the OpenAPI description by schemathesis. Libraries that Debian lacks are taken from PyPI into
## .build; without them their tests are skipped.
programs: release clients
	$(call install_if_possible,$(PROGRAMS),some programs are missing; their tests are skipped)
	@test -x .build/programs/bin/python || { python3 -m venv .build/programs && .build/programs/bin/pip install -q grpcio boto3 'moto[s3,server]' \
		'gql[requests]' graphql-core wsgidav cheroot radicale vdirsyncer django twine pypiserver mwclient \
		lxml python-redmine influxdb-client opentelemetry-exporter-otlp-proto-http matrix-nio dvc dvc-http pyyaml 'schemathesis>=4,<5'; } || echo "some libraries are missing; their tests are skipped"
	ROCKPOOL_PYTHON=$(CURDIR)/.build/programs/bin/python $(SWIFT) test --filter 'EndToEndTests.*(ProgramTests|NotQueued|SignedRead|Signing|WebDAV|FileTests|GatewayName|GraphQL|Git|DescriptionTests)' \
		--no-parallel

## Simulates faults in the outbox ten thousand times (SIM_RUNS); prints a failing seed, which SIM_SEED=n replays.
simulate: deps
	SIM_RUNS=$${SIM_RUNS:-10000} $(SWIFT_TEST) --filter 'RockpoolCoreTests\.(Session)?SimulationTests'

### Measure
## Compares Rockpool with nginx, Squid and Varnish, as ratios in one run on this machine (Benchmarks/README.md); about six minutes.
bench: release
	Benchmarks/peers/run --output Benchmarks/RESULTS.md

## Measures the outbox: acknowledged writes with one and with 64 clients, and the replay of ten thousand; about a minute.
bench-outbox: release
	Benchmarks/outbox/run --output Benchmarks/RESULTS.md

## Measures the outbox of a fleet of one to three nodes beside that of SQLite, with postgresql and wrk; five minutes.
bench-fleet: release clients
	Benchmarks/fleet/run --output Benchmarks/RESULTS.md

## A million entries (ENTRIES): filling, starting, memory, eviction and compaction, compared with nginx; forty minutes, and up to 20 GB of
## disk.
bench-million: release
	Benchmarks/million/run --entries $${ENTRIES:-1000000} --output Benchmarks/RESULTS.md

## Compares TLS handshakes with a cached leaf with nginx's; half a minute.
bench-tls: release
	Benchmarks/tls/run --output Benchmarks/RESULTS.md

## Compares the memory of idle client connections with nginx's; half a minute.
bench-idle: release
	Benchmarks/idle/run --output Benchmarks/RESULTS.md

## Hot hits with one, two and more event loops; half a minute.
bench-loops: release
	Benchmarks/loops/run --output Benchmarks/RESULTS.md

## Allocations of each kind of hit, and their limits; seconds.
bench-allocations: release
	Benchmarks/allocations/run --output Benchmarks/RESULTS.md

## Hit ratios of eviction beside LRU and the optimum, on generated traces; seconds.
bench-eviction:
	Benchmarks/eviction/run --output Benchmarks/RESULTS.md

### Break it on purpose
## Faults: crowds, mutated requests (FLIPS), an upstream that hangs at every byte, no free descriptors; five minutes.
faults: release
	Tests/faults/run hang descriptors crowd flips --output Benchmarks/RESULTS.md

## Runs every fault (`Tests/faults/run --help`): networks, clocks, bombs, torn files, failing disks, crashes; as root, with iptables,
## libfaketime, nginx, haproxy, node and a C compiler. A run with a missing requirement reports it and is skipped.
faults-all: release
	Tests/faults/run --all --output Benchmarks/RESULTS.md

## Every fault of a fleet on real servers (SCENARIOS): gateways and databases that die, stop, are cut off, promoted and replaced, and the
## guide's commands; half an hour, with postgresql, faketime and a C compiler. `Tests/fleet/run --help` has longer forms.
fleet-faults: release clients
	Tests/fleet/run $(SCENARIOS)

## Plants eight mistakes into the code of a fleet, one after the other: a scenario must fail for each. A debug build and three minutes.
fleet-mistakes: deps clients
	Tests/fleet/mistakes/run

## Stories of what a client has seen, then random sequences (SEQUENCES, 500) of one client and of two against a model: session guarantees,
## conflicts, lost updates.
sessions: release
	Tests/sessions/run --sight
	Tests/sessions/run --clients 1 --sequences $${SEQUENCES:-250}
	Tests/sessions/run --clients 2 --sequences $${SEQUENCES:-250}

## An hour (SOAK_SECONDS; SOAK_PAUSE seconds between groups of requests) of hits, misses and an intermittent upstream: memory, descriptors
## and disk usage must not grow.
soak: release
	Tests/faults/run soak --output Benchmarks/RESULTS.md

## Runs every fuzz target for FUZZ_SECONDS (60), one after the other. It is a separate debug build: it has more checks than a release build
## and takes two minutes on two cores instead of five, and the sanitizer's cost makes it no slower. It starts from the packages that the
## first build has fetched.
fuzz: deps
	$(call build_fuzzer,fuzz,-Xswiftc -sanitize=fuzzer$(COMMA)address)
	Tests/Fuzz/run

## Makes the fuzz targets of `make evidence` in an optimised build without the sanitizer: .build/fuzz-fast, several times as fast.
fuzzer: deps
	$(call build_fuzzer,fuzz-fast,-c release -Xswiftc -sanitize=fuzzer)

COMMA := ,
define build_fuzzer
	@mkdir -p .build/$(1) && cd .build && for part in repositories checkouts workspace-state.json; do \
		[ ! -e $$part ] || [ -e $(1)/$$part ] || cp -a $$part $(1)/; done
	ROCKPOOL_FUZZ=1 $(SWIFT) build --disable-index-store --product RockpoolFuzz --sanitize=fuzzer $(2) --scratch-path .build/$(1)
endef

## Spends MINUTES (10) on what has been run least against its goal: fuzzing, mutated requests, kills, power cuts, sessions, simulations, a fleet,
## chaos, load. It takes the builds that exist, goes on from the last seeds, and adds to Tests/evidence/ledger.json.
evidence:
	Tests/evidence/run --minutes $(or $(MINUTES),10) $(if $(ONLY),--only '$(ONLY)')

## Prints the goals, what the present code has reached, commands, seeds and dates, as Markdown.
evidence-table:
	@Tests/evidence/run --table

## Runs the tests without a server process under a sanitizer (Tests/sanitizers): a separate build, a quarter of an hour each on two cores.
tsan asan: deps
	Tests/sanitizers/run $(if $(filter tsan,$@),thread,address)

## Benchmarks the parts of a cache hit. The variable adds a dependency; the previous Package.resolved is restored.
microbench: deps
	@kept=$$(mktemp) && { cp Package.resolved $$kept 2>/dev/null || rm $$kept; }; \
	trap 'rm -f Package.resolved; [ ! -e $$kept ] || mv $$kept Package.resolved' EXIT; \
	ROCKPOOL_BENCHMARKS=1 $(SWIFT) package benchmark --target CoreBenchmarks --no-progress --grouping metric --time-units nanoseconds

### Build and install
## Makes a debug build.
build: deps
	$(SWIFT) build

## Makes a release build: .build/release/rockpool, which runs without the toolchain.
release: deps
	@Packaging/icu-data .build/icu || echo "the whole data of ICU is linked in: 29 MB more"
	@[ ! -e .build/icu/icu-data.o ] || export ROCKPOOL_ICU_DATA=$(CURDIR)/.build/icu/icu-data.o; \
	set -x; $(SWIFT) build -c release --product rockpool

## Installs the release build, its manual page, completions, units for systemd and, if none exists, a configuration.
install:
	@test -x .build/release/rockpool || { echo "there is no release build: run \`make release\` first, as yourself" >&2; exit 1; }
	install -D -m 755 .build/release/rockpool "$(DESTDIR)$(BINDIR)/rockpool"
	install -D -m 644 Config/rockpool.1 "$(SHARE)/man/man1/rockpool.1"
	install -D -m 644 Config/rockpool.yaml "$(SHARE)/doc/rockpool/examples/rockpool.yaml"
	install -d "$(SHARE)/bash-completion/completions" "$(SHARE)/zsh/site-functions" "$(SHARE)/fish/vendor_completions.d" "$(UNITS)" "$(USER_UNITS)"
	.build/release/rockpool --generate-completion-script bash > "$(SHARE)/bash-completion/completions/rockpool"
	.build/release/rockpool --generate-completion-script zsh > "$(SHARE)/zsh/site-functions/_rockpool"
	.build/release/rockpool --generate-completion-script fish > "$(SHARE)/fish/vendor_completions.d/rockpool.fish"
	sed 's|@BINDIR@|$(BINDIR)|' Config/rockpool.service > "$(UNITS)/rockpool.service"
	sed 's|@BINDIR@|$(BINDIR)|' Config/rockpool-user.service > "$(USER_UNITS)/rockpool.service"
	install -m 644 Config/rockpool.socket "$(UNITS)/rockpool.socket"
	install -D -m 644 Config/rockpool.sysusers "$(DESTDIR)$(PREFIX)/lib/sysusers.d/rockpool.conf"
	test -e "$(DESTDIR)/etc/rockpool/rockpool.yaml" || install -D -m 644 Config/system.yaml "$(DESTDIR)/etc/rockpool/rockpool.yaml"

## Removes the installed files, except the configuration and the stored data.
uninstall:
	rm -f "$(DESTDIR)$(BINDIR)/rockpool" "$(SHARE)/man/man1/rockpool.1" "$(SHARE)/bash-completion/completions/rockpool" \
		"$(SHARE)/zsh/site-functions/_rockpool" "$(SHARE)/fish/vendor_completions.d/rockpool.fish" \
		"$(SHARE)/doc/rockpool/examples/rockpool.yaml" "$(DESTDIR)$(PREFIX)/lib/sysusers.d/rockpool.conf" \
		"$(UNITS)/rockpool.service" "$(UNITS)/rockpool.socket" "$(USER_UNITS)/rockpool.service"

### Package
## Makes dist/rockpool_VERSION_ARCH.deb for Debian 12: the Swift runtime is linked in.
deb: release packagers
	Packaging/build-deb .build/release/rockpool dist

## Makes dist/rockpool-VERSION-linux-MACHINE.tar.xz, to be unpacked over /usr/local.
tarball: release packagers
	Packaging/build-tarball .build/release/rockpool dist

## Makes dist/rockpool-VERSION-oci-ARCH.tar, a container image (OCI), without a daemon; and Dockerfile makes one with a builder.
image: release packagers
	Packaging/build-image .build/release/rockpool dist

## Installs, upgrades, removes and purges the package in a bare Debian 12 without Swift (debootstrap); as root, a minute after the first time.
package-test: release packagers package-testers
	Packaging/root .build/debian-12
	VERSION=0.9.0 COMPRESSION=none Packaging/build-deb .build/release/rockpool .build/packages
	COMPRESSION=none Packaging/build-deb .build/release/rockpool .build/packages
	Packaging/package-test .build/packages/rockpool_0.9.0_*.deb .build/packages/rockpool_$$(Packaging/version)_*.deb .build/debian-12

## Boots systemd in a Debian 12, installs the package and follows README to the letter, with the service and without; as root, half a minute
## after the first time.
service-test: release packagers package-testers
	Packaging/root .build/debian-12-systemd systemd-sysv dbus libpam-systemd sudo curl
	COMPRESSION=none Packaging/build-deb .build/release/rockpool .build/packages
	Packaging/service-test .build/packages/rockpool_$$(Packaging/version)_*.deb .build/debian-12-systemd

## Makes every package with checksums and a list of contents (SBOM) in dist, and tests them: what one runs before a tag. As root.
release-check: release packagers package-testers
	Packaging/release-check dist

### Keep
## Installs missing system libraries; uses no network if none is missing.
deps:
	@# The compiler's caches name the folder of the checkout; moved elsewhere, nothing would build with them.
	@if [ -d .build ] && [ "$$(cat .build/checkout 2>/dev/null || echo '$(CURDIR)')" != "$(CURDIR)" ]; then \
		echo "this checkout was moved: the compiler's caches are made anew"; \
		rm -rf .build/*-linux-gnu .build/debug .build/release; \
	fi; mkdir -p .build; echo "$(CURDIR)" >.build/checkout
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

# Packages, and what to say where they cannot be installed.
define install_if_possible
	@missing=""; \
	for package in $(1); do \
		dpkg-query -W -f '$${db:Status-Status}\n' "$$package" 2>/dev/null | grep -qx installed || missing="$$missing $$package"; \
	done; \
	[ -n "$$missing" ] || exit 0; \
	echo "installing$$missing"; \
	if [ "$$(id -u)" -eq 0 ]; then sudo=""; elif command -v sudo >/dev/null; then sudo="sudo -n"; else echo "$(2)"; exit 0; fi; \
	$$sudo apt-get update -q && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing || echo "$(2)"
endef

## Installs missing clients. Without root or network their tests are skipped.
clients:
	$(call install_if_possible,$(CLIENTS),some clients are missing; their tests are skipped)

# The programs that make and test packages.
packagers:
	$(call install_if_possible,$(PACKAGERS),some packagers are missing: install them yourself)

package-testers:
	$(call install_if_possible,$(PACKAGE_TESTERS),some programs for the tests of packages are missing: install them yourself)

# Python and pip, for `make lint` and `make house`.
linters:
	$(call install_if_possible,$(LINTERS),python3 or python3-pip is missing: install it yourself)

# Not into the system's Python (PEP 668), and never another version: its format would differ.
$(RUFF): | linters
	@python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --retries 1 --timeout 20 \
		--target .build/ruff-$(RUFF_VERSION) ruff==$(RUFF_VERSION) || echo "ruff could not be installed: Python files are not checked"

## Checks the format of Swift strictly, circles between folders (`make house`), that planted mistakes fit the code, and Python by ruff if it
## can be installed.
lint: $(RUFF)
	$(SWIFT) format lint --strict --parallel --recursive $(SWIFT_PATHS)
	python3 -B Tests/house/run --quiet --check circles
	python3 -B -m unittest discover -q -s Benchmarks
	python3 -B Tests/fleet/mistakes/run --check
	@[ ! -x $(RUFF) ] || { set -x; $(RUFF) check -q $(PYTHON_PATHS) && $(RUFF) format -q --check $(PYTHON_PATHS); }

## Measures the rules of CONTRIBUTING.md; fails where a number is above its limit and above its allowance (Tests/house/allowed.json). Tests the
## programs of Tests/house and Tests/evidence first.
house: linters
	@python3 -B -m unittest discover -q -s Tests/house
	@python3 -B -m unittest discover -q -s Tests/evidence
	@python3 -B Tests/house/run

## Applies the formats that `make lint` checks.
format: $(RUFF)
	$(SWIFT) format --in-place --recursive $(SWIFT_PATHS)
	@[ ! -x $(RUFF) ] || { set -x; $(RUFF) check -q --fix $(PYTHON_PATHS); $(RUFF) format -q $(PYTHON_PATHS); }

## Removes the build's products.
clean:
	$(SWIFT) package clean
