// Selects the call that fails, and writes the journal of the others (disk.h).
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES 8192

static struct Control *control;
static const char *root;
static size_t rootLength;
static int journal = -1;
static struct File files[FILES];
// The lock gives each call a unique number, and keeps the journal in the order of execution.
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/// Calls that can fail because the disk is full.
static const uint32_t growing = 1 << CREATE | 1 << WRITE | 1 << SYNC | 1 << TRUNCATE | 1 << ALLOCATE | 1 << RENAME | 1 << LINK | 1 << MKDIR;
static const char *const names[] = {"open",   "create", "write", "sync",  "truncate", "allocate",
                                    "rename", "unlink", "link",  "mkdir", "rmdir",    "read"};

__attribute__((constructor)) static void start(void) {
    root = getenv("DISK_ROOT");
    const char *block = getenv("DISK_CONTROL"), *log = getenv("DISK_JOURNAL");
    if (!root || !block) return;
    rootLength = strlen(root);
    int descriptor = (int)syscall(SYS_openat, AT_FDCWD, block, O_RDWR | O_CLOEXEC);
    void *shared = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (shared == MAP_FAILED) abort();
    syscall(SYS_close, descriptor);
    control = shared;
    // A high descriptor number, out of the range of code that counts or closes descriptors.
    if (log) {
        int low = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        journal = (int)syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, 900);
        syscall(SYS_close, low);
        if (journal < 0) abort();
    }
}

const char *ours(int directory, const char *path, char *buffer) {
    if (!control || !path) return NULL;
    if (path[0] != '/' && directory != AT_FDCWD) {
        struct File *file = fileOf(directory);
        if (!file || snprintf(buffer, PATH_MAX, "%s/%s", file->path, path) >= PATH_MAX) return NULL;
        path = buffer;
    }
    if (strncmp(path, root, rootLength) != 0 || path[rootLength] != '/') return NULL;
    if (path != buffer && snprintf(buffer, PATH_MAX, "%s", path) >= PATH_MAX) return NULL;
    // A directory is also opened as "directory/.".
    for (size_t length = strlen(buffer); length > 2 && strcmp(buffer + length - 2, "/.") == 0; length -= 2) buffer[length - 2] = 0;
    return strlen(buffer + rootLength) < sizeof files[0].path ? buffer + rootLength + 1 : NULL;
}

struct File *fileOf(int descriptor) {
    if (!control || descriptor < 0 || descriptor >= FILES || !files[descriptor].isOpen) return NULL;
    // The file may have been closed by an unobserved call (fclose), and the number reused for a socket.
    struct stat status;
    if (fstat(descriptor, &status) == 0 && status.st_ino == files[descriptor].inode && status.st_dev == files[descriptor].device)
        return &files[descriptor];
    files[descriptor].isOpen = false;
    return NULL;
}

void opened(int descriptor, const char *path) {
    struct stat status;
    if (descriptor < 0 || descriptor >= FILES || fstat(descriptor, &status) != 0) return;
    struct File *file = &files[descriptor];
    *file = (struct File){.device = status.st_dev, .inode = status.st_ino};
    strncpy(file->path, path, sizeof file->path - 1);
    file->isOpen = true;
}

void closed(int descriptor) {
    if (control && descriptor >= 0 && descriptor < FILES) files[descriptor].isOpen = false;
}

struct Fate begin(enum Call call, const char *path) {
    pthread_mutex_lock(&turn);
    struct Fate fate = {0};
    if (!control->isArmed || !(control->calls & 1u << call)) return fate;
    uint64_t number = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
    if (!control->at || number < control->at || (control->faults && !control->isSticky)) return fate;
    // If the fault does not apply to this call, it applies to the next one.
    switch (control->fault) {
    case KILL:
    case HALF: fate.dies = true; break;
    case EIO_FAULT: fate.error = EIO; break;
    case ENOSPC_FAULT: fate.error = growing & 1u << call ? ENOSPC : 0; break;
    case SHORT: fate.isHalf = call == WRITE; break;
    }
    if (!fate.dies && !fate.error && !fate.isHalf) return fate;
    if (control->faults++ == 0) snprintf(control->met, sizeof control->met, "%s %s", names[call], path);
    if (control->fault == KILL) end(fate, 0);
    fate.isHalf = fate.isHalf || fate.dies;
    return fate;
}

ssize_t end(struct Fate fate, ssize_t result) {
    int error = fate.error ? fate.error : errno;
    if (fate.dies) {
        syscall(SYS_kill, getpid(), SIGKILL);
        for (;;) pause();
    }
    pthread_mutex_unlock(&turn);
    errno = error;
    return fate.error ? -1 : result;
}

/// A record: this struct, then the path, the target and the data. Read by shim.py.
struct Record {
    uint32_t call, succeeded;
    uint64_t number, inode, offset;
    uint32_t pathLength, targetLength;
    uint64_t dataLength, length;
};

void note(enum Call call, bool succeeded, uint64_t inode, const char *path, const char *target, uint64_t offset, const void *data,
          uint64_t length) {
    if (journal < 0) return;
    struct Record record = {.call = call, .succeeded = succeeded, .number = control->count, .inode = inode, .offset = offset,
                            .pathLength = (uint32_t)strlen(path), .targetLength = target ? (uint32_t)strlen(target) : 0,
                            .dataLength = data ? length : 0, .length = length};
    struct iovec parts[] = {{&record, sizeof record}, {(void *)path, record.pathLength}, {(void *)target, record.targetLength},
                            {(void *)data, record.dataLength}};
    size_t whole = sizeof record + record.pathLength + record.targetLength + record.dataLength;
    if (syscall(SYS_writev, journal, parts, 4) != (ssize_t)whole) abort();
}
