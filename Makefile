# The front door. Every target first installs the Debian packages that it misses (packages.txt).
JOBS ?= $(shell nproc)
# Much of a test's time is waiting: six at a time keep a core busy.
TEST_JOBS ?= $(shell expr $(JOBS) '*' 6)
PREFIX ?= /usr/local
SEEDS ?= 1000000
QUORUM_SEEDS ?= 100000
FUZZ_SECONDS ?= 60
PYTHON ?= python3

# Targets share build folders; Ninja is what runs in parallel.
.NOTPARALLEL:
.DEFAULT_GOAL := build
.PHONY: build demo test test-long check format sanitize sanitize-long sim explore bench bench-peers bench-scaling install deb fresh clean help
.PHONY: packages packages-test packages-tools packages-peers
.PHONY: python torture-python clang docs torture report-shots serve-shots broken-locks fuzz interop

build: packages build/build.ninja ## build everything; the program is build/holdfast
	cmake --build build -j $(JOBS)

demo: packages build/build.ninja ## show what holdfast does; builds the program only
	@echo "make demo: compiles the program (two to three minutes on two cores), then sells 200 items to 1,000 buyers"
	@NINJA_STATUS="compiling, %f of %t " cmake --build build -j $(JOBS) --target holdfast_cli
	@scripts/demo

test: packages-test ## build everything and run all tests that a change must pass
	@echo "make test: 10 to 17 minutes on two cores, more than half of them compiling; see build/tests.xml afterwards"
	@$(MAKE) --no-print-directory build
	rm -rf build/tests.inside build/tests.xml build/first_data
	ctest --preset dev -j $(TEST_JOBS) --output-junit tests.xml || scripts/show-failures build/tests.xml
	@scripts/check-coverage build/tests.xml

test-long: packages-test build ## what takes longer: the tests on engines with more rounds and all kinds of locks, a million seeds, every mutant from seed 1 on, half a minute of torture per engine, the Conan package
	HOLDFAST_LONG=1 ctest --preset dev -j $(TEST_JOBS) -L '^(contract|integration|cli|install|python)$$' --output-junit tests-long.xml \
	  || scripts/show-failures build/tests-long.xml
	@$(MAKE) --no-print-directory sim
	@$(MAKE) --no-print-directory torture
	scripts/check-conan

check: packages-tools build ## format, clang-tidy and the project's own rules
	scripts/check-format
	scripts/check-files
	scripts/check-lua
	scripts/check-core-purity
	scripts/check-headers
	scripts/check-tidy

clang: packages-tools build/clang/build.ninja ## compile everything with clang; runs nothing
	cmake --build build/clang -j $(JOBS)

format: packages-tools ## format all sources
	scripts/check-format --fix

# On the engines that need no server: instrumented, a server's clients take longer than the rest
# together. The simulator runs the code of the core tests.
servers := ^contract\.(redis|redlock|zookeeper|etcd|postgresql|mariadb)

sanitize: packages-test build/asan/build.ninja build/tsan/build.ninja ## core and contract tests with ASan + UBSan; core tests with TSan
	cmake --build build/asan -j $(JOBS) --target test_unit test_contract test_fault c_interface c_interface_static c_first
	ctest --preset asan -j $(TEST_JOBS) -L '^(unit|contract|fault)$$' -E '$(servers)' --output-junit tests.xml \
	  || scripts/show-failures build/asan/tests.xml
	cmake --build build/tsan -j $(JOBS) --target test_unit test_fault
	ctest --preset tsan -j $(TEST_JOBS) -L '^(unit|fault)$$' --output-junit tests.xml \
	  || scripts/show-failures build/tsan/tests.xml

sanitize-long: packages-test build/asan/build.ninja build/tsan/build.ninja ## the contract tests on all engines, with ASan + UBSan, then with TSan
	cmake --build build/asan -j $(JOBS) --target test_contract c_interface c_interface_static c_first
	ctest --preset asan -j $(TEST_JOBS) -L '^contract$$' --output-junit tests.xml || scripts/show-failures build/asan/tests.xml
	cmake --build build/tsan -j $(JOBS) --target test_contract c_interface c_interface_static c_first
	ctest --preset tsan -j $(TEST_JOBS) -L '^contract$$' --output-junit tests.xml || scripts/show-failures build/tsan/tests.xml

sim: build ## run the simulator: SEEDS=1000000; then search for every mutant from seed 1 on
	build/sim --seeds $(SEEDS) --jobs $(JOBS)
	build/sim_mutants --jobs $(JOBS)
	build/sim_quorum --seeds $(QUORUM_SEEDS) --jobs $(JOBS)
	build/sim_quorum_mutants --all --jobs $(JOBS)

