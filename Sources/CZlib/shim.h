// zlib, for bodies at rest (docs/storage.md#what-is-stored-where) and for clients that do not take a stored coding.
#pragma once
#include <zlib.h>

// A macro, which Swift does not see.
static inline int rp_inflate_init(z_stream *stream, int window_bits) { return inflateInit2(stream, window_bits); }
