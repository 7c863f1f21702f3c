"""The recipe of a container image: slim, without a root user, everything in it pinned by hash."""

from tests.tools.dist import facts

BASE = "python:3.13-slim"


def dockerfile() -> str:
    return f"""\
# The server as a container image. From the root of the repository:
#   docker build -f config/dist/Dockerfile -t {facts.NAME}:{facts.VERSION} .
#   docker run --rm -i -e {facts.KEY} {facts.NAME}:{facts.VERSION}
FROM {BASE} AS build
WORKDIR /source
COPY config/lock/runtime.txt config/lock/build.txt config/lock/
RUN python -m venv /opt/server && python -m venv /opt/build \\
    && /opt/server/bin/python -m pip install --no-cache-dir --require-hashes -r config/lock/runtime.txt \\
    && /opt/build/bin/python -m pip install --no-cache-dir --require-hashes -r config/lock/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY config/ config/
COPY src/ src/
RUN /opt/build/bin/python -m hatchling build --target wheel --directory /wheel \\
    && /opt/server/bin/python -m pip install --no-cache-dir --no-deps /wheel/*.whl

FROM {BASE}
LABEL org.opencontainers.image.title="{facts.NAME}" \\
      org.opencontainers.image.description="{facts.DESCRIPTION}" \\
      org.opencontainers.image.version="{facts.VERSION}" \\
      org.opencontainers.image.licenses="{facts.LICENSE}" \\
      org.opencontainers.image.source="{facts.REPOSITORY}" \\
      io.modelcontextprotocol.server.name="{facts.REGISTRY_NAME}"
COPY --from=build /opt/server /opt/server
RUN useradd --create-home --uid 10001 server
USER 10001
WORKDIR /home/server
ENV PATH=/opt/server/bin:$PATH PYTHONUNBUFFERED=1
ENTRYPOINT ["{facts.NAME}"]
CMD ["{facts.SERVE}"]
"""


def dockerignore() -> str:
    """Only what the recipe copies gets into the build: no key in a forgotten file, no history."""
    return """\
*
!config
!src
!pyproject.toml
!README.md
!LICENSE
**/__pycache__
"""
