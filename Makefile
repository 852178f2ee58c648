# The door to everything; each target is one short script or command. `make help` lists them.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
DATA ?=
FUZZ_SECONDS ?= 600
BENCH_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup setup-cuda build build-cuda test-cuda gpu-test gpu-bench demo test test-unit fuzz bench lint format dist images images-cuda cluster-test fresh-test clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  JOBS=n builds with n processes at once (now $(JOBS)); builds land in build/<preset>."

setup: ## Install what building and testing needs (apt and .deps/); safe to repeat
	tools/setup

build: ## Build the programs that users run, in build/release/bin
	tools/setup build
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target outrigger outrigger-gpu-server outrigger-worker outrigger-operator

setup-cuda: ## Fetch CUDA, cuBLAS, cuDNN and NCCL into .deps/ where the system has none (1.1 GB)
	tools/setup cuda

build-cuda: setup-cuda ## The programs for GPUs, their GPU tests and what they need, in build/cuda; needs no GPU
	cmake --preset cuda
	cmake --build --preset cuda -j $(JOBS) --target outrigger outrigger-gpu-server outrigger-worker outrigger-bench-gpu gpu_tests

test-cuda: build-cuda ## What of CUDA can be tested without a GPU: it compiles, links, and says what is missing
	ctest --test-dir build/cuda --output-on-failure -R '^(no_device_test|bench_gpu_without_one|nn_cuda_nccl_test|nn_cuda_plans_test|nn_cuda_gpu_test|gpu_server_gpu_test)$$'

gpu-test: build-cuda ## Tests on this machine's GPU; GPU_TEST_ARGS go to tests/gpu/run
	tests/gpu/run build/cuda $(GPU_TEST_ARGS)

gpu-bench: build-cuda ## The step on this machine's GPU beside PyTorch's; GPU_BENCH_ARGS go to bench/gpu/compare.py
	bench/gpu/run build/cuda $(GPU_BENCH_ARGS)

demo: ## Train a face recogniser here in a few minutes; DATA=folder for your own photos
	tools/demo $(if $(DATA),"$(DATA)")

test: ## Everything: all tests under ASan and UBSan, the threaded parts under TSan, fuzz corpora
	tools/setup
	JOBS=$(JOBS) tools/test all

test-unit: ## Unit tests only, built fast and without sanitizers
	tools/setup
	JOBS=$(JOBS) tools/test unit

fuzz: ## Fuzz every parser of foreign bytes, FUZZ_SECONDS each (default 600)
	tools/setup
	JOBS=$(JOBS) tools/fuzz $(FUZZ_SECONDS)

bench: ## What is fast, against whom; BENCH_ARGS go to bench/run
	tools/setup
	bench/run $(BENCH_ARGS)

lint: ## Formatting, static analysis, shell scripts, include directions, file sizes
	tools/setup
	JOBS=$(JOBS) tools/lint

format: ## Rewrite the C++ sources in the project's format
	git ls-files -z -- '*.h' '*.cc' '*.cu' '*.cuh' | xargs -0 -r clang-format -i

dist: ## A tarball of the programs with their libraries, for any x86-64 Linux with glibc 2.36
	tools/setup
	JOBS=$(JOBS) tools/dist

images: ## Container images of operator, worker and server, from `make dist`, in dist/images.tar
	tools/setup
	tools/setup images
	JOBS=$(JOBS) tools/images

images-cuda: setup-cuda ## The server's image for GPUs, in dist/images-cuda.tar
	tools/setup images
	JOBS=$(JOBS) tools/images cuda

cluster-test: images ## Everything on a real Kubernetes of one node on this machine; needs root
	tools/setup cluster
	tests/cluster/run

fresh-test: ## The demo on a fresh Debian 12 in a folder, with nothing but this checkout's commit; needs root
	tools/setup images
	tests/fresh/run demo

clean: ## Remove what was built (not .deps)
	rm -rf build dist
