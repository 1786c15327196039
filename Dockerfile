# The sample job in a small image. For a job of your own: the same steps, with your package's name.
#
#   docker build -t memory-leak .
#   docker run --rm --read-only --tmpfs /tmp -e MEMRAY_PROFILER=true -p 7000:7000 memory-leak

FROM rust:1.95-slim-bookworm AS build
WORKDIR /build
COPY . .
# The release profile says `debug = 1`: without it a report has no files and lines. Do not strip.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --locked --release --package memory-leak \
    && cp target/release/memory-leak /usr/local/bin/memory-leak \
    && mkdir /profiles

# glibc, and nothing but it: allocations are seen through the dynamic linker's tables.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /usr/local/bin/memory-leak /usr/local/bin/memory-leak
# Reports and the event log; the root file system may be read-only, this must be writable: --tmpfs /tmp, or an emptyDir or
# a volume at /profiles, which outlives the container, with MEMRAY_PROFILER_DIR=/profiles. An engine gives a new volume
# the owner of the folder that it takes the place of.
COPY --from=build --chown=65532:65532 /profiles /profiles
ENV TMPDIR=/tmp
USER 65532:65532
EXPOSE 7000
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s \
    CMD ["/usr/local/bin/memory-leak", "--health-check"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/memory-leak"]
