// The buffer of libcurl's error message.
import CCurl

/// The buffer for libcurl's error text.
@safe final class CurlErrorText {
    private let bytes = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init() { unsafe bytes.pointee = 0 }

    deinit { unsafe bytes.deallocate() }

    /// Attaches the buffer, which must live for as long as the handle.
    func attach(to easy: EasyHandle) { unsafe rp_set_pointer(easy.raw, CURLOPT_ERRORBUFFER, bytes) }

    /// Empty without an error.
    var text: String { unsafe String(cString: bytes) }
}
