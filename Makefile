# make test    everything that a change has to pass, with what it needs installed
# make lint    format, clippy, dependencies
# make sqlx    writes the offline query data anew after a change of SQL
# make soak    what takes long: millions of hostile inputs, millions of audited rows, a thousand calls
#              killed twenty times, half an hour of three replicas with faults (SOAK_MINUTES); builds in release
# make sbom    what the program is made of (CycloneDX), as target/toolgate.cdx.json
# make bench   the peers side by side (bench/README.md); builds in release

.DEFAULT_GOAL := test
.PHONY: test setup build unit integration doc lint fmt clippy deny sqlx sqlx-check soak bench clean-clients hadolint sbom secrets

# Queries are checked against .sqlx, whatever database is at hand.
export SQLX_OFFLINE = true

part = @printf '\n== %s\n' "$(1)"
# Tests of the whole program wait more than they compute.
THREADS ?= 4

test: setup build doc unit integration secrets

# Postgres, real clients and real upstreams.
setup:
	$(call part,set-up)
	tests/clients/install.sh

build:
	$(call part,build)
	cargo test --locked --no-run

unit:
	$(call part,unit tests)
	cargo test --locked --lib --bins

integration:
	$(call part,tests of the whole program)
	rm -rf target/tmp/printed
	cargo test --locked --test it -- --test-threads $(THREADS)

# What the servers of all tests printed holds none of their secrets.
secrets:
	$(call part,secrets in what was printed)
	python3 tests/secrets.py target/tmp/printed

doc:
	$(call part,examples in the documentation)
	cargo test --locked --doc

lint: fmt clippy deny hadolint

fmt:
	$(call part,format)
	cargo fmt --all --check

clippy:
	$(call part,clippy)
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --test soak -- -D warnings

deny:
	$(call part,dependencies)
	.ci/cargo-deny --locked check -D unmatched-skip bans licenses sources

hadolint:
	$(call part,Dockerfiles)
	.ci/hadolint Dockerfile deploy/compose/idp/Dockerfile

sbom:
	.ci/cargo-cyclonedx --quiet --format json --spec-version 1.5 --no-build-deps --override-filename toolgate.cdx
	mv toolgate.cdx.json target/toolgate.cdx.json
	@echo "$$(grep -c '"purl"' target/toolgate.cdx.json) parts in target/toolgate.cdx.json"

sqlx:
	tests/offline-queries.sh write

sqlx-check:
	$(call part,offline query data)
	tests/offline-queries.sh check

# The database syncs, as it would in service: what a durable record costs is the point.
soak:
	$(call part,soak)
	POSTGRES_OPTIONS='-c shared_buffers=1GB -c max_wal_size=8GB' tests/with-postgres.sh \
		cargo test --locked --release --test soak -- --nocapture --test-threads 1
	cargo test --locked --test it -- --ignored --nocapture audit_ streams_ soak_replicas

bench:
	bench/run.sh

clean-clients:
	rm -rf target/clients
