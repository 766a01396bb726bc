// Counts a program's calls of the allocator, for LD_PRELOAD: the count is the first eight bytes of the file ALLOCATIONS_FILE.
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_uint_least64_t before_start;
static atomic_uint_least64_t *allocations = &before_start;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("ALLOCATIONS_FILE");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *shared = mmap(NULL, sizeof *allocations, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared != MAP_FAILED) allocations = shared;
    close(file);
}

static void count(void) { atomic_fetch_add_explicit(allocations, 1, memory_order_relaxed); }

#include "../CAllocations/counted.h"
