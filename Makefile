# Everything a newcomer needs: `cargo run --release -- demo` and `make test`.
#
# All steps use the release profile and one target folder, so dependencies are compiled once.

CARGO ?= cargo
DATA_NOTES := target/tmp/data-tests
BROWSER_NOTES := target/tmp/browser-tests
PYTHON ?= python3
PYTHON_DIR := target/python

.PHONY: test lint unit reliability browser python python-env demo-picture clean

test: lint browser python-env unit python
	@cat target/tmp/reliability-quick
	@ran=$$(ls $(DATA_NOTES) 2>/dev/null | grep -c '^ran-'); \
	skipped=$$(ls $(DATA_NOTES) 2>/dev/null | grep -c '^skipped-'); \
	echo "data-backed tests: $$ran ran, $$skipped skipped for want of data (A2LP_TEST_DATA or ../shared)"
	@if [ -e $(BROWSER_NOTES)/skipped ]; then \
		echo "BROWSER TESTS SKIPPED: no Chromium on this machine; install one, or name it in A2LP_CHROMIUM"; \
	else echo "browser tests: ran"; fi
	@if [ -e $(PYTHON_DIR)/summary ]; then cat $(PYTHON_DIR)/summary; else \
		echo "PYTHON TESTS SKIPPED: no $(PYTHON) with the module venv on this machine"; fi

# The tests of the report look for a Chromium. One is installed only on Debian, as root, and when there is none.
browser:
	@found="$$A2LP_CHROMIUM"; for name in chromium chromium-browser google-chrome google-chrome-stable; do \
		found="$$found$$(command -v $$name)"; done; \
	if [ -z "$$found" ] && [ -e /etc/debian_version ] && [ "$$(id -u)" = 0 ]; then \
		echo "installing Chromium for the tests of the report"; \
		(apt-get update && apt-get install -y --no-install-recommends chromium) >/dev/null 2>&1 \
			|| echo "that did not work; those tests will be skipped"; \
	fi

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --workspace --no-deps --quiet

unit:
	@rm -rf $(DATA_NOTES) $(BROWSER_NOTES)
	$(CARGO) test --release --workspace --quiet
	@# Built with the tests; `cargo run` would build them anew for want of the workspace's features.
	target/release/examples/label >/dev/null
	target/release/examples/observe >/dev/null

# What must not break, in about three quarters of an hour; docs/reliability.md has what came of it. `reliability/run r3` tries one promise, and
# the tests a few cases of each.
reliability:
	@reliability/run

# The Python package, as a wheel, in virtual environments of our own: one with what the tests need, one with nothing.
python: python-env
	@rm -f $(PYTHON_DIR)/summary
	@if [ -e $(PYTHON_DIR)/venv/bin/pip ]; then $(MAKE) --no-print-directory python-tests; fi

# What the tests of the package need, and the weights for a test of `extract`.
python-env:
	@mkdir -p $(PYTHON_DIR)
	@if $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null; then \
		[ -e $(PYTHON_DIR)/venv/bin/pip ] || $(PYTHON) -m venv $(PYTHON_DIR)/venv; \
		$(PYTHON_DIR)/venv/bin/pip install --quiet --disable-pip-version-check -r python/requirements-test.txt; \
	fi

.PHONY: python-tests
python-tests:
	@rm -rf $(PYTHON_DIR)/wheels $(PYTHON_DIR)/clean
	cd python && ../$(PYTHON_DIR)/venv/bin/maturin build --release --quiet --compression-level 9 --out ../$(PYTHON_DIR)/wheels
	$(PYTHON_DIR)/venv/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(PYTHON_DIR)/wheels/*.whl
	cd python && ../$(PYTHON_DIR)/venv/bin/pytest -p no:cacheprovider
	$(PYTHON) -m venv $(PYTHON_DIR)/clean
	$(PYTHON_DIR)/clean/bin/pip install --quiet --disable-pip-version-check $(PYTHON_DIR)/wheels/*.whl
	@$(PYTHON_DIR)/clean/bin/a2lp --version >/dev/null
	@cd $(PYTHON_DIR) && clean/bin/python -X importtime -c 'import a2lp' 2>&1 | awk -F'|' \
		'$$3 ~ /^ a2lp$$/ { a = $$2 } $$3 ~ /^ +numpy$$/ { n = $$2 } \
		END { printf "python tests: ran; import a2lp takes %.2f s, of which NumPy %.2f s", a / 1e6, n / 1e6 }' >summary
	@size=$$(wc -c <$$(echo $(PYTHON_DIR)/wheels/*.whl)); \
	echo "; the wheel has $$((size / 1000000)).$$((size % 1000000 / 100000)) MB" >>$(PYTHON_DIR)/summary

# The picture in the README, drawn by the demo.
demo-picture:
	$(CARGO) run --release -- demo --out target/demo --force
	cp target/demo/demo.svg docs/demo.svg

clean:
	$(CARGO) clean
