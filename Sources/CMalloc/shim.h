// Gives freed memory back to the system, of every arena (malloc_trim(3)): Swift's Glibc does not show <malloc.h>.
#pragma once
#include <stddef.h>

/// The most to keep free is `pad` bytes; 1 when any was given back.
int malloc_trim(size_t pad);
