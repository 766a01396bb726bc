// Detects a page or data served under the name of a static file: the means by which an attacker gets a victim's private page cached (web
// cache deception; docs/security-model.md#cache-deception).
import HTTPTypes

/// Compares a target's file name with the type of the content received for it.
enum DeceptivePath {
    private static let staticNames: Set<Substring> = [
        "css", "js", "mjs", "jpg", "jpeg", "png", "gif", "ico", "svg", "webp", "avif", "woff", "woff2", "ttf", "otf", "eot", "mp3", "mp4",
        "webm", "wasm", "pdf",
    ]

    /// True if `target` ends like a static file, whatever precedes that, and the content is a page or JSON.
    static func isPromisedOtherwise(_ target: String, fields: HTTPFields) -> Bool {
        guard MediaType.isPage(fields) || MediaType.isJSON(fields) else { return false }
        let path = target.prefix { $0 != "?" }.lowercased()
        guard let dot = path.lastIndex(of: ".") else { return false }
        return staticNames.contains(path[path.index(after: dot)...])
    }
}
