// The libraries that decode brotli and Zstandard, found at run time (RFC 7932, RFC 8878).
import Glibc

/// One library of this machine with its functions. It is neither linked nor required: where it is not installed, bodies in its coding are
/// served only to clients that accept the coding.
package struct CodingLibrary: Sendable {
    /// Decodes `br`; nil where Debian's `libbrotli1`, or its like, is not installed.
    package static let brotli = CodingLibrary(
        "libbrotlidec.so.1", ["BrotliDecoderCreateInstance", "BrotliDecoderDecompressStream", "BrotliDecoderDestroyInstance"])
    /// Decodes `zstd`; nil where Debian's `libzstd1`, or its like, is not installed.
    package static let zstd = CodingLibrary(
        "libzstd.so.1",
        ["ZSTD_createDStream", "ZSTD_freeDStream", "ZSTD_decompressStream", "ZSTD_isError", "ZSTD_DCtx_setParameter"])

    private let addresses: [String: UInt]

    /// Nil if the library, or one of the functions, is not found.
    private init?(_ name: String, _ functions: [String]) {
        guard let library = unsafe dlopen(name, RTLD_NOW | RTLD_LOCAL) else { return nil }
        var found: [String: UInt] = [:]
        for function in functions {
            guard let symbol = unsafe dlsym(library, function) else { return nil }
            found[function] = UInt(bitPattern: symbol)
        }
        addresses = found
    }

    /// Returns a function of the library, which is one of those named above, as a C function of this type.
    package func function<F>(_ name: String, as type: F.Type) -> F { unsafe unsafeBitCast(addresses[name] ?? 0, to: type) }
}
