# Every target works on a fresh machine with Python >= 3.11 and make: the first one builds .venv.
PYTHON ?= python3
BIN := .venv/bin
SHARED := ../shared/data

.PHONY: setup demo test check guarantee robustness mutants fuzz faults audit test-ray test-wheel test-browser screenshots bench bench-quick results train-compact train-denoiser remedies clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[all,test]"
	touch $@

demo: setup  ## certify three street scenes; pictures go to demo/
	$(BIN)/certiseg demo --out demo

test: setup  ## the whole test suite, two files at a time (about seven minutes on two cores)
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: setup  ## style and types; all that CI runs is in .ci/run
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

guarantee: setup  ## 10,000 and more simulated images; writes docs/guarantee.md
	$(BIN)/python -m tests.guarantees.report

robustness: EVERY := 12
robustness: setup  ## attacks on certificates of every twelfth CamVid image; writes docs/robustness.md; needs ../shared
	$(BIN)/certiseg evaluate camvid --root $(SHARED)/camvid --every $(EVERY) --methods nested --backend openvino --out runs/robustness
	$(BIN)/certiseg attack runs/robustness --root $(SHARED)/camvid --backend openvino --steps 3 --restarts 2 --samples 1 \
		--draws 48 --few-draws 24 --out runs/robustness.md
	cp runs/robustness.md docs/robustness.md

mutants: setup  ## breaks the source on purpose, edit by edit; writes docs/mutants.md; resumable
	$(BIN)/python -m tests.mutation

fuzz: setup  ## hostile files and command lines: make fuzz COUNT=5000 FIRST=1000 for others
	$(BIN)/python -m tests.fuzz --count $(or $(COUNT),2400) --first $(or $(FIRST),0)

faults: setup  ## full disks, lost rights, and fifty of each signal at random moments
	FAULTS=50 $(BIN)/python -m pytest -s tests/faults

audit: setup  ## known vulnerabilities of the pinned versions, from PyPI's advisories; needs the network
	test -x .venv/audit/bin/pip-audit || { $(PYTHON) -m venv .venv/audit && .venv/audit/bin/pip install --quiet pip-audit; }
	$(BIN)/python -m tests.supply.audit .venv/audit/bin/pip-audit

test-ray: setup  ## faults on a real two-node Ray cluster on this machine (a few minutes)
	$(BIN)/python -m pytest tests/engines/ray_faults.py

test-wheel: setup  ## the wheel: built, complete, and at work in an environment of its own
	$(BIN)/python -m pytest tests/supply/wheel.py

bench: setup  ## ratios of speed and memory, on an idle machine; WRITE=docs/performance.md puts them there
	$(BIN)/certiseg bench $(if $(WRITE),--write $(WRITE))

bench-quick: setup  ## a small check of the same ratios with wide margins
	$(BIN)/certiseg bench --quick

results: EVERY := 4
results: setup  ## `compact` on CamVid test by every method; writes docs/results.md; needs ../shared and an hour, resumable
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m certiseg.analysis.results --root $(SHARED)/camvid --every $(EVERY)

TRAIN = OMP_WAIT_POLICY=PASSIVE $(BIN)/certiseg train
COMMON = --resume --sigma 0.25 --noise mixed --noisy-share 0.6 --batch-size 8 --crop 256 336 --schedule one-cycle \
	--loss-at logits
EARLY = $(COMMON) --scale 0.7 1.6 --weight-decay 0.02
CAMVID = camvid --root $(SHARED)/camvid --half
RUNS = runs/compact

