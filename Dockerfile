# syntax=docker/dockerfile:1
#
# The image: one program without a shell, run by a user without a name, that writes
# nothing outside of what is mounted.
#
#   docker build -t toolgate .
#   docker build --target sbom --output type=local,dest=. .    # only the list of parts
#
# Bases are named by tag. To pin one for good, put its digest behind the tag:
#   docker buildx imagetools inspect rust:1.95-bookworm --format '{{.Manifest.Digest}}'
#   FROM rust:1.95-bookworm@sha256:… AS dependencies

# Dependencies are compiled before our sources are there: a change of ours leaves this
# layer as it is.
FROM rust:1.95-bookworm AS dependencies
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /source
ENV CARGO_INCREMENTAL=0 SQLX_OFFLINE=true
COPY Cargo.toml Cargo.lock ./
RUN mkdir -p src tests/it tests/soak benches \
    && touch src/lib.rs \
    && echo 'fn main() {}' | tee src/main.rs tests/it/main.rs tests/soak/main.rs benches/sanitize.rs >/dev/null \
    && cargo build --locked --release --bin toolgate

FROM dependencies AS build
COPY .sqlx .sqlx
COPY migrations migrations
COPY templates templates
COPY src src
# Cargo goes by times, and the sources may be older than the stand-ins.
RUN touch src/lib.rs src/main.rs \
    && cargo build --locked --release --bin toolgate \
    && mkdir -p /out/usr/bin /out/usr/share/doc/toolgate \
    && strip --strip-debug -o /out/usr/bin/toolgate target/release/toolgate
COPY LICENSE docs/toolgate.example.yaml /out/usr/share/doc/toolgate/

# What the program is made of (CycloneDX 1.5), from the lock file.
FROM dependencies AS parts
RUN cargo install --locked cargo-cyclonedx@0.5.9
RUN cargo cyclonedx --format json --spec-version 1.5 --no-build-deps --override-filename toolgate.cdx \
    && mkdir -p /out/usr/share/sbom \
    && mv toolgate.cdx.json /out/usr/share/sbom/

FROM scratch AS sbom
COPY --from=parts /out/usr/share/sbom/toolgate.cdx.json /

# glibc, libgcc, certificates and time zones; no shell, no package manager.
FROM gcr.io/distroless/cc-debian12:nonroot AS runtime
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="Toolgate" \
      org.opencontainers.image.description="The remote MCP endpoint that a company puts in front of its tools" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/toolgate/toolgate" \
      org.opencontainers.image.documentation="https://github.com/toolgate/toolgate/blob/main/docs/operations.md" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="gcr.io/distroless/cc-debian12:nonroot"
COPY --from=build /out/ /
COPY --from=parts /out/ /
# By number, so that `runAsNonRoot` can be held against it; any other number does too.
USER 65532:65532
ENV TOOLGATE_CONFIG=/etc/toolgate/toolgate.yaml
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/usr/bin/toolgate", "ready", "--config", "/etc/toolgate/toolgate.yaml"]
ENTRYPOINT ["/usr/bin/toolgate"]
CMD ["serve", "--config", "/etc/toolgate/toolgate.yaml"]
