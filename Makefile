# The front door: thin targets over CMake and Ninja. `make help` lists them.
#
# Packages that are missing are installed with apt-get; NO_INSTALL=1 leaves
# the machine as it is. `make check` begins with `make test`; TESTED=1 says that
# this has just been done.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 180
RUN ?= runs/first
TRAIN ?= --model lenet --data fashion-mnist --workers 8 --topology ring \
         --algorithm powergossip --epochs 12 --schedule cosine

export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)
export CTEST_PARALLEL_LEVEL = $(JOBS)

need = $(if $(NO_INSTALL),@:,@tools/install_packages.sh)
preset = cmake --preset $(1) $(2) --log-level=WARNING && \
         cmake --build --preset $(1)
sources = $(shell find src include tests fuzz examples bench \
            -name '*.[ch]' -o -name '*.def' -o -name '*.cpp')

.PHONY: all build train test check bench install deps format clean help \
        check-format check-lint check-clang check-asan check-portable check-fuzz

all: build

build: ## build the library and the command build/laconic (the default)
	$(need) build
	$(call preset,release,$(if $(wildcard build/CMakeCache.txt),,\
	    -DBUILD_TESTING=OFF))

train: build ## train LeNet with eight workers on a ring, compressed
	$(need) train
	build/laconic train $(TRAIN) --out $(RUN) --resume

test: ## build and run all tests
	$(need) build train test
	$(call preset,release,-DBUILD_TESTING=ON)
	ctest --preset release
	@echo "make test: all tests passed"

check: ## test, then format, lint, sanitizers, other builds and fuzzing
	$(need) build train test check
	$(if $(TESTED),,$(MAKE) --no-print-directory test)
	$(MAKE) --no-print-directory check-format
	$(MAKE) --no-print-directory check-clang
	$(MAKE) --no-print-directory check-lint
	$(MAKE) --no-print-directory check-asan
	$(MAKE) --no-print-directory check-portable
	$(MAKE) --no-print-directory check-fuzz
	@echo "make check: everything passed"

check-format: # every source is as clang-format would write it
	@clang-format --dry-run -Werror $(sources)
	@echo "format: $(words $(sources)) files are well formed"

check-clang: # the other compiler finds nothing to warn about
	$(call preset,clang)
	ctest --preset clang

check-lint: # clang-tidy, with the commands of the clang build
	$(call preset,clang)
	@tools/lint.sh build-clang $(JOBS)

check-asan: # all tests under the address and undefined-behaviour sanitizers
	$(call preset,asan)
	ctest --preset asan

check-portable: # all tests without the AVX2 kernels
	$(call preset,portable)
	ctest --preset portable

check-fuzz: # hostile input for every decoder and parser
	$(call preset,fuzz)
	@tools/fuzz.sh build-fuzz $(FUZZ_SECONDS)

bench: build ## measure the compressors on this machine
	build/laconic bench

# What is staged in DESTDIR is told to the loader by whoever installs it there.
install: ## install under PREFIX (/usr/local), below DESTDIR if that is set
	$(need) build
	$(call preset,release,-DCMAKE_INSTALL_PREFIX=$(PREFIX) \
	    $(if $(wildcard build/CMakeCache.txt),,-DBUILD_TESTING=OFF))
	DESTDIR=$(DESTDIR) cmake --install build
	$(if $(DESTDIR),,@tools/update_loader.sh $(PREFIX))

deps: ## install every package that any target needs
	$(need) build train test check

format: ## rewrite all sources as clang-format wants them
	$(need) check
	clang-format -i $(sources)

clean: ## remove everything that was built
	rm -rf build build-*

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-10s%s\n", $$1, $$2 }' \
	    $(firstword $(MAKEFILE_LIST))
