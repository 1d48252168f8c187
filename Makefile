# Every target works from a fresh clone with a Rust toolchain (rustup reads rust-toolchain.toml);
# what else a target needs is installed by `make deps` or named by it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BUILT := $(or $(CARGO_TARGET_DIR),target)
POLYPATH := $(BUILT)/release/polypath
FUZZ_SECONDS ?= 60
WORLDS ?= 100000
SOAK_HOURS ?= 24
SOAK_DAYS ?= 10
INCIDENTS ?= 600
RUNS ?= 10000
SEED ?= 9001

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 15

.PHONY: build
build: ## compile the binary, optimised for what it executes most
	tools/build -p polypath-cli

.PHONY: static
static: ## the program as one file for any Linux, also OpenWrt; TARGET=aarch64-unknown-linux-musl and others for another architecture
	tools/static build $(TARGET)

.PHONY: deb
deb: $(if $(TARGET),static,build) ## a Debian package of it in out/, with the service, manual pages and completions; TARGET as of static
	tools/deb $(if $(TARGET),$(BUILT)/$(TARGET)/release/polypath,$(POLYPATH)) out

.PHONY: demo
# Without the laboratory, and compiled quickly: the installed binary is the one of `make build`.
demo: ## a download over two paths at once, by curl through the daemon where namespaces can be made
	cargo build --profile demo -p polypath-cli --no-default-features --features pure,curl
	tools/demo $(BUILT)/demo/polypath $(ARGS)

.PHONY: test
test: ## every test; tests that need root run when they can
	tools/deps net || echo "without these, tests against the kernel are skipped" >&2
	tools/deps browser || echo "without it, pages are not looked at in a browser" >&2
	cargo test --workspace --tests --no-run
	status=0; $(LANES) -j2 real beside || status=$$?; cat $(BUILT)/beside.txt; exit $$status
	$(MAKE) alone

# Tests in real time wait for most of it. What is computed runs meanwhile, and gives way to them.
# `make -n` runs lines that name $(MAKE) themselves, and these write a file.
LANES = $(MAKE)
LANE = cargo test --workspace --tests --config 'target."cfg(all())".runner = ["tools/lane", "$@"]'
.PHONY: real computed alone beside
real computed:
	$(LANE)
alone:
	$(LANE)
beside:
	nice $(LANES) -j1 computed pure python-test paper > $(BUILT)/beside.txt 2>&1

.PHONY: pure
# All crates and `daemon`, so that libraries have the features that `cargo test --workspace` compiled them with.
pure: ## the crates up to the simulator without a C compiler; both libraries of ciphers give the same
	CC=false CXX=false cargo test --workspace --no-default-features --features polypath-sim/pure,polypath-cli/daemon --test vectors --test states --test traces

.PHONY: static-check
static-check: ## the program of `make static` still compiles for a router of 32 bits, with another C library and no C compiler
	tools/static check i686-unknown-linux-musl

.PHONY: python
python: ## install the Python package into the Python that is active: a virtual environment, or your own
	python3 -m pip install .

.PHONY: python-test
python-test: ## the Python package: its tests, types, examples and notebooks
	tools/python-test

.PHONY: notebooks
notebooks: ## run the notebooks; pages of them in out/notebooks, looked at in a browser
	POLYPATH_NOTEBOOKS=$(CURDIR)/out/notebooks tools/python-test python/tests/test_docs.py -k notebook -rs

.PHONY: sweeps
sweeps: ## RUNS (10000) runs here and by Dask with two workers, then with a worker killed and the scheduler restarted: equal?
	tools/sweeps out/sweeps $(RUNS)

.PHONY: lint
# A check links nothing, so it needs no libFuzzer, and no C++ compiler to make one.
lint: static-check ## rustfmt and clippy, warnings are errors; the fuzz targets and the program for small routers still compile
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy -p polypath-cli --no-default-features --features aws-lc -- -D warnings
	cargo clippy -p polypath-cli --no-default-features --features pure,curl -- -D warnings # as `make demo` builds it
	CUSTOM_LIBFUZZER_PATH=unlinked/libfuzzer.a cargo check --locked --manifest-path fuzz/Cargo.toml --target-dir $(BUILT) --bins

.PHONY: bench
bench: ## speed, side by side with ns-2 where it is installed
	tools/bench

.PHONY: train
train: ## learn anew what the program executes most, for `make build` (as root, 11 minutes)
	tools/deps train
	tools/train

.PHONY: flame
flame: ## flame graphs of send and receive between two fast hosts, in docs (as root, with perf)
	RUSTFLAGS=-Cstrip=none tools/build -p polypath-cli
	tools/flame

.PHONY: figures
figures: build ## run every experiment under experiments/ and check it; results in out/figures, findings in docs/results
	tools/figures $(POLYPATH) out/figures $(ONLY)

.PHONY: paper
paper: ## docs/reproduction.md as a PDF, out/reproduction.pdf
	tools/paper out/reproduction.pdf

.PHONY: fresh-seeds
fresh-seeds: build ## the papers' findings with seeds from SEED (9001) on, beside those that are kept
	for group in mhip rmtcp fast; do \
	    $(POLYPATH) lab check $$group --settle $(SEED) --against docs/results/$$group-*.json > /dev/null || exit 1; \
	done

# With the binary of the tests, which has assertions on: after `make test` nothing more is compiled.
.PHONY: check-quick
check-quick: ## four seeds of every experiment of the papers beside the findings that are kept; our own of few seeds as a whole
	cargo build --workspace --example polypath_native --bin polypath # an example: so it is what `cargo test --workspace` compiled
	for group in mhip rmtcp fast; do \
	    $(BUILT)/debug/polypath lab check $$group --quick --against docs/results/$$group.json docs/results/$$group-*.json > $(BUILT)/$$group.txt || exit 1; \
	done
	specs=$$(grep -lE '^seeds = "1(\.\.[1-5])?"' experiments/foundation/*.toml) || exit 1; for spec in $$specs; do \
	    $(BUILT)/debug/polypath lab run $$spec > $(BUILT)/foundation.txt || { cat $(BUILT)/foundation.txt; exit 1; }; \
	done

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZ_SECONDS (60) each
	tools/deps fuzz
	tools/fuzz $(FUZZ_SECONDS)

.PHONY: soak
soak: ## WORLDS (100000) random worlds, every invariant checked; two hosts for SOAK_DAYS (10) of SOAK_HOURS (24) of virtual time, each with other incidents; as root INCIDENTS (600) to real daemons
	POLYPATH_WORLDS=$(WORLDS) cargo test --release -p polypath-sim --test worlds -- --nocapture
	for day in $$(seq $(SOAK_DAYS)); do \
	    POLYPATH_SOAK_SEED=$$day POLYPATH_SOAK_HOURS=$(SOAK_HOURS) cargo test --release -p polypath-endpoint --test all soak -- --nocapture || exit 1; \
	done
	POLYPATH_INCIDENTS=$(INCIDENTS) cargo test -p polypath-cli --test all incidents -- --nocapture

.PHONY: doc
doc: ## the documentation of every crate, warnings are errors
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

.PHONY: validate-ns2
validate-ns2: ## install ns-2, run the same scenarios in both simulators, print the table
	tools/deps ns2
	tools/validate-ns2

.PHONY: deps
deps: ## install what the other targets need (as root or by sudo), or say exactly what to install
	tools/deps all
