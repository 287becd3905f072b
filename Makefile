# Thin targets over CMake and Ninja. `make help` lists them.
#
# Missing packages are installed with apt-get; NO_INSTALL=1 prevents that.
# `make check` begins with `make test`; TESTED=1 skips it. CTEST_FLAGS are
# further options of ctest.
#
# `build`, `train`, `bench` and `install` build the target `product`: what users
# get. They do not configure tests, and keep them where `make test` has.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
FUZZ_SECONDS ?= 60
RUN ?= runs/first
TRAIN ?= --model lenet --data fashion-mnist --workers 8 --topology ring \
         --algorithm powergossip --epochs 12 --schedule cosine

export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)
# Many tests wait for processes or deadlines: one more than there are cores.
export CTEST_PARALLEL_LEVEL = $(shell expr $(JOBS) + 1)

need = $(if $(NO_INSTALL),@:,@tools/install_packages.sh)
quiet = --log-level=WARNING
preset = cmake --preset $(1) $(quiet) && cmake --build --preset $(1)
configure = test -f build/build.ninja || \
            cmake --preset release -DBUILD_TESTING=OFF $(quiet)
product = cmake --build build --target product
step = tools/step.sh
checks = sets format clang lint asan tsan portable arm64 smpi deb debian fuzz
sources = $(shell find src include tests fuzz examples bench \
            -name '*.[ch]' -o -name '*.def' -o -name '*.[ch]pp')

.PHONY: all build train test check bench python deb install deps format lint \
        clean help check-sets check-format check-lint check-clang check-asan \
        check-tsan check-portable check-arm64 check-smpi check-deb \
        check-debian check-train check-short check-fuzz simulator

all: build

build: ## build the library and the command build/laconic (the default)
	$(need) build
	@$(configure)
	$(product)

train: build ## train LeNet with eight workers on a ring, compressed
	$(need) train
	build/laconic train $(TRAIN) --out $(RUN) --resume

test: ## build, and test every feature once
	$(need) build train test
	@rm -f build/steps.txt
	@$(step) build sh -euc '$(call preset,release)'
	@$(step) test ctest --preset test $(CTEST_FLAGS)
	@echo "make test: all tests passed"

check: ## test, then all other tests, format, lint, sanitizers and fuzzing
	$(need) build train test check deb
	$(if $(TESTED),,$(MAKE) --no-print-directory test)
	@for name in $(checks); do \
	    $(step) check-$$name $(MAKE) --no-print-directory check-$$name || \
	        exit; \
	done
	@tools/record_steps.py
	@echo "make check: everything passed"

check-sets: # the tests that `make test` leaves out
	$(call preset,release)
	ctest --preset check $(CTEST_FLAGS)

check-format: # every source has the format of clang-format
	@clang-format --dry-run -Werror $(sources)
	@echo "format: $(words $(sources)) files are formatted"

check-clang: # the other compiler has no warnings, and its code passes
	$(call preset,clang)
	ctest --preset clang $(CTEST_FLAGS)

check-lint: # clang-tidy, with the commands of the clang build
	$(call preset,clang)
	@tools/lint.sh build-clang $(JOBS)

check-asan: # tests under the address and undefined-behaviour sanitizers
	$(call preset,asan)
	ctest --preset asan $(CTEST_FLAGS)

check-tsan: # transports and groups under the thread sanitizer
	cmake --preset tsan $(quiet)
	cmake --build --preset tsan --target sharing
	ctest --preset tsan $(CTEST_FLAGS)

check-portable: # kernels, payloads, results and the command without AVX2
	$(call preset,portable)
	ctest --preset portable $(CTEST_FLAGS)
	cmake -G Ninja -B build-portable/command -DBUILD_TESTING=OFF \
	    -DCMAKE_BUILD_TYPE=Release -DLAC_AVX2=OFF -DLAC_WERROR=ON $(quiet)
	cmake --build build-portable/command --target laconic_cli

check-arm64: # kernels, payloads and results on arm64, in an emulator
	$(need) arm64
	$(call preset,arm64)
	ctest --preset arm64 $(CTEST_FLAGS)

check-smpi: build # the command on simulated clusters, if SimGrid can be installed
	-$(need) simulator
	@if command -v smpirun >/dev/null; then \
	    $(call preset,smpi) && ctest --preset smpi $(CTEST_FLAGS); \
	else \
	    echo "smpi: skipped, libsimgrid-dev is not installed"; \
	fi

check-deb: deb # lintian, then the packages in a clean chroot
	lintian --fail-on=error,warning build/deb/*.changes
	tools/try_packages.sh build/deb || test $$? = 77

check-debian: # training and the short tests on Debian 13, if it can be made
	-$(need) chroot
	@tools/try_debian.sh trixie check-train check-short || test $$? = 77

check-train: train # the accuracy of `make train`
	@tools/check_accuracy.sh $(RUN) 0.89

check-short: # the tests with the label `short`
	$(need) build short
	cmake --preset release $(quiet)
	cmake --build --preset release --target short
	ctest --preset short $(CTEST_FLAGS)

check-fuzz: # hostile input for every decoder and parser
	cmake --preset fuzz $(quiet)
	cmake --build --preset fuzz --target fuzzers
	@tools/fuzz.sh build-fuzz $(FUZZ_SECONDS)

bench: build ## measure the compressors on this machine
	build/laconic bench

simulator: ## build the command for simulated clusters, tools/simulate.py
	$(need) build simulator
	cmake --preset smpi -DBUILD_TESTING=OFF $(quiet)
	cmake --build --preset smpi --target laconic_cli

python: ## make a wheel of the Python package in build/python
	$(need) build python
	$(PYTHON) -m pip wheel --no-build-isolation --no-deps --no-index \
	    --wheel-dir build/python ./python

deb: ## build the Debian packages in build/deb
	$(need) build deb
	tools/build_packages.sh build/deb $(JOBS)

# For DESTDIR the loader is not updated: that is done where the files end up.
install: ## install under PREFIX (/usr/local), below DESTDIR if that is set
	$(need) build
	@$(configure)
	cmake -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(quiet) build
	$(product)
	DESTDIR=$(DESTDIR) cmake --install build
	$(if $(DESTDIR),,@tools/update_loader.sh $(PREFIX))

deps: ## install every package that any target needs
	$(need) build train test check arm64 deb simulator

format: ## format all sources with clang-format
	$(need) check
	@clang-format -i $(sources)

# Advice on style is never an error. `check-lint` runs clang-tidy, and the tests
# lint.* check the rules that protect users: these fail.
lint: ## print advice on sizes, static names and words
	@$(PYTHON) -B tools/check_sizes.py .
	@$(PYTHON) -B tools/check_static_names.py .
	@$(PYTHON) -B tools/check_words.py .

clean: ## remove everything that was built
	rm -rf build build-*

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-10s%s\n", $$1, $$2 }' \
	    $(firstword $(MAKEFILE_LIST))
