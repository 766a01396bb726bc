// The interface between the two halves of the failing disk. disk.c overrides the calls; disktold.c selects failures and writes the journal.
#pragma once
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// Calls that change files, and the two that only read. Journal and control block identify them by these numbers.
enum Call { OPEN, CREATE, WRITE, SYNC, TRUNCATE, ALLOCATE, RENAME, UNLINK, LINK, MKDIR, RMDIR, READ };

/// The effect on the selected call.
enum Fault { NONE, KILL, HALF, EIO_FAULT, ENOSPC_FAULT, SHORT };

/// Shared with the test, which writes every field except `count`, `faults` and `met` (shim.py, `Control`).
struct Control {
    /// Calls counted since the block was last armed.
    uint64_t count;
    /// The number of the call that fails; 0: none.
    uint64_t at;
    /// The number of calls that have failed.
    uint64_t faults;
    uint32_t isArmed, fault, isSticky;
    /// The counted calls: bit `1 << Call`.
    uint32_t calls;
    /// The first failed call: its name and its path.
    char met[256];
};

/// An open file or directory below the root.
struct File {
    uint64_t device, inode;
    bool isOpen;
    char path[232];
};

/// The fate of one call. Between `begin` and `end` no other overridden call runs.
struct Fate {
    /// errno, or 0: the call is executed.
    int error;
    bool isHalf, dies;
};

/// The path relative to the root, or NULL if it is outside.
const char *ours(int directory, const char *path, char *buffer);
/// The file of a descriptor, or NULL if it is outside the root.
struct File *fileOf(int descriptor);
void opened(int descriptor, const char *path);
void closed(int descriptor);

struct Fate begin(enum Call call, const char *path);
/// Records an executed change. `target` for a rename or a link, `data` for a write.
void note(enum Call call, bool succeeded, uint64_t inode, const char *path, const char *target, uint64_t offset, const void *data,
          uint64_t length);
/// Releases the lock; kills the process if the fate requires it. Sets errno and returns -1 if the call failed, else `result`.
ssize_t end(struct Fate fate, ssize_t result);
