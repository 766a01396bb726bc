// The keys under which bodies are sealed at rest, and the form of a sealed value (`storage.encrypt`, `storage.key_file`).
import Crypto
import FoundationEssentials
import RockpoolCore

/// Seals bodies with AES-256-GCM under keys derived from this installation's secret, or from the owner's key file.
///
/// A sealed value is `magic | key id | nonce | ciphertext | tag`. A plain value that begins with the magic is sealed as well, even
/// while sealing is off: the first bytes always tell the two forms apart.
package struct BodySeal: Sendable {
    /// The keys of one secret.
    struct Key: Sendable {
        /// Names the key in what it sealed; 4 bytes.
        let id: [UInt8]
        let bodies: SymmetricKey
        /// For names: a plain SHA-256 would let anyone with the disk test a guess at the body.
        let names: SymmetricKey

        init(_ secret: [UInt8]) {
            func derived(_ info: String) -> SymmetricKey {
                HKDF<SHA256>.deriveKey(inputKeyMaterial: SymmetricKey(data: secret), info: Data(info.utf8), outputByteCount: 32)
            }
            bodies = derived("rockpool body 1")
            names = derived("rockpool body name 1")
            id = unsafe derived("rockpool body key 1").withUnsafeBytes { unsafe Array($0.prefix(BodySeal.idLength)) }
        }
    }

    /// Seals nothing, and opens nothing.
    package static let off = BodySeal(installKey: [], keyFile: nil, mode: .off)

    /// Of a key file.
    static let leastKeyBytes = 32

    /// The first bytes of every sealed value and file.
    static let magic = Array("RPsealed".utf8)
    static let idLength = 4
    /// Bytes that a sealed value takes beyond its plain form: magic, key id, nonce, tag.
    static let overhead = magic.count + idLength + 12 + 16

    /// True when new bodies are sealed; what was sealed before is opened either way.
    package let isSealing: Bool
    /// The key that seals, then those that only open.
    private let keys: [Key]

    /// - Parameters:
    ///   - installKey: the installation's secret; its key opens what was sealed before there was a key file.
    ///   - keyFile: the text of `storage.key_file`; nil without one.
    init(installKey: [UInt8], keyFile: String?, mode: StorageEncryption) {
        isSealing = mode == .private
        keys = (keyFile.map { [Key(Array($0.utf8))] } ?? []) + [Key(installKey)]
    }

    /// True when the bytes have the form of a sealed value or file.
    static func isSealed(_ bytes: some Collection<UInt8>) -> Bool { bytes.starts(with: magic) }

    /// The id of the key that sealed `bytes`.
    static func keyID(of bytes: some Collection<UInt8>) -> [UInt8] { Array(bytes.dropFirst(magic.count).prefix(idLength)) }

    /// The names under which the database remembers the key file in use; the installation's own key is always at hand.
    var knownMarks: [String] { keys.dropLast().map { "key-file \(Digest.hex($0.id))" } }

    /// True when one of the keys has this id.
    func knows(_ id: [UInt8]) -> Bool { keys.contains { $0.id == id } }

    /// The value as it is written to the disk.
    func seal(_ bytes: [UInt8]) throws -> [UInt8] { try Self.seal(bytes, keys[0]) }

    /// The same under the installation's own key, which is always at hand: for secrets that are sealed whatever `storage.encrypt` says.
    func sealOwn(_ bytes: [UInt8]) throws -> [UInt8] { try Self.seal(bytes, keys[keys.count - 1]) }

    /// Seals a value so that equal ones have equal sealed forms, under the installation's own key: `nonce | ciphertext | tag`, with a nonce that
    /// is made of the value.
    func sealOwn(repeatably bytes: [UInt8]) throws -> [UInt8] {
        let key = keys[keys.count - 1]
        let code = HMAC<SHA256>.authenticationCode(for: Array("rockpool index 1".utf8) + bytes, using: key.names)
        guard let box = try AES.GCM.seal(bytes, using: key.bodies, nonce: AES.GCM.Nonce(data: Array(code.prefix(12)))).combined else {
            throw SealBroken()
        }
        return Array(box)
    }

    /// The plain form of a value that `sealOwn(repeatably:)` has sealed.
    /// - Throws: `SealBroken` when it has changed, or was sealed under another key.
    func openOwn(_ box: [UInt8]) throws -> [UInt8] {
        guard let sealed = try? AES.GCM.SealedBox(combined: box), let plain = try? AES.GCM.open(sealed, using: keys[keys.count - 1].bodies)
        else { throw SealBroken() }
        return Array(plain)
    }

    private static func seal(_ bytes: [UInt8], _ key: Key) throws -> [UInt8] {
        guard let box = try AES.GCM.seal(bytes, using: key.bodies).combined else { throw SealBroken() }
        return magic + key.id + box
    }

    /// The plain form of a sealed value.
    /// - Throws: `SealBroken` when no key opens it, or its bytes have changed.
    func open(_ bytes: [UInt8]) throws -> [UInt8] {
        let box = try AES.GCM.SealedBox(combined: bytes.dropFirst(Self.magic.count + Self.idLength))
        guard let key = key(Self.keyID(of: bytes)), let plain = try? AES.GCM.open(box, using: key.bodies) else { throw SealBroken() }
        return Array(plain)
    }

    /// The name under which a sealed body with this SHA-256 is stored; 32 bytes.
    func name(of hash: [UInt8]) -> [UInt8] { Self.name(of: hash, keys[0]) }

    /// True when `name` is the one that any of the keys gives to a body with this SHA-256.
    func isName(_ name: [UInt8], of hash: [UInt8]) -> Bool { keys.contains { Self.name(of: hash, $0) == name } }

    /// The same for a body that is stored in this coding: one that is not sealed is named by its SHA-256 itself.
    func isName(_ name: [UInt8], of hash: [UInt8], _ coding: StoredCoding) -> Bool {
        coding.isSealed ? isName(name, of: hash) : name == hash
    }

    private static func name(of hash: [UInt8], _ key: Key) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: hash, using: key.names))
    }

    // MARK: - Files

    /// The key and the id for a new file with this salt.
    func fileKey(salt: [UInt8]) -> (id: [UInt8], key: SymmetricKey) { (keys[0].id, Self.fileKey(keys[0], salt)) }

    /// The key of a file that was sealed before; nil when it was sealed under a key that is not known.
    func fileKey(id: [UInt8], salt: [UInt8]) -> SymmetricKey? { key(id).map { Self.fileKey($0, salt) } }

    private static func fileKey(_ key: Key, _ salt: [UInt8]) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: key.bodies, salt: salt, info: Data("rockpool file 1".utf8), outputByteCount: 32)
    }

    private func key(_ id: [UInt8]) -> Key? { keys.first { $0.id == id } }
}

