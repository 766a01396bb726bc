// Secrets in the URLs of stored responses, as the index of the cache keeps them (docs/security-model.md#credentials-and-secrets).
import GRDB
import RockpoolCore

/// Seals the values of secret parameters in the columns `url` and `key`. Equal values have equal sealed forms, so that entries are still
/// found by their URL; memory has URLs as clients know them.
package struct IndexSeal: Sendable {
    private let seal: BodySeal

    package init(seal: BodySeal) { self.seal = seal }

    /// Returns a URL, or the beginning of one, as it is stored. What is sealed already stays: lists show sealed URLs, and commands take them.
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
        guard !value.hasPrefix(BodySeal.SecretForm.repeatable.mark), let sealed = try? seal.sealed(secret: Array(value.utf8), .repeatable)
        else { return value }
        return String(decoding: sealed, as: UTF8.self)
    }

    /// Returns the key as it is stored.
    func sealed(_ key: CacheKey) -> CacheKey { CacheKey(text: sealed(key.text)) ?? key }

    /// Returns every form in which a URL may be stored: older versions have sealed nothing, nor was what `secrets` did not name.
    func forms(of url: String) -> [String] {
        let sealed = sealed(url)
        return sealed == url ? [url] : [sealed, url]
    }

    /// The arguments of `key_hash = ? AND key IN (?, ?)`.
    func arguments(of key: CacheKey) -> StatementArguments { [EntryRow.keyHash(key), sealed(key).text, key.text] }

    /// Returns a URL or the text of a key as its client knows it. What no key opens stays.
    package func opened(_ stored: String) -> String { String(decoding: seal.opened(Array(stored.utf8), .repeatable), as: UTF8.self) }
}
