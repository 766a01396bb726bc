// A request's head: the gate, and the fast path around the decoder, which must never admit a request that the gate refuses.
import HTTPTypes
import RockpoolCore

extension FuzzTarget {
    /// The head as received on the wire.
    static func requestHead(_ bytes: [UInt8]) throws(BrokenProperty) {
        let limits = ClientLimits()
        let plain = FastPathRequest(bytes.span, limits: limits)
        guard let head = RawHead(bytes) else {
            return try hold(plain == nil, "a plain request is a request")
        }
        let admission: RequestGate.Admission
        do throws(Refusal) {
            admission = try RequestGate.admit(
                method: head.method, target: head.target, version: head.version, fields: head.fields, limits: limits)
        } catch {
            // Stored responses are keyed by the bytes of target and Host: an invalid target or Host has none.
            let namesSomething =
                (try? RequestTarget.parse(head.target, method: head.method)) != nil && (try? HostField.parse(head.fields)) != nil
            try hold(plain == nil || !namesSomething, "what the gate refuses is never plain: \(error.detail)")
            try hold([400, 405, 413, 414, 417, 431, 501, 505].contains(error.status), "the gate's refusals are known: \(error.status)")
            try hold(error.detail.utf8.count <= 256, "what a refusal quotes is short")
            return try hold(error.detail.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }, "a refusal holds no control characters")
        }
        if let plain { try isAdmitted(plain, of: bytes, head, as: admission) }
        try isConsistent(admission, of: head)
        let stripped = HopByHop.stripped(head.fields)
        try hold(HopByHop.stripped(stripped) == stripped, "nothing is hop-by-hop of what has been stripped")
    }

    private static func isAdmitted(
        _ plain: FastPathRequest, of bytes: [UInt8], _ head: RawHead, as admission: RequestGate.Admission
    ) throws(BrokenProperty) {
        try hold(plain.length == head.length, "a plain head ends where the head ends")
        try hold(bytes[plain.target].elementsEqual(head.target.utf8), "the plain target is the target")
        try hold(admission.framing == .none, "a plain request has no body")
        let hosts = head.fields[values: .init("Host") ?? .location]
        try hold(hosts.count == 1 && bytes[plain.host].elementsEqual((hosts.first ?? "").utf8), "the plain host is the only Host")
        for field in head.fields where field.name.canonicalName != "host" {
            let name = Array(field.name.canonicalName.utf8)
            let value = plain.value(of: name, in: bytes.span)
            let given = head.fields[values: field.name]
            let isSame = given.count > 1 ? value?.isEmpty == true : value.map { bytes[$0].elementsEqual(field.value.utf8) } ?? false
            try hold(isSame, "a plain request has the fields of the request")
        }
    }

    private static func isConsistent(_ admission: RequestGate.Admission, of head: RawHead) throws(BrokenProperty) {
        if case .length(let length) = admission.framing {
            try hold((0...(1 << 53)).contains(length), "a body's length is within its limits")
        }
        let key: CacheKey
        switch admission.target {
        case .absolute(let origin, let pathAndQuery): key = CacheKey(method: head.method, origin: origin, target: pathAndQuery)
        case .origin(let target):
            let host = admission.host
            key = CacheKey(
                method: head.method, origin: OriginAddress(scheme: .http, host: host?.host ?? "", port: host?.port), target: target)
        case .asterisk, .authority: return
        }
        try hold(CacheKey(text: key.text) == key, "a key is read back from its text")
        try hold(
            head.target.hasSuffix(key.target) || ["/", "*"].contains(key.target) || key.target.hasPrefix("/?"),
            "a key holds the target as it came")
    }
}

/// A request's head split at line ends, spaces and colons only: the common part of every decoder.
struct RawHead {
    let method, target: String
    let version: (major: Int, minor: Int)
    let fields: HTTPFields
    /// Bytes, including the empty line.
    let length: Int

    /// Nil without a request line, for an incomplete head, and for a line that is no field.
    init?(_ bytes: [UInt8]) {
        var lines: [ArraySlice<UInt8>] = []
        var rest = bytes[...]
        while let feed = rest.firstIndex(of: 0x0A) {
            let line = rest[..<feed]
            rest = rest[(feed + 1)...]
            guard line.last == 0x0D else { return nil }
            if line.count == 1 { break }
            lines.append(line.dropLast())
            if rest.isEmpty { return nil }
        }
        guard let start = lines.first?.split(separator: 0x20, omittingEmptySubsequences: false), start.count == 3,
            String(decoding: start[2], as: UTF8.self).hasPrefix("HTTP/"), start[2].count == 8,
            let major = Int(String(decoding: start[2].dropFirst(5).prefix(1), as: UTF8.self)),
            let minor = Int(String(decoding: start[2].suffix(1), as: UTF8.self))
        else { return nil }
        var fields = HTTPFields()
        for line in lines.dropFirst() {
            guard let field = HTTPField(line: line) else { return nil }
            fields.append(field)
        }
        method = String(decoding: start[0], as: UTF8.self)
        target = String(decoding: start[1], as: UTF8.self)
        version = (major, minor)
        self.fields = fields
        length = rest.startIndex
    }
}
