# Every target works on a fresh machine with Python >= 3.11 and make: the first one builds .venv.
PYTHON ?= python3
BIN := .venv/bin
SHARED := ../shared/data

.PHONY: setup demo test check guarantee bench train-compact train-denoiser clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[all,test]"
	touch $@

demo: setup  ## certify three street scenes; pictures go to demo/
	$(BIN)/certiseg demo --out demo

test: setup  ## the whole test suite (about ten minutes on two cores)
	$(BIN)/python -m pytest

check: setup  ## style and types; with `make test` this is what CI runs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

guarantee: setup  ## 10,000 and more simulated images; writes docs/guarantee.md
	$(BIN)/python -m tests.guarantees.report

bench: setup  ## ratios of speed and memory, on an idle machine
	$(BIN)/python -m benchmarks

train-denoiser: setup  ## the recipe of the shipped denoiser; needs ../shared, resumable
	mkdir -p runs
	$(BIN)/python -m certiseg.training.denoise --images $(SHARED)/camvid/train/images $(SHARED)/comma10k/images \
		--steps 2500 --threads 1 --out runs/denoiser.safetensors

clean:
	rm -rf .venv demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
