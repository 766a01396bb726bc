// The values of an operation's row that are not stored as they are in memory (docs/outbox.md#schema).
import FoundationEssentials
import GRDB
import HTTPTypes
import RockpoolCore

extension RowReader {
    mutating func moment() throws(UnreadableRow) -> Timestamp { Timestamp(milliseconds: try next()) }

    mutating func tickIfAny() throws(UnreadableRow) -> Tick? { try nextIfAny(Int64.self).map { Tick(number: $0) } }

    mutating func momentIfAny() throws(UnreadableRow) -> Timestamp? {
        guard let milliseconds: Int64 = try nextIfAny() else { return nil }
        return Timestamp(milliseconds: milliseconds)
    }

    mutating func keyIsClients() throws(UnreadableRow) -> Bool { try next(String.self) == "client" }

    mutating func principal() throws(UnreadableRow) -> String? {
        let name: String = try next()
        return name.isEmpty ? nil : name
    }

    mutating func localID() throws(UnreadableRow) -> LocalID? {
        guard let text: String = try nextIfAny() else { return nil }
        return LocalID(text)
    }

    mutating func method() throws(UnreadableRow) -> HTTPRequest.Method {
        guard let method = HTTPRequest.Method(try next(String.self)) else { throw unreadable }
        return method
    }

    mutating func origin() throws(UnreadableRow) -> OriginAddress {
        guard let origin = OriginAddress(url: try next()) else { throw unreadable }
        return origin
    }

    mutating func fields() throws(UnreadableRow) -> HTTPFields {
        guard let fields = FieldCodec.decode(try next()) else { throw unreadable }
        return fields
    }
}

extension OriginAddress {
    /// Parses the text produced by `url`; nil for any other text.
    fileprivate init?(url: String) {
        guard let scheme = [Scheme.https, .http].first(where: { url.hasPrefix("\($0.rawValue)://") }) else { return nil }
        let authority = url.dropFirst(scheme.rawValue.utf8.count + 3)
        let end = authority.lastIndex(of: "]").map { authority.index(after: $0) }
        let hostEnd = end ?? authority.firstIndex(of: ":") ?? authority.endIndex
        let host = authority[..<hostEnd].drop { $0 == "[" }.prefix { $0 != "]" }
        let port = authority[hostEnd...].dropFirst()
        guard !host.isEmpty, port.isEmpty || Int(port) != nil else { return nil }
        self.init(scheme: scheme, host: String(host), port: Int(port))
    }
}
