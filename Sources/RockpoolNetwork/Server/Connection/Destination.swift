// The recipient of a request, and its admission to the proxy.
import RockpoolCore
import RockpoolEngine

/// The destination of a request.
enum Destination: Equatable {
    case origin(OriginAddress, target: String)
    case tunnel(host: String, port: Int)
}

/// The judgement of a request by its name and password (docs/security-model.md#proxy-passwords).
enum ProxyAdmission {
    case admitted
    case refused(Reply)
    /// The password must be compared first: nil admits the request.
    case open(@Sendable () async -> Reply?)
}
