// A disk that fails on command: overrides the calls by which SQLite and Swift change files; loaded before the libraries (LD_PRELOAD).
//
// Changes of files below DISK_ROOT are counted while the control block (DISK_CONTROL, shared with the test) is armed; the call with the
// chosen number fails as the block specifies. With DISK_JOURNAL every change and every sync is recorded in order: from it the test
// reconstructs the state that a power cut would leave at any of them (power.py). Memory maps are not observed: of SQLite's maps only the
// index of the log is written, and no power cut preserves it.
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int openFile(int directory, const char *path, int flags, mode_t mode) {
    char buffer[PATH_MAX];
    const char *own = ours(directory, path, buffer);
    if (!own) return (int)syscall(SYS_openat, directory, path, flags, mode);
    struct stat status;
    bool isNew = flags & O_CREAT && fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW) != 0;
    bool isCut = flags & O_TRUNC && !isNew;
    struct Fate fate = begin(flags & O_CREAT ? CREATE : isCut ? TRUNCATE : OPEN, own);
    if (fate.error) return (int)end(fate, -1);
    int descriptor = (int)syscall(SYS_openat, directory, path, flags, mode);
    if (descriptor >= 0) {
        opened(descriptor, own);
        struct File *file = fileOf(descriptor);
        note(isNew ? CREATE : OPEN, true, file ? file->inode : 0, own, NULL, 0, NULL, 0);
        if (isCut) note(TRUNCATE, true, file ? file->inode : 0, own, NULL, 0, NULL, 0);
    }
    return (int)end(fate, descriptor);
}

static mode_t modeOf(int flags, va_list rest) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; }

#define OPEN_AS(name, first, directory)             \
    int name(first const char *path, int flags, ...) { \
        va_list rest;                               \
        va_start(rest, flags);                      \
        mode_t mode = modeOf(flags, rest);          \
        va_end(rest);                               \
        return openFile(directory, path, flags, mode); \
    }
#define NOTHING
#define DIRECTORY int directory,
OPEN_AS(open, NOTHING, AT_FDCWD)
OPEN_AS(open64, NOTHING, AT_FDCWD)
OPEN_AS(openat, DIRECTORY, directory)
OPEN_AS(openat64, DIRECTORY, directory)

int creat(const char *path, mode_t mode) { return openFile(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode); }

int close(int descriptor) {
    closed(descriptor);
    return (int)syscall(SYS_close, descriptor);
}

/// - Parameter offset: -1 for the descriptor's current position.
static ssize_t change(int descriptor, const void *bytes, size_t count, off_t offset) {
    struct File *file = fileOf(descriptor);
    struct Fate fate = {0};
    if (file) fate = begin(WRITE, file->path);
    if (fate.error) return end(fate, -1);
    off_t place = offset;
    if (file && offset < 0) {
        struct stat status;
        bool isAppended = fcntl(descriptor, F_GETFL) & O_APPEND && fstat(descriptor, &status) == 0;
        place = isAppended ? status.st_size : lseek(descriptor, 0, SEEK_CUR);
    }
    size_t part = fate.isHalf ? (count + 1) / 2 : count;
    ssize_t written = offset < 0 ? syscall(SYS_write, descriptor, bytes, part) : syscall(SYS_pwrite64, descriptor, bytes, part, offset);
    if (!file) return written;
    int error = errno;
    if (written > 0) note(WRITE, true, file->inode, file->path, NULL, (uint64_t)place, bytes, (uint64_t)written);
    errno = error;
    return end(fate, written);
}

ssize_t write(int descriptor, const void *bytes, size_t count) { return change(descriptor, bytes, count, -1); }
ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) { return change(descriptor, bytes, count, offset); }
ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) { return change(descriptor, bytes, count, offset); }

/// Writes only the first part to a file: a short count is a valid result.
ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    if (!fileOf(descriptor) || count < 1) return syscall(SYS_writev, descriptor, parts, count);
    return change(descriptor, parts[0].iov_base, parts[0].iov_len, -1);
}

ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset) {
    if (!fileOf(descriptor) || count < 1) return syscall(SYS_pwritev, descriptor, parts, count, offset, 0);
    return change(descriptor, parts[0].iov_base, parts[0].iov_len, offset);
}

/// A failed read; the data of a successful read is never wrong.
static bool cannotRead(int descriptor) {
    struct File *file = fileOf(descriptor);
    return file && end(begin(READ, file->path), 0) < 0;
}

ssize_t read(int descriptor, void *bytes, size_t count) {
    return cannotRead(descriptor) ? -1 : syscall(SYS_read, descriptor, bytes, count);
}
ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset) {
    return cannotRead(descriptor) ? -1 : syscall(SYS_pread64, descriptor, bytes, count, offset);
}
ssize_t pread64(int descriptor, void *bytes, size_t count, off64_t offset) { return pread(descriptor, bytes, count, offset); }

