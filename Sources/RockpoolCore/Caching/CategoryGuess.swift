// What the type of the content says: the category where no route names one, and deception about the name of a file
// (docs/security-model.md#cache-deception).
import HTTPTypes

/// `category: auto`.
package enum CategoryGuess {
    /// The name of a built-in category: `assets` for images, fonts, media, code and archives; `important` for documents and data;
    /// `ephemeral` for streams and for responses without a usable type.
    package static func name(for response: ResponseHead) -> String {
        guard let value = response.fields.single(.contentType) else { return CacheCategory.ephemeral.name }
        let essence = FieldList.trimmed(value.prefix { $0 != ";" }).lowercased()
        guard let slash = essence.firstIndex(of: "/") else { return CacheCategory.ephemeral.name }
        let subtype = essence[essence.index(after: slash)...]
        switch essence[..<slash] {
        case "image", "font", "audio", "video", "model": return CacheCategory.assets.name
        case "text": return text(subtype)
        case "application": return application(subtype)
        // The type that S3 gives to objects without one.
        case "binary" where subtype == "octet-stream": return CacheCategory.assets.name
        default: return CacheCategory.ephemeral.name
        }
    }

    private static func text(_ subtype: Substring) -> String {
        switch subtype {
        case "css", "javascript", "ecmascript": CacheCategory.assets.name
        case "event-stream": CacheCategory.ephemeral.name
        default: CacheCategory.important.name
        }
    }

    private static func application(_ subtype: Substring) -> String {
        switch subtype {
        case "javascript", "x-javascript", "ecmascript", "wasm", "pdf", "zip", "gzip", "x-tar", "zstd", "octet-stream", "font-woff",
            "vnd.ms-fontobject", "x-font-ttf", "x-font-woff", "x-7z-compressed", "x-bzip2", "x-xz", "java-archive":
            CacheCategory.assets.name
        case "x-ndjson", "json-seq", "stream+json", "grpc": CacheCategory.ephemeral.name
        default: CacheCategory.important.name
        }
    }
}

/// Compares a target's file name with the type of the content received for it (web cache deception).
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
