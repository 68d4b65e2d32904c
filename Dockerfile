# The gateway in a container: docker build -t hookgate .
FROM rust:1.89-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --profile dist --locked --package hookgate --bin hookgate

# slim and not empty: command hooks want a shell
FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner 65532 --group 65532 --mode 0700 /var/lib/hookgate \
    && install --directory /etc/hookgate
COPY --from=build /src/target/dist/hookgate /usr/local/bin/hookgate
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/hookgate/

USER 65532:65532
WORKDIR /etc/hookgate
ENV HOOKGATE_DATA_DIR=/var/lib/hookgate
VOLUME /var/lib/hookgate
EXPOSE 8787
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8787 && printf 'GET /healthz HTTP/1.1\\r\\nhost: localhost\\r\\nconnection: close\\r\\n\\r\\n' >&3 && grep -q '^HTTP/1.1 200' <&3"]
ENTRYPOINT ["hookgate"]
# a container's own loopback reaches nobody
CMD ["gateway", "--listen", "0.0.0.0:8787"]
