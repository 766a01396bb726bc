// Resolves paths: `~`, the XDG base directories of the defaults, and paths relative to the configuration file.
import Foundation
import RockpoolCore
import RockpoolStore

/// Makes the paths of a configuration absolute.
struct Directories {
    var environment: [String: String]
    /// The configuration file. Its relative paths start at its directory; those of flags and variables start at the working directory.
    var file: String?
    var places: [String: Place]

    func resolve(_ configuration: inout Configuration) {
        configuration.storage.cacheDir = directory(configuration.storage.cacheDir, key: "storage.cache_dir", base: "XDG_CACHE_HOME")
        configuration.storage.stateDir = directory(configuration.storage.stateDir, key: "storage.state_dir", base: "XDG_STATE_HOME")
        configuration.admin.socket = configuration.admin.socket.map { absolute($0, key: "admin.socket") }
        for index in configuration.notify.indices {
            guard let file = configuration.notify[index].webhook?.secretFile else { continue }
            configuration.notify[index].webhook?.secretFile = absolute(file, key: "notify[\(index)].webhook.secret_file")
        }
        configuration.callbacks.secretFile = configuration.callbacks.secretFile.map { absolute($0, key: "callbacks.secret_file") }
        for index in configuration.upstreams.indices {
            let key = "upstreams[\(index)].tls"
            let tls = configuration.upstreams[index].tls
            configuration.upstreams[index].tls.caFile = tls.caFile.map { absolute($0, key: "\(key).ca_file") }
            configuration.upstreams[index].tls.clientCert = tls.clientCert.map { absolute($0, key: "\(key).client_cert") }
            configuration.upstreams[index].tls.clientKey = tls.clientKey.map { absolute($0, key: "\(key).client_key") }
            if let file = configuration.upstreams[index].sign?.sigV4.secretFile {
                configuration.upstreams[index].sign?.sigV4.secretFile = absolute(file, key: "upstreams[\(index)].sign.sigv4.secret_file")
            }
            guard let file = configuration.upstreams[index].refresh?.tokenFile else { continue }
            configuration.upstreams[index].refresh?.tokenFile = absolute(file, key: "upstreams[\(index)].refresh.token_file")
        }
    }

    /// The user's configuration file, `$XDG_CONFIG_HOME/rockpool/rockpool.yaml`, if it exists.
    static func defaultFile(environment: [String: String]) -> String? {
        let file = userFile(environment: environment)
        return FileManager.default.fileExists(atPath: file) ? file : nil
    }

    /// The state directory where no key names one: `$XDG_STATE_HOME/rockpool`, or `~/.local/state/rockpool`.
    static func userState(environment: [String: String]) -> String {
        (xdg("XDG_STATE_HOME", in: environment) ?? home(in: environment) + "/.local/state") + "/rockpool"
    }

    /// The user's configuration file, which may not exist.
    static func userFile(environment: [String: String]) -> String {
        userConfiguration(environment: environment) + "/rockpool/rockpool.yaml"
    }

    /// The configuration of the system's service; nil where none can be read.
    static var serviceFile: String? {
        let file = "/etc/rockpool/rockpool.yaml"
        return access(file, R_OK) == 0 ? file : nil
    }

    /// `$XDG_CONFIG_HOME`, or `~/.config`.
    static func userConfiguration(environment: [String: String]) -> String {
        xdg("XDG_CONFIG_HOME", in: environment) ?? home(in: environment) + "/.config"
    }

    /// `rockpool.yaml` of the working directory, unless another user could have placed or changed it there.
    static var workingFile: String? {
        let file = FileManager.default.currentDirectoryPath + "/rockpool.yaml"
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: file),
            attributes[.type] as? FileAttributeType == .typeRegular,
            let mode = attributes[.posixPermissions] as? NSNumber, mode.intValue & 0o002 == 0,
            let owner = attributes[.ownerAccountID] as? NSNumber
        else { return nil }
        return owner.uint32Value == geteuid() || owner.intValue == 0 ? file : nil
    }

    /// The directory of the files that clients of another user's server need: `$XDG_DATA_HOME/rockpool`.
    static func clientFiles(environment: [String: String]) -> String {
        (xdg("XDG_DATA_HOME", in: environment) ?? home(in: environment) + "/.local/share") + "/rockpool"
    }

    private func directory(_ path: String, key: String, base: String) -> String {
        if places[key] == nil, let base = Self.xdg(base, in: environment) { return base + "/rockpool" }
        return absolute(path, key: key)
    }

    private func absolute(_ path: String, key: String) -> String {
        if path == "~" { return Self.home(in: environment) }
        if path.hasPrefix("~/") { return Self.home(in: environment) + path.dropFirst() }
        if path.hasPrefix("/") { return path }
        let working = FileManager.default.currentDirectoryPath
        guard case .file = places[key], let file else { return URL(fileURLWithPath: path, relativeTo: URL(fileURLWithPath: working)).path }
        return URL(fileURLWithPath: file).deletingLastPathComponent().appendingPathComponent(path).standardizedFileURL.path
    }

    /// The XDG specification requires relative values to be ignored.
    private static func xdg(_ name: String, in environment: [String: String]) -> String? {
        environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    private static func home(in environment: [String: String]) -> String {
        environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? NSHomeDirectory()
    }
}

extension ConsentBook {
    /// The book of this user.
    init(environment: [String: String]) { self.init(stateDirectory: Directories.userState(environment: environment)) }
}
