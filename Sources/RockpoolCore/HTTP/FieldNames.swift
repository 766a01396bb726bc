// Field names that HTTPTypes does not define: every name of a field that Rockpool reads or writes is in this list.
package import HTTPTypes

extension HTTPField.Name {
    /// The Host field of HTTP/1, which HTTPTypes replaces by `:authority`.
    package static let hostField = listed("Host")
    /// RFC 8586.
    package static let cdnLoop = listed("CDN-Loop")
    /// draft-ietf-httpapi-idempotency-key-header.
    package static let idempotencyKey = listed("Idempotency-Key")
    /// OASIS repeatable requests.
    package static let repeatabilityResult = listed("Repeatability-Result")
    /// Never registered, but still sent by old clients of proxies (RFC 9110 §7.6.1).
    package static let proxyConnection = listed("Proxy-Connection")
    /// RFC 9112 §C.2.2.
    package static let keepAlive = listed("Keep-Alive")
    /// RFC 7540 §3.2.1; obsolete with h2c.
    package static let http2Settings = listed("HTTP2-Settings")
    /// RFC 4918 §10.2.
    package static let depth = listed("Depth")
    /// gRPC over HTTP/2: the status of a call, a number.
    package static let grpcStatus = listed("grpc-status")
    /// gRPC over HTTP/2: the reason, percent-encoded.
    package static let grpcMessage = listed("grpc-message")
    /// gitprotocol-http.
    package static let gitProtocol = listed("Git-Protocol")
    /// OCI Distribution Specification: the digest of the manifest or blob in an answer.
    package static let dockerContentDigest = listed("Docker-Content-Digest")
    /// Sent by registries; of Docker Registry HTTP API V2.
    package static let dockerAPIVersion = listed("Docker-Distribution-Api-Version")
    /// RFC 8288.
    package static let link = listed("Link")
    /// RFC 9211.
    package static let cacheStatus = listed("Cache-Status")
    /// RFC 7240.
    package static let prefer = listed("Prefer")
    /// RFC 7240.
    package static let preferenceApplied = listed("Preference-Applied")
    /// RFC 9111 §5.4; deprecated.
    package static let pragma = listed("Pragma")
    /// Fetch Metadata Request Headers §2.2 (W3C).
    package static let secFetchMode = listed("Sec-Fetch-Mode")
    /// Fetch Metadata Request Headers §2.3 (W3C).
    package static let secFetchSite = listed("Sec-Fetch-Site")
    /// Private Network Access §3.1 (W3C).
    package static let accessControlRequestPrivateNetwork = listed("Access-Control-Request-Private-Network")
    /// Private Network Access §3.1 (W3C).
    package static let accessControlAllowPrivateNetwork = listed("Access-Control-Allow-Private-Network")
    /// Never registered, but sent by servers and read by browsers (WHATWG HTML §4.2.5.3).
    package static let refresh = listed("Refresh")
    /// RFC 7838.
    package static let altSvc = listed("Alt-Svc")
    /// WHATWG HTML §9.2.4.
    package static let lastEventID = listed("Last-Event-ID")
    /// Referrer Policy §4.1 (W3C).
    package static let referrerPolicy = listed("Referrer-Policy")
    /// WHATWG HTML §7.1.3.
    package static let crossOriginOpenerPolicy = listed("Cross-Origin-Opener-Policy")

    /// Digests of a body or its representation (RFC 9530, and the fields that it replaces).
    package static let digests = [listed("Content-MD5"), listed("Content-Digest"), listed("Repr-Digest"), listed("Digest")]

    /// draft-ietf-httpapi-ratelimit-headers; the two below are those of its first versions.
    package static let rateLimit = listed("RateLimit")
    /// Requests that are left.
    package static let rateLimitRemaining = listed("RateLimit-Remaining")
    /// Seconds until the full number is available again.
    package static let rateLimitReset = listed("RateLimit-Reset")
    /// As `RateLimit-Remaining`; never registered.
    package static let xRateLimitRemaining = listed("X-RateLimit-Remaining")
    /// Seconds, or a Unix time.
    package static let xRateLimitReset = listed("X-RateLimit-Reset")

    // Standard Webhooks 1.0.0.
    /// The id of a message, the same in every sending.
    package static let webhookID = listed("webhook-id")
    /// The time of a sending in seconds.
    package static let webhookTimestamp = listed("webhook-timestamp")
    /// Signatures of a sending.
    package static let webhookSignature = listed("webhook-signature")

