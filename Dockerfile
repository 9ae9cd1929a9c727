FROM python:3.13-slim
RUN useradd --create-home --uid 10001 askgraph
WORKDIR /srv/askgraph
COPY constraints.txt pyproject.toml README.md ./
RUN pip install --no-cache-dir --require-hashes --no-deps -r constraints.txt
COPY app app
COPY graphs graphs
COPY nodes nodes
COPY domain domain
RUN pip install --no-cache-dir --no-deps --no-build-isolation .
USER askgraph
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
CMD ["askgraph", "serve", "--host", "0.0.0.0"]
