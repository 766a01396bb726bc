// expat, which reads the XML of others: listings of WebDAV and S3, and what asks for them (docs/architecture.md#parts).
#pragma once
#include <expat.h>