    // Rockpool's own fields (docs/reference/headers.md#request-fields, docs/reference/headers.md#fields-that-rockpool-sets).
    /// The id of an operation, in replies to queued writes and in status documents.
    package static let rockpoolOperation = listed("Rockpool-Operation")
    /// The state of that operation; on reads, that of queued writes.
    package static let rockpoolState = listed("Rockpool-State")
    /// What the entity of a read waits for.
    package static let rockpoolSync = listed("Rockpool-Sync")
    /// A request for another strategy.
    package static let rockpoolPolicy = listed("Rockpool-Policy")
    /// The priority of a queued write.
    package static let rockpoolPriority = listed("Rockpool-Priority")
    /// The time after which a queued write is no longer sent.
    package static let rockpoolExpires = listed("Rockpool-Expires")
    /// The operations that a queued write must wait for.
    package static let rockpoolDependsOn = listed("Rockpool-Depends-On")
    /// The group of a queued write.
    package static let rockpoolGroup = listed("Rockpool-Group")
    /// Excludes a queued write from merging.
    package static let rockpoolNoMerge = listed("Rockpool-No-Merge")
    /// The URL to which the end of a queued write is posted.
    package static let rockpoolCallback = listed("Rockpool-Callback")
    /// Names the secret fields beside `Authorization` that a queued write came with; kept with the write, and never sent.
    package static let rockpoolCredential = listed("Rockpool-Credential")
    /// Kept with a shared copy: the identity that it answered (`StoredResponse.owner`). Never sent.
    package static let rockpoolOwner = listed("Rockpool-Owner")
    /// Kept with the answer to a fetch from git: what its pack holds (`StoredPack`). Never sent.
    package static let rockpoolPack = listed("Rockpool-Pack")
    /// Kept with a copy: the lifetimes that its route sets (`StoredResponse.lifetimeRule`). Never sent.
    package static let rockpoolLifetime = listed("Rockpool-Lifetime")
    /// On replies: the write is one that waits already. Kept with a write that may be repeated, and never sent (`RepeatMark`).
    package static let rockpoolRepeat = listed("Rockpool-Repeat")
    /// The address of the client of a queued write that came without a credential; kept with the write, and never sent.
    package static let rockpoolClient = listed("Rockpool-Client")
    /// The fields that are kept with a queued write, and removed before it is sent.
    package static let keptWithWrites: [HTTPField.Name] = [.rockpoolCallback, .rockpoolCredential, .rockpoolClient, .rockpoolRepeat]
    /// The local id of a created entity.
    package static let rockpoolLocalID = listed("Rockpool-Local-Id")
    /// The number of queued writes that a read shows.
    package static let rockpoolPending = listed("Rockpool-Pending")
    /// On reads with a queued write whose effect cannot be shown.
    package static let rockpoolDirty = listed("Rockpool-Dirty")
    /// On reads of an item that is known only from a list.
    package static let rockpoolListed = listed("Rockpool-Listed")

    /// The position in the fleet's changes that a reply includes; in a request, the one that the reply must include.
    package static let rockpoolSeen = listed("Rockpool-Seen")

    /// Marks a request of another gateway of the site, which goes to no further one (docs/fleet.md#caches).
    package static let rockpoolPeer = listed("Rockpool-Peer")

    /// Returns the name of a literal above. A literal that is no token stops the process: no other field may take its place.
    private static func listed(_ name: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(name) else { preconditionFailure("\(name) is no field name") }
        return name
    }
}

/// Values by lower-case names and beginnings of names. Names with the same first byte and length share a slot, and beginnings with the same first
/// and third byte: many begin with `x-`.
struct FieldNameTable<Value: Sendable>: Sendable {
    /// A name, as a range of `bytes`.
    private struct Entry {
        let start: Int32
        let count: Int32
        let value: Value
    }

    private var bytes: [UInt8] = []
    private var entries: [Entry] = []
    /// The first entry of each slot, and the one after the last slot's: of names, then of beginnings.
    private var starts: [Int32] = []

    private static var slots: Int { 32 * 32 }

    /// - Parameters:
    ///   - names: In lower case, not empty; of equal ones the first counts.
    ///   - prefixes: Beginnings, of at least three bytes, of names that are not among `names`; the first that fits counts.
    init(_ names: [(String, Value)], prefixes: [(String, Value)] = []) {
        var sorted = [[(name: [UInt8], value: Value)]](repeating: [], count: 2 * Self.slots)
        for (name, value) in names where !name.isEmpty {
            let name = name.utf8.map(Self.folded)
            sorted[Self.slot(name[0], name.count)].append((name, value))
        }
        for (name, value) in prefixes where name.utf8.count > 2 {
            let name = name.utf8.map(Self.folded)
            sorted[Self.slots + Self.slot(name[0], Int(name[2]))].append((name, value))
        }
        for slot in sorted {
            starts.append(Int32(entries.count))
            for (name, value) in slot {
                entries.append(Entry(start: Int32(bytes.count), count: Int32(name.count), value: value))
                bytes += name
            }
        }
        starts.append(Int32(entries.count))
    }

    /// In lower case, with `-` for `_`: frameworks hand both to a program as one name (CGI, RFC 3875 §4.1.18).
    @inline(__always) private static func folded(_ byte: UInt8) -> UInt8 {
        byte == UInt8(ascii: "_") ? UInt8(ascii: "-") : FieldByte.lowercased(byte)
    }

    /// Upper and lower case letters share their lower five bits.
    private static func slot(_ first: UInt8, _ other: Int) -> Int { Int(first & 31) << 5 | other & 31 }

    /// The value of a name in any case, with `_` for `-`; nil if it is neither listed nor begins like a listed one.
    func value(of name: Span<UInt8>) -> Value? {
        guard !name.isEmpty else { return nil }
        let first = Self.folded(name[0])
        let whole = find(name, in: Self.slot(first, name.count), isWhole: true)
        guard whole == nil, name.count > 2 else { return whole }
        return find(name, in: Self.slots + Self.slot(first, Int(Self.folded(name[2]))), isWhole: false)
    }

    private func find(_ name: Span<UInt8>, in slot: Int, isWhole: Bool) -> Value? {
        var index = Int(starts[slot])
        let end = Int(starts[slot + 1])
        while index < end {
            let (start, count) = (Int(entries[index].start), Int(entries[index].count))
            if isWhole ? count == name.count : count <= name.count, isEqual(name, at: start, count: count) { return entries[index].value }
            index += 1
        }
        return nil
    }

    @inline(__always) private func isEqual(_ name: Span<UInt8>, at start: Int, count: Int) -> Bool {
        var place = count
        // From the end: beginnings are often the same.
        while place > 0 {
            place -= 1
            if Self.folded(name[place]) != bytes[start + place] { return false }
        }
        return true
    }
}
