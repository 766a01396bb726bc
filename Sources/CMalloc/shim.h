// Gives freed memory back to the system, of every arena (malloc_trim(3)): Swift's Glibc does not show <malloc.h>.
#pragma once
#include <stddef.h>

/// The most to keep free is `pad` bytes; 1 when any was given back.
int malloc_trim(size_t pad);

/// Sets a limit of the allocator; 0 when it is refused (mallopt(3)). `parameter` is one of the constants below.
int mallopt(int parameter, int value);

/// The free bytes at the end of a heap from which it is shortened.
static const int rp_trim_threshold = -1;
/// The bytes by which a heap is extended beyond what is needed.
static const int rp_top_pad = -2;
/// The size from which a block is mapped by itself.
static const int rp_mmap_threshold = -3;