explore: build ## every order of events of small worlds; then every mutant in them
	build/explore --jobs $(JOBS)
	build/explore_mutants

torture: packages-test build ## half a minute of torture on every engine that can be started here
	set -e; for engine in embedded redis redis-sentinel redis-cluster redlock zookeeper etcd etcd-cluster postgresql \
	    postgresql-session postgresql-row mariadb mariadb-session mariadb-row; do \
	  echo "== $$engine"; build/holdfast torture --start $$engine --duration 30s; done

torture-python: packages-test build ## half a minute of Python and C++ processes on the same locks, on two engines
	python/build-package build/libholdfast_c.so build/python
	set -e; for engine in sqlite redis; do python/run-torture build/python build/tests/python_torture_worker $$engine 30; done

broken-locks: packages-test build ## play the broken locks and write docs/broken-locks.md
	build/broken_locks > build/broken-locks.md
	mv build/broken-locks.md docs/broken-locks.md

fuzz: packages-tools ## libFuzzer on what comes from outside; FUZZ_SECONDS=60 for each target
	scripts/install-packages fuzz
	scripts/fuzz $(FUZZ_SECONDS)

docs: ## the documentation as a site, in build/site
	scripts/install-packages docs
	scripts/pictures
	bench/tables
	mkdocs build -q --strict
	@echo "build/site/index.html"

report-shots: packages-tools build ## the page of a torture in headless Chromium, at two widths, into docs/pictures
	scripts/install-packages browser servers
	scripts/report-shots

serve-shots: packages-tools build ## the live page in headless Chromium, at two widths, into docs/pictures
	scripts/install-packages browser servers
	scripts/serve-shots

bench: packages-tools build/release/build.ninja ## run the benchmarks, release build
	cmake --build build/release -j $(JOBS)
	set -e; for bench in build/release/bench_*; do "$$bench"; done

bench-peers: packages-peers build/release/build.ninja ## holdfast beside other libraries, at most 20 minutes: bench/results, the tables of the pages; PEERS='--only redis-1'
	cmake --build build/release -j $(JOBS) --target holdfast_cli holdfast_c peer_holdfast peer_bare
	bench/peers/run $(PEERS)

bench-scaling: packages-peers build/release/build.ninja ## how cost and memory grow, on every engine, at most an hour: plots in bench/results; SCALING='--engine etcd'
	cmake --build build/release -j $(JOBS) --target holdfast_cli peer_load
	bench/scaling $(SCALING)

python: packages build/release/build.ninja ## a wheel of the Python package, in build/wheels; PYTHON=python3
	scripts/install-packages python
	cmake --build build/release -j $(JOBS) --target holdfast_c
	HOLDFAST_C_LIBRARY=$(CURDIR)/build/release/libholdfast_c.so $(PYTHON) -m pip wheel -q --no-build-isolation --no-deps -w build/wheels ./python
	@ls build/wheels/*.whl

install: packages build/release/build.ninja ## install into PREFIX=/usr/local; honours DESTDIR
	cmake --build build/release -j $(JOBS)
	cmake --install build/release --prefix "$(PREFIX)"

deb: packages-tools build/package/build.ninja ## Debian packages, in build/package
	cmake --build build/package -j $(JOBS)
	cd build/package && cpack -G DEB

interop: packages-test packages-peers build ## other libraries and holdfast on the same locks: docs/interop.md; fetches them
	HOLDFAST_SOURCE_DIR=$(CURDIR) build/tests/test_interop
	scripts/interop-etcd
	scripts/interop

fresh: packages-tools ## demo, tests, install and the README of HEAD on a bare Debian, in a chroot; needs root; LOG=file
	scripts/fresh $(LOG)

clean: ## remove all build folders
	rm -rf build

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' Makefile | while IFS='|' read -r name text; do \
	  printf '  make %-12s %s\n' "$$name" "$$text"; done

packages:
	@scripts/install-packages build

packages-test:
	@scripts/install-packages build servers browser docs python

packages-tools:
	@scripts/install-packages build tools

packages-peers:
	@scripts/install-packages build
	@scripts/install-packages --each servers python peers

# Ninja runs CMake again by itself, except for a changed preset.
build/build.ninja: CMakePresets.json | packages
	cmake --preset dev
	@touch $@

build/%/build.ninja: CMakePresets.json | packages
	cmake --preset $*
	@touch $@
