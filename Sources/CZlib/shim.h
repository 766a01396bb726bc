// zlib, for bodies at rest (storage.md §3).
#pragma once
#include <zlib.h>
