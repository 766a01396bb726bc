// The keys of the seal, from the installation's secret and the owner's key file (`storage.encrypt`, `storage.key_file`).
package import RockpoolCore

extension BodySeal {
    /// The seal of a stopped installation; nil when it has no secret yet, or the key file cannot be read.
    package static func kept(_ settings: StorageSettings) -> BodySeal? {
        guard let installKey = try? PrivateFile.text("\(settings.stateDir)/install-key"), !installKey.isEmpty else { return nil }
        return try? BodySeal(installKey: Array(installKey.utf8), settings)
    }

    /// - Throws: `.readableByOthers`, `.shortKey` or `FileError` for the key file.
    init(installKey: [UInt8], _ settings: StorageSettings) throws {
        let keyFile = try settings.keyFile.map { path in
            let text = try PrivateFile.text(path)
            guard text.utf8.count >= Self.leastKeyBytes else { throw DataStoreError.shortKey(path: path) }
            return text
        }
        self.init(installKey: installKey, keyFile: keyFile, mode: settings.encrypt)
    }
}
