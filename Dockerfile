# An image made by a container builder, from a package of `make deb`: docker build --build-arg PACKAGE=dist/rockpool_….deb -t rockpool .
# `make image` makes a smaller one without a builder.
FROM debian:12-slim
ARG PACKAGE
COPY ${PACKAGE} /tmp/rockpool.deb
RUN groupadd --system --gid 7625 rockpool \
    && useradd --system --uid 7625 --gid 7625 --no-create-home --home-dir /var/lib/rockpool --shell /usr/sbin/nologin rockpool \
    && apt-get update -q && apt-get install -y -q --no-install-recommends /tmp/rockpool.deb \
    && rm -rf /var/lib/apt/lists/* /tmp/rockpool.deb \
    && install -d -m 700 -o rockpool -g rockpool /var/lib/rockpool /var/cache/rockpool /run/rockpool
COPY Config/container.yaml /etc/rockpool/rockpool.yaml
USER 7625:7625
ENV HOME=/var/lib/rockpool LANG=C.UTF-8
EXPOSE 7625 7626
VOLUME ["/var/lib/rockpool", "/var/cache/rockpool"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s CMD ["/usr/bin/rockpool", "status"]
ENTRYPOINT ["/usr/bin/rockpool"]
CMD ["serve", "--config", "/etc/rockpool/rockpool.yaml"]
