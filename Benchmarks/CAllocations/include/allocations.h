// Counts the process's allocations: the benchmark package's own counter needs a library that is not available here.
#pragma once
#include <stdint.h>

/// Calls of malloc and its variants since the start, by all threads.
uint64_t allocations_count(void);
