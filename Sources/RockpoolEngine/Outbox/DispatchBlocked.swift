// The error of an operation that cannot be sent.
import RockpoolCore

/// The reason why an operation cannot be sent in its current form; no byte of it was sent.
struct DispatchBlocked: Error {
    var disposition: Disposition
}
