// Variadic functions of SQLite, which Swift does not see.
#pragma once
#include <sqlite3.h>

// Turns the triggers of a schema off and on, for rows that come from another node of a fleet with everything its triggers did
// (docs/fleet.md#transactions). Temporary triggers always run. The address is that of a connection.
static inline int rp_run_triggers(void *connection, int on) {
    return sqlite3_db_config((sqlite3 *)connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, on, (int *)0);
}

// Keeps the journal of a statement or savepoint in memory up to this number of bytes. SQLITE_MISUSE after the first use of the library.
static inline int rp_keep_statement_journals(int bytes) {
    return sqlite3_config(SQLITE_CONFIG_STMTJRNL_SPILL, bytes);
}
