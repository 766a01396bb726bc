// The bodies of one call to the admin socket, as libcurl moves them: held when small, else streamed (contract §1).
import CCurl
import Foundation

/// Where a call's body comes from and where its reply's goes, when they are not to be held. Called on the transfer's own thread.
struct AdminTransfer: Sendable {
    /// Gives the next bytes of the request's body, at most as many as there is room; 0 ends it.
    var source: (@Sendable (UnsafeMutableRawBufferPointer) throws -> Int)?
    /// Takes the next bytes of a 2xx reply's body.
    var sink: (@Sendable (UnsafeRawBufferPointer) throws -> Void)?
}

/// One transfer under way, on the thread that performs it.
final class AdminExchange {
    /// More is not held: no report is near it.
    private static let limitBytes = 256 << 20

    private let handle: UnsafeMutableRawPointer
    private let transfer: AdminTransfer
    /// What was held of the reply.
    private(set) var body = Data()
    /// What kept `transfer` from going on, in words.
    private(set) var failure: String?

    init(_ transfer: AdminTransfer, on handle: UnsafeMutableRawPointer) {
        self.transfer = transfer
        self.handle = handle
    }

    /// Of the reply; 0 before there is one.
    var status: Int {
        var status = 0
        _ = rockpool_easy_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        return status
    }

    /// Sets both ends and performs the transfer.
    func perform(method: String) -> CURLcode {
        let (handle, hasSource, context) = (handle, transfer.source != nil, Unmanaged.passUnretained(self).toOpaque())
        let take: curl_write_callback = { bytes, size, count, context in
            guard let bytes, let context else { return 0 }
            return Unmanaged<AdminExchange>.fromOpaque(context).takeUnretainedValue()
                .take(UnsafeRawBufferPointer(start: bytes, count: size * count))
        }
        let give: rp_data_callback = { room, size, count, context in
            guard let room, let context else { return rp_readfunc_abort }
            return Unmanaged<AdminExchange>.fromOpaque(context).takeUnretainedValue()
                .give(into: UnsafeMutableRawBufferPointer(start: room, count: size * count))
        }
        let steps: [() -> CURLcode] = [
            { rockpool_easy_set_write(handle, take, context) },
            { hasSource ? rp_set_long(handle, CURLOPT_UPLOAD, 1) : CURLE_OK },
            { hasSource ? rp_set_data_callback(handle, CURLOPT_READFUNCTION, give) : CURLE_OK },
            { hasSource ? rp_set_pointer(handle, CURLOPT_READDATA, context) : CURLE_OK },
            { rockpool_easy_set_string(handle, CURLOPT_CUSTOMREQUEST, method) },
            { curl_easy_perform(handle) },
        ]
        return steps.lazy.map { $0() }.first { $0 != CURLE_OK } ?? CURLE_OK
    }

    private func give(into room: UnsafeMutableRawBufferPointer) -> Int {
        do {
            return try transfer.source?(room) ?? 0
        } catch {
            failure = "\(error)"
            return rp_readfunc_abort
        }
    }

    private func take(_ bytes: UnsafeRawBufferPointer) -> Int {
        do {
            if let sink = transfer.sink, (200..<300).contains(status) {
                try sink(bytes)
            } else {
                guard body.count + bytes.count <= Self.limitBytes else { return 0 }
                body.append(contentsOf: bytes)
            }
            return bytes.count
        } catch {
            failure = "\(error)"
            return 0
        }
    }
}
