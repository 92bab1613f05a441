# syntax=docker/dockerfile:1
# Two images: `ringfence` for the API and the engine, `worker` with what reaches devices besides.

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --profile dist --locked --package ringfence-cli --bin ringfence \
    && install -D target/dist/ringfence /out/ringfence

FROM debian:bookworm-slim AS ringfence
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --home-dir /var/lib/ringfence --create-home ringfence
COPY --from=build /out/ringfence /usr/bin/ringfence
COPY LICENSE /usr/share/doc/ringfence/LICENSE
USER 10001:10001
WORKDIR /var/lib/ringfence
ENTRYPOINT ["/usr/bin/ringfence"]

FROM ringfence AS worker
USER root
RUN apt-get update \
    && apt-get install -y --no-install-recommends fence-agents ipmitool \
    && rm -rf /var/lib/apt/lists/*
USER 10001:10001
CMD ["worker"]

# What is built where no target is named.
FROM ringfence
