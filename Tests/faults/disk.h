// What the two halves of the failing disk know of each other. disk.c has the calls; disktold.c what fails, and what is written down.
#pragma once
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// Calls that change files, and the two that only look. The journal and the control block speak of them by these numbers.
enum Call { OPEN, CREATE, WRITE, SYNC, TRUNCATE, ALLOCATE, RENAME, UNLINK, LINK, MKDIR, RMDIR, READ };

/// What becomes of the call whose number has come.
enum Fault { NONE, KILL, HALF, EIO_FAULT, ENOSPC_FAULT, SHORT };

/// Shared with the test, which writes everything but `count`, `faults` and `met` (shim.py, `Control`).
struct Control {
    /// Calls counted since the last time it was armed.
    uint64_t count;
    /// The call that fails; 0: none does.
    uint64_t at;
    /// How many have.
    uint64_t faults;
    uint32_t isArmed, fault, isSticky;
    /// Which calls are counted: bit `1 << Call`.
    uint32_t calls;
    /// The first that failed: its name and its path.
    char met[256];
};

/// An open file or directory below the root.
struct File {
    uint64_t device, inode;
    bool isOpen;
    char path[232];
};

/// What a call is to do. Between `begin` and `end` no other of ours runs.
struct Fate {
    /// errno, or 0: the call takes place.
    int error;
    bool isHalf, dies;
};

/// The path as the root's files are named, or NULL when it is none of them.
const char *ours(int directory, const char *path, char *buffer);
/// The file behind a descriptor, or NULL when it is none of ours.
struct File *fileOf(int descriptor);
void opened(int descriptor, const char *path);
void closed(int descriptor);

struct Fate begin(enum Call call, const char *path);
/// Writes down what took place. `target` for a rename or a link, `data` for a write.
void note(enum Call call, bool succeeded, uint64_t inode, const char *path, const char *target, uint64_t offset, const void *data,
          uint64_t length);
/// Lets the next one in; dies where it is told to. Sets errno and returns -1 when the call failed, else `result`.
ssize_t end(struct Fate fate, ssize_t result);
