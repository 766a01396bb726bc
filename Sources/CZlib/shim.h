// zlib, for bodies at rest (docs/storage.md#what-is-stored-where) and for clients that do not take a stored coding.
#pragma once
#include <zlib.h>

// Macros, which Swift does not see.
static inline int rp_deflate_init(z_stream *stream, int level, int window_bits, int memory_level) {
    return deflateInit2(stream, level, Z_DEFLATED, window_bits, memory_level, Z_DEFAULT_STRATEGY);
}
static inline int rp_inflate_init(z_stream *stream, int window_bits) { return inflateInit2(stream, window_bits); }
