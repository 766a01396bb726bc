// Names that promise a static file where a page or data came: how a victim is made to leave a private page in a cache
// (web cache deception; security.md §3).
import HTTPTypes

/// The check of a target's name against the content that came for it.
enum DeceptivePath {
    private static let staticNames: Set<Substring> = [
        "css", "js", "mjs", "jpg", "jpeg", "png", "gif", "ico", "svg", "webp", "avif", "woff", "woff2", "ttf", "otf", "eot", "mp3", "mp4",
        "webm", "wasm", "pdf",
    ]

    /// Whether `target` ends like a static file, whatever stands before that, and the content is a page or JSON.
    static func isPromisedOtherwise(_ target: String, _ fields: HTTPFields) -> Bool {
        guard MediaType.isPage(fields) || MediaType.isJSON(fields) else { return false }
        let path = target.prefix { $0 != "?" }.lowercased()
        guard let dot = path.lastIndex(of: ".") else { return false }
        return staticNames.contains(path[path.index(after: dot)...])
    }
}
