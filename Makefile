# Everything a newcomer needs: `cargo run --release -- demo` and `make test`. `make help` lists the rest.
#
# All steps use one profile (`ci` in Cargo.toml) and one target folder, so dependencies are compiled once.

CARGO ?= cargo
PYTHON ?= python3
PROFILE := --profile ci
PYTHON_DIR := target/python
VENV := $(PYTHON_DIR)/venv
NOTES := target/tmp
# What the light build has: compiles in a minute or two, whatever the rest of the workspace needs.
LIGHT := -p a2lp -p a2lp-data -p a2lp-report -p a2lp-shards -p a2lp-cli

.PHONY: help test quick lint format doc unit light features portable browser python python-env python-lint python-tests \
	wheel sdist package publish deny workflows reliability demo-picture review-picture build-times clean

help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: lint browser python-env unit light python ## Everything: lints, documentation, all tests, the Python package
	@cat $(NOTES)/reliability-quick
	@ran=$$(ls $(NOTES)/data-tests 2>/dev/null | grep -c '^ran-'); \
	skipped=$$(ls $(NOTES)/data-tests 2>/dev/null | grep -c '^skipped-'); \
	echo "data-backed tests: $$ran ran, $$skipped skipped for want of data (A2LP_TEST_DATA or ../shared)"
	@if [ -e $(NOTES)/browser-tests/skipped ]; then \
		echo "BROWSER TESTS SKIPPED: no Chromium on this machine; install one, or name it in A2LP_CHROMIUM"; \
	else echo "browser tests: ran"; fi
	@if [ -e $(PYTHON_DIR)/summary ]; then cat $(PYTHON_DIR)/summary; else \
		echo "PYTHON TESTS SKIPPED: no $(PYTHON) with the module venv on this machine"; fi
	@if $(VENV)/bin/python -c 'import ray, pyarrow, moto' 2>/dev/null; then echo "cluster tests: ran, on three nodes of Ray"; else \
		echo "CLUSTER TESTS SKIPPED: Ray, pyarrow or moto cannot be installed on this machine"; fi

quick: format ## The inner loop: format, clippy and unit tests of the light build; under a minute when warm
	$(CARGO) clippy $(PROFILE) $(LIGHT) --quiet -- -D warnings
	$(CARGO) test $(PROFILE) $(LIGHT) --lib --quiet

lint: format doc ## Formatting, clippy with warnings denied, documentation without warnings
	$(CARGO) clippy $(PROFILE) --workspace --all-targets --quiet -- -D warnings

format:
	$(CARGO) fmt --all --check

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(PROFILE) --workspace --no-deps --quiet

unit: ## All tests in Rust
	@rm -rf $(NOTES)/data-tests $(NOTES)/browser-tests
	$(CARGO) test $(PROFILE) --workspace --quiet
	@# Built with the tests; `cargo run` would build them anew for want of the workspace's features.
	for example in label observe consensus graph_and_predict train; do target/ci/examples/$$example >/dev/null || exit 1; done

light: ## The build without features: what is absent says how to get it
	$(CARGO) clippy $(PROFILE) -p a2lp-cli --quiet -- -D warnings
	$(CARGO) test $(PROFILE) -p a2lp-cli --lib --test lean --quiet

features: ## Every feature compiles alone
	for feature in networks tables figures full; do \
		$(CARGO) check $(PROFILE) -p a2lp-cli --features $$feature --quiet || exit 1; done

portable: ## All tests of the method without the CPU's vector instructions
	A2LP_CPU=portable $(CARGO) test $(PROFILE) -p a2lp --quiet

# The tests of the report look for a Chromium.
browser:
	@found="$$A2LP_CHROMIUM"; for name in chromium chromium-browser google-chrome google-chrome-stable; do \
		found="$$found$$(command -v $$name)"; done; \
	if [ -z "$$found" ] && [ -z "$$A2LP_NO_INSTALL" ] && [ -e /etc/debian_version ] && [ "$$(id -u)" = 0 ]; then \
		echo "No Chromium is on this machine. The tests of the report drive one, so apt-get"; \
		echo "installs the package chromium now. To refuse, run: A2LP_NO_INSTALL=1 make test"; \
		(apt-get update && apt-get install -y --no-install-recommends chromium) >/dev/null 2>&1 \
			|| echo "That did not work; the browser tests will be skipped."; \
	fi

