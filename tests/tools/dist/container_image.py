"""The recipe of a container image: slim, without a root user, everything in it pinned by hash. And one for a team."""

from tests.tools.dist import facts

BASE = "python:3.13-slim"


def dockerfile() -> str:
    return f"""\
# The server as a container image. From the root of the repository:
#   docker build -f config/dist/Dockerfile -t {facts.NAME}:{facts.VERSION} .
#   docker run --rm -i -e {facts.KEY} {facts.NAME}:{facts.VERSION}
FROM {BASE} AS build
WORKDIR /source
# team.txt: with what serving over HTTP and a shared store need.
ARG LOCK=runtime.txt
COPY config/lock/ config/lock/
RUN python -m venv /opt/server && python -m venv /opt/build \\
    && /opt/server/bin/python -m pip install --no-cache-dir --require-hashes -r "config/lock/$LOCK" \\
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


def compose() -> str:
    """Two replicas behind a proxy, which count what people use in one database."""
    return f"""\
# For a team: two replicas of the server, a database for their limits, and a proxy with a certificate.
# From the root of the repository, with .env beside this file (see docs/http.md):
#   docker compose -f config/dist/compose.yaml up --build
x-answers: &answers
  build:
    context: ../..
    dockerfile: config/dist/Dockerfile
    args: {{LOCK: team.txt}}
  image: {facts.NAME}-team:{facts.VERSION}
  command: ["--http", "0.0.0.0:8080", "--config", "/etc/answers.yaml"]
  configs: [{{source: answers, target: /etc/answers.yaml}}]
  environment:
    {facts.KEY}: ${{{facts.KEY}:?}}
    TEAM_TOKENS: ${{TEAM_TOKENS:?}}
    AGENTS_STORE: postgresql://answers:${{POSTGRES_PASSWORD:?}}@database/answers
  depends_on: {{database: {{condition: service_healthy}}}}
  # Calls in flight get 25 seconds.
  stop_grace_period: 30s
  restart: unless-stopped
  read_only: true
  tmpfs: [/tmp]
  cap_drop: [ALL]
  security_opt: ["no-new-privileges:true"]

services:
  answers-1: *answers
  answers-2: *answers
  database:
    image: postgres:18-alpine
    environment:
      POSTGRES_USER: answers
      POSTGRES_PASSWORD: ${{POSTGRES_PASSWORD:?}}
    volumes: ["database:/var/lib/postgresql"]
    healthcheck:
      test: ["CMD-SHELL", "pg_isready -U answers"]
      interval: 2s
      retries: 30
    restart: unless-stopped
  proxy:
    image: caddy:2-alpine
    environment: {{TEAM_HOST: "${{TEAM_HOST:?}}"}}
    ports: ["80:80", "443:443"]
    volumes: ["./Caddyfile:/etc/caddy/Caddyfile:ro", "certificates:/data"]
    depends_on: [answers-1, answers-2]
    restart: unless-stopped

configs:
  answers:
    content: |
      http:
        public_url: https://${{TEAM_HOST:?}}/mcp
        tokens_env: TEAM_TOKENS
        limits: {{calls_per_minute: 20, calls_at_once: 4, tokens_per_day: 500000}}

volumes:
  database:
  certificates:
"""


def caddyfile() -> str:
    return """\
# A caller always reaches the same replica: there are the sessions of older clients. Event streams are passed on at once
# without `flush_interval`; with -1, a client that closes its response would no longer cancel the call.
{$TEAM_HOST} {
\treverse_proxy answers-1:8080 answers-2:8080 {
\t\tlb_policy header Authorization
\t\t# A replica that is gone costs one request, which is not repeated: it may have run. Then it is left out.
\t\tfail_duration 10s
\t\thealth_uri /healthz
\t\thealth_interval 5s
\t}
}
"""
