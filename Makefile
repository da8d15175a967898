# Everything a newcomer needs: `cargo run --release -- demo` and `make test`.
#
# All steps use the release profile and one target folder, so dependencies are compiled once.

CARGO ?= cargo
DATA_NOTES := target/tmp/data-tests
BROWSER_NOTES := target/tmp/browser-tests

.PHONY: test lint unit browser demo-picture clean

test: lint browser unit
	@ran=$$(ls $(DATA_NOTES) 2>/dev/null | grep -c '^ran-'); \
	skipped=$$(ls $(DATA_NOTES) 2>/dev/null | grep -c '^skipped-'); \
	echo "data-backed tests: $$ran ran, $$skipped skipped for want of data (A2LP_TEST_DATA or ../shared)"
	@if [ -e $(BROWSER_NOTES)/skipped ]; then \
		echo "BROWSER TESTS SKIPPED: no Chromium on this machine; install one, or name it in A2LP_CHROMIUM"; \
	else echo "browser tests: ran"; fi

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
	$(CARGO) run --release --quiet -p a2lp --example label >/dev/null
	$(CARGO) run --release --quiet -p a2lp --example observe >/dev/null

# The picture in the README, drawn by the demo.
demo-picture:
	$(CARGO) run --release -- demo --out target/demo --force
	cp target/demo/demo.svg docs/demo.svg

clean:
	$(CARGO) clean
