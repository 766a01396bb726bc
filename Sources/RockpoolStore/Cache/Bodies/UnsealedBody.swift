// A body that lost its seal.

/// A private body was written as one that anybody may have, though private ones are to lie sealed.
struct UnsealedBody: Error {}