/// A sealed body cannot be opened: it was changed, or sealed under a key that is not known.
struct SealBroken: Error, CustomStringConvertible {
    var description: String { "a sealed body cannot be opened: it has changed, or was sealed under another key" }
}

// Secrets within texts, as the databases keep them (docs/security-model.md#credentials-and-secrets): sealed under the installation's own
// key, whatever `storage.encrypt` says.
extension BodySeal {
    /// How a secret within a text is sealed.
    enum SecretForm: Sendable {
        /// Equal secrets have different forms: in the outbox.
        case once
        /// Equal secrets have equal forms: in URLs by which copies are found.
        case repeatable

        /// The beginning of a sealed secret.
        var mark: String {
            switch self {
            case .once: "~sealed."
            case .repeatable: "REDACTED~"
            }
        }
    }

    /// Returns a secret in its sealed form: characters that a URL may have.
    func sealed(secret: [UInt8], _ form: SecretForm) throws -> [UInt8] {
        guard !secret.isEmpty else { return secret }
        let box = form == .once ? try sealOwn(secret) : try sealOwn(repeatably: secret)
        return Array((form.mark + Base64URL.encoded(box)).utf8)
    }

    /// Returns a text with its sealed secrets as they were. What no key opens stays, so that one row does not hide the others: the upstream
    /// refuses it. A secret may have another name by now than those that are sealed.
    func opened(_ text: [UInt8], _ form: SecretForm) -> [UInt8] {
        guard text.contains(UInt8(ascii: "~")) else { return text }
        let mark = Array(form.mark.utf8)
        var (result, rest): ([UInt8], ArraySlice<UInt8>) = ([], text[...])
        while let found = rest.firstRange(of: mark) {
            result += rest[..<found.lowerBound]
            let code = rest[found.upperBound...].prefix(while: Base64URL.contains)
            let secret = Base64URL.decoded(code).flatMap { opened(box: $0, form) }
            result += secret ?? Array(mark + code)
            rest = rest[code.endIndex...]
        }
        return result + rest
    }

    private func opened(box: [UInt8], _ form: SecretForm) -> [UInt8]? {
        switch form {
        case .once: Self.isSealed(box) ? try? open(box) : nil
        case .repeatable: try? openOwn(box)
        }
    }

    /// Returns a URL or a target of the outbox with its secrets as they were.
    func opened(url: String) -> String { String(decoding: opened(Array(url.utf8), .once), as: UTF8.self) }

    /// Returns a URL or a target of the outbox with its secrets sealed.
    func sealed(url: String) throws -> String {
        String(decoding: try SecretParameters.replacing(in: Array(url.utf8)) { try sealed(secret: $1, .once) }, as: UTF8.self)
    }
}
