from app.cli.support.options import WorkspaceOption, new_cli
from app.cli.support.running import run, run_on_server
from app.cli.support.server_client import ServerClient
from app.support.terminal import count

cli = new_cli()


@cli.command()
def cache(workspace: WorkspaceOption = "default") -> None:
    """Count how many questions found a cached answer, and how many shared another one's run."""

    def show(hits: int, misses: int, shared: int) -> int:
        print(f"{count(hits, 'hit')}, {count(misses, 'miss', 'misses')}, of which {shared} shared a run")
        return 0

    def ask_server(server: ServerClient) -> int:
        counts = server.get("cache", workspace=workspace)
        return show(counts["hits"], counts["misses"], counts["shared"])

    async def count_here() -> int:
        from app.settings import read_settings
        from app.wiring.services import open_services

        async with open_services(read_settings()) as services:
            counts = await services.runs.answers.count(workspace)
            return show(counts.hits, counts.misses, counts.shared)

    run_on_server(ask_server)
    run(count_here())
