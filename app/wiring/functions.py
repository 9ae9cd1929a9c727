"""Functions of MCP servers, for the modes that name some."""

from collections.abc import Mapping

from app.settings import Settings
from domain.errors import ConfigurationError
from domain.ports.functions import Functions
from domain.profile import Profile


def connect_functions(settings: Settings, modes: Mapping[str, Profile]) -> Functions | None:
    """Return what calls functions; None where the deployment names no server. None is asked yet: a server that is down
    costs the service its functions and nothing else.

    Raises `ConfigurationError` for a file that cannot be used, and for a mode with a function that it does not allow.
    """
    functions = None
    if settings.mcp_servers is not None:
        # Importing the SDK takes half a second, so only a deployment that uses it pays.
        from app.adapters.mcp_functions import McpFunctions, read_servers

        functions = McpFunctions(read_servers(settings.mcp_servers))
    for mode in modes.values():
        for name in mode.functions.names:
            if functions is None or not functions.allows(name):
                server, _, function = name.partition(".")
                raise ConfigurationError(
                    f"The mode {mode.name!r} may call {name!r}, which the deployment does not allow. In the file that "
                    f"ASKGRAPH_MCP_SERVERS names, add {function!r} to functions of [{server}], or change the mode's "
                    "functions.names."
                )
    return functions
