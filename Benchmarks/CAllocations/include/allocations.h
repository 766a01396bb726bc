// Counts what the process allocates: the benchmark package's own counter needs a library that is not available here.
#pragma once
#include <stdint.h>

/// Calls of malloc and its kin since the start, all threads together.
uint64_t allocations_count(void);
