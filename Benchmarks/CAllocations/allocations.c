// Counts calls of the allocator's entry points and forwards them to glibc. A program's symbols take precedence over those of libraries, so
// the calls of the Swift runtime are counted too.
#include "allocations.h"

#include <stdatomic.h>

static atomic_uint_least64_t allocations;

static void count(void) { atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed); }

uint64_t allocations_count(void) { return atomic_load_explicit(&allocations, memory_order_relaxed); }

#include "counted.h"
