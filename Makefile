# Everything a newcomer needs: `cargo run --release -- demo` and `make test`.
#
# All steps use the release profile and one target folder, so dependencies are compiled once.

CARGO ?= cargo
DATA_NOTES := target/tmp/data-tests

.PHONY: test lint unit demo-picture clean

test: lint unit
	@ran=$$(ls $(DATA_NOTES) 2>/dev/null | grep -c '^ran-'); \
	skipped=$$(ls $(DATA_NOTES) 2>/dev/null | grep -c '^skipped-'); \
	echo "data-backed tests: $$ran ran, $$skipped skipped for want of data (A2LP_TEST_DATA or ../shared)"

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --workspace --no-deps --quiet

unit:
	@rm -rf $(DATA_NOTES)
	$(CARGO) test --release --workspace --quiet
	$(CARGO) run --release --quiet -p a2lp --example label >/dev/null
	$(CARGO) run --release --quiet -p a2lp --example observe >/dev/null

# The picture in the README, drawn by the demo.
demo-picture:
	$(CARGO) run --release -- demo --out target/demo --force
	cp target/demo/demo.svg docs/demo.svg

clean:
	$(CARGO) clean
