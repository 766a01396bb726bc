// The kind of the connection by NetworkManager, over D-Bus (docs/caching.md#budgets).
import Dispatch

/// Queries NetworkManager, if it runs.
enum NetworkManager {
    private static let name = "org.freedesktop.NetworkManager"

    /// True if the connection is metered, or probably so; nil if that is not known.
    static func isMetered() async -> Bool? {
        guard let busctl = Tool("busctl") else { return nil }
        return await withCheckedContinuation { answer in
            DispatchQueue.global().async {
                let path = "/" + name.replacing(".", with: "/")
                let outcome = busctl.run(["--timeout=2", "get-property", name, path, name, "Metered"], within: 5)
                answer.resume(returning: outcome.status == 0 ? isMetered(property: outcome.output) : nil)
            }
        }
    }

    /// Reads the property `Metered`: `u 1` and `u 3` are yes and probably yes, `u 2` and `u 4` no and probably no, `u 0` unknown.
    static func isMetered(property: String) -> Bool? {
        switch property.split(whereSeparator: \.isWhitespace).last {
        case "1", "3": true
        case "2", "4": false
        default: nil
        }
    }
}
