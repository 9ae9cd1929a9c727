"""The audit log holds each name of what was changed by itself, so that it can be erased; and actions hold none."""

# A name that was cut off cannot be erased any more.
SPLIT = r"""
ALTER TABLE audit_log RENAME target TO targets;
ALTER TABLE audit_log ALTER targets TYPE text[] USING
    CASE WHEN length(targets) < 1000 THEN string_to_array(targets, ', ')
    ELSE trim_array(string_to_array(targets, ', '), 1) END;
UPDATE audit_log SET targets = substring(action FROM '/documents/([^/]+)') || targets,
    action = regexp_replace(action, '(/documents)/[^/]+', '\1/{document_id}')
WHERE action ~ '/documents/[^/]'
"""


def list_statements() -> list[str]:
    return [SPLIT]
