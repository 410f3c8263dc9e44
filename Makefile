# make demo   the main job on real traffic: sixteen TCP flows, each held to its own rate
# make test   everything that is checked before a change lands
# make quick  format, clippy and unit tests of the crates that differ from HEAD, or from BASE
# make repro  the papers' figures, tables and claims again: out/repro/report.html
# make build  target/release/weir
# make benchmarks  target/release/weir-bench
# make deb    Debian packages and a tarball, in target/debian
# make book   the pages of docs as a book, in target/book
# make gallery  the figures of docs/gallery.md
# make py     the Python package, in the environment target/python
# make bench  the figures of docs/measurements.md
# make kernels  all BPF programs and a shaped transfer each way on Debian's kernels, in virtual machines
# make hosts [ONLY=kills]  a gateway between hosts of its own in trouble of many kinds
# make verify [PART=kernels]  what takes too long for every change, all of it or a part
#
# Everything runs as the user; root is asked for (sudo) only where namespaces or interfaces need it.

SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -E)
WEIR := target/release/weir
# Test programs that need root are run through this; cargo takes no empty runner.
RUNNER := $(or $(SUDO),env)
AS_ROOT := CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$(RUNNER)" CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$(RUNNER)"

# Cargo's options for the integration tests of crates. A selection of the whole workspace builds no crate twice.
tests = $(foreach crate,$(1),$(patsubst crates/$(crate)/tests/%.rs,--test %,\
	$(wildcard crates/$(crate)/tests/*.rs)) $(patsubst crates/$(crate)/tests/%/main.rs,--test %,$(wildcard crates/$(crate)/tests/*/main.rs)))

