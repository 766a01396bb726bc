// Secrets in the URLs of stored responses, as the index of the cache keeps them (docs/security-model.md#credentials-and-secrets).
import GRDB
import RockpoolCore

/// Seals the values of secret parameters in the columns `url` and `key`. Equal values have equal sealed forms, so that entries are still
/// found by their URL; memory has URLs as clients know them.
package struct IndexSeal: Sendable {
    /// The beginning of a sealed value. Lists show sealed URLs as they are, and commands take them.
    static let mark = "REDACTED~"

    private let seal: BodySeal

    package init(seal: BodySeal) { self.seal = seal }

    /// Returns a URL, or the beginning of one, as it is stored. What is sealed already stays.
    package func sealed(_ url: String) -> String {
        guard url.utf8.contains(UInt8(ascii: "?")) else { return url }
        return SecretParameters.replacing(in: url) { _, value in sealed(value: value) }
    }

    /// Returns a pattern of URLs as it is stored. A value in which `*` stands for any characters is not known whole, and stays.
    func sealed(glob: String) -> String {
        guard glob.utf8.contains(UInt8(ascii: "?")) else { return glob }
        return SecretParameters.replacing(in: glob) { _, value in value.contains("*") ? value : sealed(value: value) }
    }

    private func sealed(value: String) -> String {
        guard !value.isEmpty, !value.hasPrefix(Self.mark), let box = try? seal.sealOwn(repeatably: Array(value.utf8)) else { return value }
        return Self.mark + Base64URL.encoded(box)
    }

    /// Returns the key as it is stored.
    func sealed(_ key: CacheKey) -> CacheKey { CacheKey(text: Self.changing(key.text) { sealed($0) }) ?? key }

    /// Returns every form in which a URL may be stored: older versions have sealed nothing, nor was what `secrets` did not name.
    func forms(of url: String) -> [String] {
        let sealed = sealed(url)
        return sealed == url ? [url] : [sealed, url]
    }

    /// The arguments of `key_hash = ? AND key IN (?, ?)`.
    func arguments(of key: CacheKey) -> StatementArguments { [EntryRow.keyHash(key), sealed(key).text, key.text] }

    /// Returns a URL or the text of a key as its client knows it. What no key opens stays.
    package func opened(_ stored: String) -> String {
        guard stored.utf8.contains(UInt8(ascii: "?")), stored.contains(Self.mark) else { return stored }
        return Self.changing(stored) { url in
            SecretParameters.replacing(in: url, where: { _ in true }) { _, value in
                guard value.hasPrefix(Self.mark), let box = Base64URL.decoded(value.utf8.dropFirst(Self.mark.utf8.count)),
                    let plain = try? seal.openOwn(box)
                else { return value }
                return String(decoding: plain, as: UTF8.self)
            }
        }
    }

    /// Changes a URL, or the target in the text of a key, which has five lines.
    private static func changing(_ text: String, _ change: (String) -> String) -> String {
        guard text.utf8.contains(UInt8(ascii: "?")) else { return text }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { String($0) }
        let place = lines.count == 5 ? 2 : 0
        lines[place] = change(lines[place])
        return lines.joined(separator: "\n")
    }
}
