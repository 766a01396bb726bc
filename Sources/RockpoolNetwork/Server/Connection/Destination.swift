// The recipient of a request.
import RockpoolCore

/// The destination of a request.
enum Destination: Equatable {
    case origin(OriginAddress, target: String)
    case tunnel(host: String, port: Int)
}