python: python-env ## Lints and tests of the Python package, as a wheel in virtual environments under target/
	@rm -f $(PYTHON_DIR)/summary
	@if [ -e $(VENV)/bin/pip ]; then $(MAKE) --no-print-directory python-lint python-tests; fi

# What the lints and tests of the package need, and the weights for a test of `extract`.
python-env:
	@mkdir -p $(PYTHON_DIR)
	@if $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null; then \
		[ -e $(VENV)/bin/pip ] || $(PYTHON) -m venv $(VENV); \
		$(VENV)/bin/pip install --quiet --disable-pip-version-check -r python/requirements-test.txt || exit 1; \
		$(VENV)/bin/pip install --quiet --disable-pip-version-check -r python/requirements-ray.txt \
			|| echo "Ray cannot be installed here; the tests of runs on a cluster will be skipped."; \
	fi

python-lint:
	cd python && ../$(VENV)/bin/ruff check . && ../$(VENV)/bin/mypy

python-tests: WHEEL_PROFILE := ci
python-tests: wheel
	@rm -rf $(PYTHON_DIR)/clean
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(PYTHON_DIR)/wheels/*.whl
	cd python && ../$(VENV)/bin/pytest -p no:cacheprovider
	$(PYTHON) -m venv $(PYTHON_DIR)/clean
	$(PYTHON_DIR)/clean/bin/pip install --quiet --disable-pip-version-check $(PYTHON_DIR)/wheels/*.whl
	@$(PYTHON_DIR)/clean/bin/a2lp --version >/dev/null
	@cd $(PYTHON_DIR) && clean/bin/python -X importtime -c 'import a2lp' 2>&1 | awk -F'|' \
		'$$3 ~ /^ a2lp$$/ { a = $$2 } $$3 ~ /^ +numpy$$/ { n = $$2 } \
		END { printf "python tests: ran; import a2lp takes %.2f s, of which NumPy %.2f s", a / 1e6, n / 1e6 }' >summary
	@size=$$(wc -c <$$(echo $(PYTHON_DIR)/wheels/*.whl)); \
	echo "; the wheel has $$((size / 1000000)).$$((size % 1000000 / 100000)) MB" >>$(PYTHON_DIR)/summary

WHEEL_PROFILE := release
wheel: python-env ## The Python wheel, in target/python/wheels
	@rm -rf $(PYTHON_DIR)/wheels
	cd python && ../$(VENV)/bin/maturin build --profile $(WHEEL_PROFILE) --quiet --compression-level 9 --out ../$(PYTHON_DIR)/wheels

sdist: python-env ## The source distribution of the Python package, in target/python/sdist
	@rm -rf $(PYTHON_DIR)/sdist
	cd python && ../$(VENV)/bin/maturin sdist --out ../$(PYTHON_DIR)/sdist

package: ## The crates, as they would be published, in target/package
	$(CARGO) package --workspace --exclude a2lp-python --exclude a2lp-reliability --allow-dirty --no-verify --quiet

publish: ## Sends the crates to the registry, in order (needs its token)
	$(CARGO) publish --workspace --exclude a2lp-python --exclude a2lp-reliability

deny: ## Licences, advisories and duplicates of dependencies (needs cargo-deny)
	$(CARGO) deny check

workflows: python-env ## The files under .github are sound, and run nothing that this file does not have
	$(VENV)/bin/python .github/check.py $(VENV)/bin/actionlint

# Results: docs/reliability.md. `reliability/run r3` tries one promise, and the tests a few cases of each.
reliability: ## What must not break, tried in full; about three quarters of an hour
	@reliability/run

build-times: ## Measures what docs/building.md says of this machine; about half an hour
	benches/build.sh

demo-picture: ## The picture in the README, drawn by the demo
	$(CARGO) run --release -- demo --out target/demo --force
	cp target/demo/demo.svg docs/demo.svg

review-picture: ## The picture of the review in the README, from the test of its page
	$(CARGO) test $(PROFILE) -p a2lp-cli --features full --test review_page --quiet
	cp $(NOTES)/screenshots/review-readme.png docs/review.png

clean: ## Removes everything that was built
	$(CARGO) clean
