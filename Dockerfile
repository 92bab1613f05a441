# syntax=docker/dockerfile:1
# Two images: `ringfence` for APIs and engines, and `worker` with the programs that reach devices.

FROM rust:1.95-bookworm AS build
WORKDIR /src
# Makes builds reproducible: equal sources give equal programs, on any machine and at any time.
ARG SOURCE_DATE_EPOCH=0
ENV RUSTFLAGS="--remap-path-prefix=/src=. --remap-path-prefix=/usr/local/cargo=cargo"
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --profile dist --locked --package ringfence-cli --bin ringfence \
    && install -D target/dist/ringfence /out/ringfence

FROM debian:bookworm-slim AS ringfence
# The health check uses curl.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates curl \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --home-dir /var/lib/ringfence --create-home ringfence
COPY --from=build /out/ringfence /usr/bin/ringfence
COPY LICENSE /usr/share/doc/ringfence/LICENSE
# Without huge pages, which some kernels give to every process: an idle process would keep 20 MB more.
ENV MIMALLOC_ALLOW_THP=0
USER 10001:10001
WORKDIR /var/lib/ringfence
ENTRYPOINT ["/usr/bin/ringfence"]
# HEALTH_URL is for other roles and for TLS: http://127.0.0.1:9790/metrics of an engine or a worker with `metrics.listen`.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD curl --fail --silent --show-error --output /dev/null --max-time 4 ${HEALTH_CA:+--cacert "$HEALTH_CA"} \
    "${HEALTH_URL:-http://127.0.0.1:8790/healthcheck?probe=live}"

FROM ringfence AS worker
USER 0:0
RUN apt-get update \
    && apt-get install -y --no-install-recommends fence-agents ipmitool \
    && rm -rf /var/lib/apt/lists/*
USER 10001:10001
CMD ["worker"]

# The target that is built if none is named.
FROM ringfence
