// JSON patches: atomic, within limits, and with the effects that their standards define (RFC 6902, RFC 7396).
import RockpoolCore

extension FuzzTarget {
    /// Lines: a document, a JSON Patch, a merge patch, a pointer.
    static func patch(_ input: FuzzInput) throws(BrokenProperty) {
        guard let document = try? JSONValue.parse(input.bytes(0)) else { return }
        if let patch = (try? JSONValue.parse(input.bytes(1))).flatMap({ try? JSONPatch(document: $0) }),
            let patched = try? patch.applied(to: document)
        {
            try hold((try? JSONValue.parse(patched.serialized())) == patched, "what a patch makes can be sent")
            try hold((try? patch.applied(to: document)) == patched, "a patch does one thing")
        }
        if let patch = try? JSONValue.parse(input.bytes(2)) {
            let merged = document.merging(patch)
            try hold(merged.merging(patch) == merged, "a merge patch twice is a merge patch once")
            try hold((try? JSONValue.parse(merged.serialized())) == merged, "what a patch makes can be sent")
        }
        guard let place = JSONPointer(input.text(3)) else { return }
        try hold(areSame(place.text, input.text(3)), "a pointer is written as it was read")
        var changed = document
        if place.set("new", in: &changed), place.tokens.last != "-" {
            try hold(place.get(in: changed) == "new", "what was put in a place is there")
        }
        var removed = document
        if place.remove(from: &removed) { try hold(removed != document, "what was removed is not there") }
    }
}
