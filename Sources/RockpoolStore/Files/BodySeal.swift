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

// Secrets in the queries of queued writes, as the database keeps them (docs/security-model.md#credentials-and-secrets).
extension BodySeal {
    /// The beginning of a sealed value.
    private static let mark = "~sealed."

    /// Returns a target with the values of its secret parameters sealed under the installation's own key.
    func sealed(target: String) throws -> String {
        try SecretParameters.replacing(in: target) { _, value in
            value.isEmpty ? value : Self.mark + Base64URL.encoded(try sealOwn(Array(value.utf8)))
        }
    }

    /// Returns the target as its client sent it. A value that is not sealed stays: it is of an earlier version. So does one that no key opens,
    /// so that one row does not hide the others: the upstream refuses it. Its name may no longer be one of a secret.
    func unsealed(target: String) -> String {
        guard target.contains(Self.mark) else { return target }
        return SecretParameters.replacing(in: target, where: { _ in true }) { _, value in
            guard value.hasPrefix(Self.mark), let bytes = Base64URL.decoded(value.utf8.dropFirst(Self.mark.utf8.count)),
                Self.isSealed(bytes), let plain = try? open(bytes)
            else { return value }
            return String(decoding: plain, as: UTF8.self)
        }
    }
}