static int synchronize(int descriptor, long call) {
    struct File *file = fileOf(descriptor);
    if (!file) return (int)syscall(call, descriptor);
    struct Fate fate = begin(SYNC, file->path);
    // No real sync: here only the journal survives a power cut, and thousands of trials must be cheap.
    note(SYNC, fate.error == 0, file->inode, file->path, NULL, 0, NULL, 0);
    return (int)end(fate, 0);
}

int fsync(int descriptor) { return synchronize(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return synchronize(descriptor, SYS_fdatasync); }
int syncfs(int descriptor) { return synchronize(descriptor, SYS_syncfs); }

int ftruncate(int descriptor, off_t length) {
    struct File *file = fileOf(descriptor);
    if (!file) return (int)syscall(SYS_ftruncate, descriptor, length);
    struct Fate fate = begin(TRUNCATE, file->path);
    int result = fate.error ? -1 : (int)syscall(SYS_ftruncate, descriptor, length);
    if (result == 0) note(TRUNCATE, true, file->inode, file->path, NULL, 0, NULL, (uint64_t)length);
    return (int)end(fate, result);
}

int ftruncate64(int descriptor, off64_t length) { return ftruncate(descriptor, length); }

int truncate(const char *path, off_t length) {
    int descriptor = openFile(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (descriptor < 0) return -1;
    int result = ftruncate(descriptor, length), error = errno;
    close(descriptor);
    errno = error;
    return result;
}

int fallocate(int descriptor, int mode, off_t offset, off_t length) {
    struct File *file = fileOf(descriptor);
    if (!file) return (int)syscall(SYS_fallocate, descriptor, mode, offset, length);
    struct Fate fate = begin(ALLOCATE, file->path);
    int result = fate.error ? -1 : (int)syscall(SYS_fallocate, descriptor, mode, offset, length);
    if (result == 0 && mode == 0) note(ALLOCATE, true, file->inode, file->path, NULL, 0, NULL, (uint64_t)(offset + length));
    return (int)end(fate, result);
}

int fallocate64(int descriptor, int mode, off64_t offset, off64_t length) { return fallocate(descriptor, mode, offset, length); }
int posix_fallocate(int descriptor, off_t offset, off_t length) { return fallocate(descriptor, 0, offset, length) == 0 ? 0 : errno; }
int posix_fallocate64(int descriptor, off64_t offset, off64_t length) { return posix_fallocate(descriptor, offset, length); }

/// Handles one name, or two for a rename and a link.
static int naming(enum Call call, int directory, const char *path, int targetDirectory, const char *target, int flags, long mode) {
    char buffers[2][PATH_MAX];
    const char *own = ours(directory, path, buffers[0]), *other = target ? ours(targetDirectory, target, buffers[1]) : NULL;
    bool isOurs = own && (!target || other);
    struct Fate fate = {0};
    if (isOurs) fate = begin(call, own);
    int result = -1;
    if (!fate.error) {
        switch (call) {
        case RENAME: result = (int)syscall(SYS_renameat2, directory, path, targetDirectory, target, flags); break;
        case LINK: result = (int)syscall(SYS_linkat, directory, path, targetDirectory, target, flags); break;
        case MKDIR: result = (int)syscall(SYS_mkdirat, directory, path, mode); break;
        default: result = (int)syscall(SYS_unlinkat, directory, path, flags); break;
        }
    }
    if (!isOurs) return result;
    int error = errno;
    if (result == 0) note(call, true, 0, own, other, 0, NULL, 0);
    errno = error;
    return (int)end(fate, result);
}

int rename(const char *path, const char *target) { return naming(RENAME, AT_FDCWD, path, AT_FDCWD, target, 0, 0); }
int renameat(int from, const char *path, int to, const char *target) { return naming(RENAME, from, path, to, target, 0, 0); }
int renameat2(int from, const char *path, int to, const char *target, unsigned flags) {
    return naming(RENAME, from, path, to, target, (int)flags, 0);
}
int link(const char *path, const char *target) { return naming(LINK, AT_FDCWD, path, AT_FDCWD, target, 0, 0); }
int linkat(int from, const char *path, int to, const char *target, int flags) { return naming(LINK, from, path, to, target, flags, 0); }
int unlink(const char *path) { return naming(UNLINK, AT_FDCWD, path, 0, NULL, 0, 0); }
int unlinkat(int directory, const char *path, int flags) {
    return naming(flags & AT_REMOVEDIR ? RMDIR : UNLINK, directory, path, 0, NULL, flags, 0);
}
int remove(const char *path) {
    int result = unlink(path);
    return result != 0 && errno == EISDIR ? unlinkat(AT_FDCWD, path, AT_REMOVEDIR) : result;
}
int mkdir(const char *path, mode_t mode) { return naming(MKDIR, AT_FDCWD, path, 0, NULL, 0, mode); }
int mkdirat(int directory, const char *path, mode_t mode) { return naming(MKDIR, directory, path, 0, NULL, 0, mode); }
int rmdir(const char *path) { return naming(RMDIR, AT_FDCWD, path, 0, NULL, AT_REMOVEDIR, 0); }
