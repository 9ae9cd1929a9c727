# Builds in one stage and ships only the result. BASE needs Python 3.11 to 3.13 with venv.
ARG BASE=python:3.13-slim
FROM ${BASE} AS build
WORKDIR /src
RUN python3 -m venv /opt/askgraph
COPY constraints.txt ./
RUN /opt/askgraph/bin/pip install --no-cache-dir --no-compile --require-hashes --no-deps -r constraints.txt
COPY pyproject.toml README.md ./
COPY app app
COPY graphs graphs
COPY nodes nodes
COPY domain domain
COPY askgraph askgraph
COPY deploy/compile_what_runs.py ./
# Besides pip go tests of other packages, and the library of ONNX Runtime for C, which its Python package has in itself.
RUN /opt/askgraph/bin/pip install --no-cache-dir --no-compile --no-deps --no-build-isolation . \
    && /opt/askgraph/bin/pip uninstall -y -q pip setuptools \
    && find /opt/askgraph -type d -name tests -prune -exec rm -r {} + \
    && find /opt/askgraph -name 'libonnxruntime.so*' -delete \
    && find /opt/askgraph -type d -name __pycache__ -prune -exec rm -r {} + \
    && cd / && /opt/askgraph/bin/python3 /src/compile_what_runs.py

FROM ${BASE}
RUN useradd --create-home --uid 10001 askgraph
COPY --from=build /opt/askgraph /opt/askgraph
ENV PATH=/opt/askgraph/bin:$PATH PYTHONUNBUFFERED=1 ASKGRAPH_LOG_FORMAT=json
USER 10001
WORKDIR /home/askgraph
EXPOSE 8000
# Alive, not ready: what depends on other servers is the business of the proxy, which asks /readyz.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
# Without a key it refuses to start: a container listens for other machines. See docs/operations/install.md.
CMD ["askgraph", "serve", "--host", "0.0.0.0"]
