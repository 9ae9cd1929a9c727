"""Deletes threads, runs and ingestions that the retention policy no longer keeps."""

from dataclasses import replace
from datetime import UTC, datetime

from app.settings import Settings
from domain.errors import InputError
from domain.history.retention import Policy, Pruned, parse_age
from domain.ports.retention import Retention


async def prune(
    retention: Retention,
    policy: Policy,
    *,
    workspace_id: str | None = None,
    dry_run: bool = False,
) -> Pruned:
    """Delete the threads that `policy` no longer keeps, of one workspace or of all (None); then steps and tapes of the
    remaining threads; then ingestions that ended as long ago as those threads; then revisions of documents that no run
    cites; then, for all workspaces, data without a thread.

    Works in batches, so that it may be interrupted at any time and called again. Returns the numbers of deleted rows.

    Raises `DatabaseUnavailable`.
    """
    cuts = policy.cut(datetime.now(UTC), workspace_id)
    stages = [retention.delete_steps, retention.delete_ingestions, retention.delete_revisions]
    if workspace_id is None:
        stages.append(retention.delete_orphans)
    pruned = Pruned()
    after: str | None = ""
    while after is not None:
        batch, after = await retention.delete_threads(cuts, after=after, dry_run=dry_run)
        pruned += batch
    for stage in stages:
        pruned += await stage(cuts, dry_run=dry_run)
    return pruned


async def read_policy(settings: Settings, retention: Retention) -> Policy:
    """Return the deployment's retention policy. Raises `DatabaseUnavailable`."""
    return apply_settings(settings, await retention.read_policy())


def apply_settings(settings: Settings, chosen: Policy | None) -> Policy:
    """Return the policy that was chosen, with what the environment says in its place, or else with the defaults."""
    said = replace(settings.retention, steps_for=settings.keep_steps)
    if chosen is None:
        return said
    fixed = settings.model_fields_set
    steps_for = (said if "keep_steps" in fixed else chosen).steps_for
    return replace(said if "retention" in fixed else chosen, steps_for=steps_for)


def override_policy(policy: Policy, older_than: str | None, workspace_id: str | None) -> Policy:
    """Return the policy with the options of a command. Without `workspace_id`, a workspace with a span of its own keeps
    the longer one.

    Raises `InputError` where `older_than` is no span.
    """
    if older_than is None:
        return policy
    span = parse_age(older_than)
    if span is None:
        raise InputError(f"{older_than!r} is not a span of time. Give one in hours, days or weeks: 12h, 30d, 8w.")
    own = {
        name: None if kept is None else max(kept, span)
        for name, kept in policy.by_workspace.items()
        if name != workspace_id
    }
    return replace(policy, older_than=span, by_workspace=own)
