// The state of one transfer by libcurl.
import CCurl
import Foundation
import RockpoolCore

/// One transfer in progress, on the thread that performs it.
final class AdminExchange {
    /// The most bytes that are buffered; every report is far smaller.
    private static let limitBytes = Int.mib(256)

    private let handle: UnsafeMutableRawPointer
    private let transfer: AdminTransfer
    /// The buffered part of the response's body.
    private(set) var body = Data()
    /// The error of the source or sink that stopped the transfer.
    private(set) var failure: (any Error)?

    init(_ transfer: AdminTransfer, on handle: UnsafeMutableRawPointer) {
        self.transfer = transfer
        self.handle = handle
    }

    /// The status of the response; 0 before one has arrived.
    var status: Int {
        var status = 0
        _ = rockpool_easy_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        return status
    }

    /// Sets the callbacks and performs the transfer.
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
            failure = error
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
            failure = error
            return 0
        }
    }
}
