// Turns the triggers of a schema off and on, for rows that come from another node of a fleet with everything its triggers did
// (docs/fleet.md#transactions).
#pragma once
#include <sqlite3.h>

// Variadic, which Swift does not see. Temporary triggers always run. The address is that of a connection.
static inline int rp_run_triggers(void *connection, int on) {
    return sqlite3_db_config((sqlite3 *)connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, on, (int *)0);
}
