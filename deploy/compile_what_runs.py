"""Compile what askgraph imports, and nothing else, into the image: bytecode of all packages takes 105 MB.

The Dockerfile runs it once. The service cannot keep bytecode itself: it may not write into its own packages.
"""

import sys
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages

PACKAGES = ("askgraph", "app", "graphs", "nodes", "domain")

for package in PACKAGES:
    for module in walk_packages(import_module(package).__path__, f"{package}."):
        if not module.name.endswith("__main__"):
            with suppress(Exception):  # it needs an extra, such as `otel`
                import_module(module.name)
print(len(sys.modules), "modules are compiled")
