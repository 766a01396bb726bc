"""What a description cannot say: cursors, which only the server makes, answers that do not end, and a purge without a selector."""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.method.upper() == "DELETE" and case.path == "/v1/cache" and not set(case.query or {}) - {"dryRun"}:
        case.query = {**(case.query or {}), "prefix": "https://nothing.example/"}
    if not case.query:
        return
    if case.query.get("follow") in (True, "true", "1", ""):
        del case.query["follow"]
    cursor = case.query.get("cursor")
    if isinstance(cursor, str) and cursor:
        del case.query["cursor"]
