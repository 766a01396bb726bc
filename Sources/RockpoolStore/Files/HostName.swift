// The name of this machine.
import Glibc

enum HostName {
    /// The host's name without its domain; `rockpool` where it has none.
    static var own: String {
        var bytes = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&bytes, bytes.count - 1) == 0 else { return "rockpool" }
        let name = String(decoding: bytes.prefix { $0 != 0 && $0 != 0x2E }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return name.isEmpty ? "rockpool" : name
    }
}