train-compact: setup  ## the recipe of the shipped weights: needs ../shared and over five hours, resumable
	$(TRAIN) comma10k --root $(SHARED)/comma10k --out $(RUNS)/1 $(EARLY) --class-weight-power 0.3 --lr 0.002 \
		--epochs 4 --stop-after 3 --steps-per-epoch 250 --seed 0
	$(TRAIN) $(CAMVID) --out $(RUNS)/2 --init $(RUNS)/1/last.safetensors $(EARLY) --class-weight-power 0.25 --lr 0.0015 \
		--epochs 8 --stop-after 3 --steps-per-epoch 290 --seed 0
	$(TRAIN) $(CAMVID) --out $(RUNS)/3 --init $(RUNS)/2/last.safetensors $(EARLY) --class-weight-power 0.25 --lr 0.0012 \
		--warmup 0.03 --ema 0.995 --epochs 3 --steps-per-epoch 260 --seed 1
	$(TRAIN) $(CAMVID) --out $(RUNS)/4 --init $(RUNS)/3/last.safetensors $(EARLY) --class-weight-power 0.25 --lr 0.001 \
		--warmup 0.03 --ema 0.995 --epochs 2 --steps-per-epoch 220 --seed 2
	$(TRAIN) $(CAMVID) --out $(RUNS)/5 --init $(RUNS)/4/last.safetensors $(COMMON) --class-weight-power 0.15 --lr 0.0015 \
		--also comma10k:0.2:$(SHARED)/comma10k --also streets:0.1 --scale 0.6 1.4 --colour 1.6 --weight-decay 0.03 \
		--ema 0.998 --epochs 12 --steps-per-epoch 300 --seed 10
	$(TRAIN) $(CAMVID) --out $(RUNS)/6 --init $(RUNS)/5/last.safetensors $(COMMON) --class-weight-power 0.1 --lr 0.0015 \
		--also comma10k:0.2:$(SHARED)/comma10k --also streets:0.1 --paste 0.5 --scale 0.5 1.5 --colour 2 \
		--weight-decay 0.05 --ema 0.998 --epochs 12 --steps-per-epoch 300 --seed 30
	$(TRAIN) $(CAMVID) --out $(RUNS)/7 --init $(RUNS)/6/last.safetensors $(COMMON) --class-weight-power 0.1 --lr 0.0012 \
		--also comma10k:0.15:$(SHARED)/comma10k --also streets:0.05 --even --paste 0.5 --scale 0.6 1.5 --colour 1.6 \
		--noisy-share 0.5 --weight-decay 0.05 --ema 0.998 --epochs 8 --steps-per-epoch 300 --seed 40
	@echo "weights: $(RUNS)/7/last.safetensors"

train-denoiser: setup  ## the recipe of the shipped denoiser; needs ../shared, resumable
	mkdir -p runs
	$(BIN)/python -m certiseg.training.denoise --images $(SHARED)/camvid/train/images $(SHARED)/comma10k/images \
		--steps 2500 --threads 1 --out runs/denoiser.safetensors

remedies: setup  ## a network that never saw noise, and what helps it; writes docs/noise.md; needs ../shared
	$(TRAIN) camvid --root $(SHARED)/camvid --out runs/clean --resume --sigma 0 --epochs 2 --steps-per-epoch 350 \
		--batch-size 6 --crop 192 256 --scale 0.5 1.2 --lr 0.002 --weight-decay 0.02 --schedule one-cycle --ema 0.99 \
		--loss-at logits
	$(BIN)/python -m certiseg.training.remedies --weights runs/clean/last.safetensors --root $(SHARED)/camvid \
		--out docs/noise.md

.venv/browser: .venv/ready
	test -x /usr/bin/chromium || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; }
	$(BIN)/python -m pip install --quiet -c constraints.txt playwright
	mkdir -p .venv/axe && npm install --silent --no-save --prefix .venv/axe axe-core@4.14.0
	touch $@

test-browser: .venv/browser  ## the viewer in Debian's chromium, with axe-core
	CERTISEG_BROWSER=1 $(BIN)/python -m pytest tests/browser

screenshots: .venv/browser  ## pictures of the viewer for the documents, on street scenes
	$(BIN)/python -m tests.browser.screenshots

clean:
	rm -rf .venv demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
