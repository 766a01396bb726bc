// Secrets in the queries of queued writes, as the database keeps them (docs/security-model.md#credentials-and-secrets).
import RockpoolCore

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