# Experiments that run in virtual time, in seconds.
VIRTUAL := $(addprefix experiments/papers/,ack-shaper/fig2.toml ack-shaper/fig3.toml ack-shaper/fig4.toml \
	ack-shaper/fig6.toml ack-shaper/fig7.toml ack-shaper/fig8.toml ack-shaper/fig9.toml ack-shaper/fig10.toml \
	ack-shaper/fig11.toml ack-shaper/fig12.toml ack-shaper/congested.toml ack-shaper/policer.toml ack-shaper/published.toml ack-shaper/published-fig8.toml ack-shaper/published-fig11.toml ack-shaper/published-fig12.toml ack-shaper/recovery.toml \
	$(addprefix ack-filter/,base.toml threshold.toml deadlock.toml static-1.toml static-3.toml static-30.toml static-500.toml delayed.toml stack.toml)) \
	$(wildcard experiments/asymmetric/*.toml) \
	experiments/truth/lossy-path.toml $(wildcard experiments/loss/*.toml) $(wildcard experiments/peers/*.toml) $(wildcard experiments/fair/*.toml) $(wildcard experiments/start/*.toml) $(wildcard experiments/theory/*.toml) \
	$(addprefix experiments/home/,100-20.toml 100-20-tcp.toml 100-20-fq-codel.toml 20-2.toml 20-2-tcp.toml 20-2-fq-codel.toml tins.toml) \
	$(addprefix experiments/class/,atm.toml four.toml four-slow.toml customer.toml customers.toml idle.toml two-hundred.toml web.toml \
		burst.toml beside-share.toml beside-fq-codel.toml weights.toml nested.toml ceiling.toml takeover.toml flow-max.toml flow-min.toml site.toml udp.toml udp-above.toml udp-each.toml short.toml come-and-go.toml) \
	$(addprefix experiments/papers/postack/,intro.toml intro-short.toml fig8.toml fig8-buffer.toml fig8-window.toml fig9.toml fig10.toml fig11.toml fig11-five.toml fig8-cbq.toml fig8-sweep.toml fig8-tcr.toml presets.toml \
		fig8-rooms.toml fig16.toml guarantee.toml guarantee-tcr.toml borrow.toml inbound.toml gigabit.toml paced.toml) \
	experiments/sharing/atm.toml experiments/sharing/customers.toml experiments/sharing/rates.toml experiments/sharing/both.toml experiments/sharing/takeover.toml experiments/examples/sharing.toml experiments/examples/aqm.toml \
	experiments/examples/pacing.toml $(addprefix experiments/papers/gap-pacer/,table2.toml table3.toml table4.toml table5.toml \
		table5-unpaced.toml table5-tbf.toml table5-tbf-4m.toml window.toml window-clock.toml fig3.toml fig8.toml fig8-unpaced.toml fig9.toml fig9-unpaced.toml) \
	$(addprefix experiments/papers/paced-chirping/,lone.toml pair.toml fig6.toml both-start.toml both-fig6.toml vanish.toml reorder.toml fig5.toml fig5-alone.toml fig7.toml)

.PHONY: demo test quick build benchmarks repro repro-short deb book py python gallery deny packages commands bench kernels beside hosts miri random additions papers mutations prometheus page evidence verify setup format lint unit virtual virtual-files truth instructions privileged-build privileged fuzz clean

PARTS := deny book commands packages kernels beside hosts miri random additions papers mutations prometheus python page evidence
PART ?= $(PARTS)

build: setup
	cargo build --release --locked -p weir

benchmarks: setup
	cargo build --release --locked -p weir-bench

deb: setup
	scripts/package

# Licences, sources and known holes of the libraries.
deny:
	@command -v cargo-deny >/dev/null || cargo install --quiet --locked cargo-deny --version 0.20.2
	cargo deny check licenses bans sources

# The Python package: installed, and its tests.
py: setup
	scripts/python --install

python: setup
	scripts/python

# The figures of docs/gallery.md, by the code on that page.
gallery:
	scripts/python --install
	target/python/bin/pip install --quiet matplotlib
	target/python/bin/python scripts/gallery

book:
	@command -v mdbook >/dev/null || cargo install --quiet --locked mdbook --version 0.5.4
	mdbook build docs

# Every command of README and docs, those of minutes too.
commands: build benchmarks
	$(SUDO) scripts/commands --all

# Packages installed, upgraded and removed in roots of Debian 12 and 13, with systemd as process 1.
packages: deb
	$(SUDO) scripts/packages/run

demo: build
	$(SUDO) $(WEIR) lab experiments/papers/ack-shaper/fig12-short.toml --out out/demo

test:
	@scripts/parts setup format unit virtual repro-short truth instructions privileged-build privileged+lint

quick:
	@scripts/quick $(BASE)

setup:
	@scripts/setup

# What takes seconds to see.
format:
	scripts/prose --check
	scripts/additions --check
	cargo fmt --all --check
	for crate in fuzz py stacks; do cargo fmt --manifest-path $$crate/Cargo.toml --check || exit 1; done

# The simulator builds without what needs Linux, the gateway without experiments, and fuzz targets as they are.
lint: format
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy -p weir-core --features loom --test protocols --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked
	cargo check -p weir --no-default-features --features experiments --locked
	cargo check -p weir --no-default-features --features linux --locked
	cargo clippy --manifest-path fuzz/Cargo.toml --target-dir target --locked -- -D warnings

# Unit, property and packet-level tests: virtual time, no privileges. Random inputs are the same in every
# run, so that a change is judged by what it changed; `make random` tries others.
unit: export PROPTEST_RNG_SEED ?= 1
unit:
	cargo test --workspace --locked --lib --bins $(call tests,core conformance chirp)
	cargo test -p weir-core --features loom --locked --test protocols
	cargo test --workspace --locked --doc

# The rules of TCP for every preset, and the papers' figures in virtual time, each with its checks.
virtual: build
	$(WEIR) conformance
	@OUTPUTS=out/virtual scripts/virtual $(VIRTUAL)
	scripts/figures out/virtual
	scripts/mutations --fast

# All papers, at most 30 minutes on two processors: what is there already of this program is not run again.
repro: build
	$(WEIR) repro

# Rows that take some seconds: each must agree with its paper or have a reason, and all checks must hold.
repro-short: build
	$(WEIR) repro --within 0.1 --out out/repro-short

# The experiments of `virtual`, for scripts/compare-results.
virtual-files:
	@printf '%s\n' $(VIRTUAL)

# Independent references of queues, shares and recovery, each against the simulator with so many random inputs.
CASES ?= 20
truth: build
	python3 experiments/truth/run.py $(WEIR) $(CASES)

# Instructions per packet beside those stored: the gate for speed.
instructions: setup
	scripts/instructions

# Tests that need root, built and not run.
privileged-build: build
	cargo test --workspace --locked --no-run $(call tests,io weir weir-bench)

# BPF programs loaded for real, packet sockets, supervisor, short lab runs. Those of weir-io have run with `unit` if that was root's.
privileged: build
	$(if $(SUDO),$(AS_ROOT) cargo test -p weir-io --locked --lib)
	$(AS_ROOT) cargo test --workspace --locked $(call tests,io weir weir-bench) -- --test-threads=1
	scripts/lab experiments/papers/ack-shaper/fig12-short.toml
	scripts/lab experiments/papers/ack-shaper/fig11-short.toml

bench: build benchmarks
	cargo bench -p weir-core --locked
	cargo bench -p weir-sim --locked
	$(WEIR)-bench sim
	for b in inline all share two-way rates outage hostile wan; do $(SUDO) $(WEIR)-bench $$b || exit 1; done
	$(SUDO) python3 scripts/evidence/watched.py

verify: $(PART)

# Property tests with twenty times as many inputs, others in every run. SEED=n repeats a run.
SEED := $(or $(SEED),$(shell shuf -i 1-1000000000 -n 1))
random:
	@echo "SEED=$(SEED)"
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=5000 ACCECN_PACKETS=1000000 cargo test --release -p weir-core -p weir-sim -p weir-chirp --locked --lib
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=5000 cargo test --release -p weir-core --locked --test '*'
	ACCECN_PACKETS=1000000 cargo test --release -p weir-conformance --locked --test accurate

# Figures that take too long for every change.
papers: build
	@scripts/virtual experiments/home/1000-50.toml $(addprefix experiments/papers/,ack-filter/fig11.toml ack-filter/fig12.toml \
		$(addprefix ack-filter/,access.toml drop-policy.toml drop-policy-slow.toml) postack/fig9-curve.toml postack/fig9-series.toml postack/fig12.toml \
		postack/schemes-loss.toml gap-pacer/table5-depth.toml gap-pacer/table5-time.toml \
		$(addprefix paced-chirping/,fig1.toml fig5-15ms.toml fig5-greedy.toml both-fig1.toml both-fig5.toml both-fig5-greedy.toml both-fig7.toml))

# Every scheme taken away from every file of the papers that has it: the file must notice.
mutations: build
	scripts/mutations

# Memory that the kernel writes and other processes share, by a nightly toolchain with the component `miri`.
miri:
	MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks" cargo +nightly miri test -p weir-io --lib --locked -- port::places shared_values

# An example of each thing that one may add, in a scratch copy: it builds, and touches four files at most.
additions:
	scripts/additions

# Alert rules, dashboard and metrics by Debian's Prometheus, which the first run fetches.
prometheus:
	scripts/prometheus

# The page of `weir dashboard` in Debian's Chromium, with 10,000 customers and hostile names.
page:
	python3 scripts/page.py

# Quality of flows beside tshark's and the senders' counts, the page of a running gateway in Chromium, and the
# book's lines for a reverse proxy in nginx.
evidence: build
	$(SUDO) python3 scripts/evidence/quality.py
	$(SUDO) python3 scripts/evidence/page.py
	$(SUDO) python3 scripts/evidence/proxy.py

# Some minutes for each kernel. KERNELS="6.1 7.3" are those alone.
kernels: build
	WEIR=$(WEIR) scripts/kernels/run $(KERNELS)

# A home's line beside CAKE and FQ-CoDel, in a virtual machine. LINES="100-20" is that one.
beside: build
	WEIR=$(WEIR) scripts/kernels/beside $(LINES)

# Some minutes. ONLY="kills long" are those alone; scripts/hosts --list says what there is.
hosts: build
	$(SUDO) env WEIR=$(WEIR) scripts/hosts $(ONLY)

# A minute of each fuzz target; needs a nightly toolchain and cargo-fuzz.
fuzz: build
	cd fuzz && for t in parse slot track gateway steered experiment traces; do cargo +nightly fuzz run $$t -- -max_total_time=60 || exit 1; done
	cd fuzz && mkdir -p corpus/config && \
		cargo +nightly fuzz run config corpus/config ../examples ../experiments -- -max_total_time=60
	cd fuzz && mkdir -p corpus/lists && \
		cargo +nightly fuzz run lists corpus/lists ../crates/weir/tests/lists -- -max_total_time=60
	cd fuzz && mkdir -p corpus/results && ../$(WEIR) sim ../experiments/examples/aqm.toml --json corpus/results/aqm.json >/dev/null && \
		cargo +nightly fuzz run results corpus/results -- -max_total_time=60

clean:
	cargo clean
	rm -rf out
