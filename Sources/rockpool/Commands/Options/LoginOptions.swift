// The name and the password of `proxy.auth` for clients that `rockpool env` and `rockpool run` set up (docs/reference/cli.md#env).
import ArgumentParser
import RockpoolCore
import RockpoolStore

/// `--proxy-user` and `--proxy-password-file`.
struct LoginOptions: ParsableArguments {
    @Option(name: .long, help: "The name for a proxy with proxy.auth.")
    var proxyUser: String?
    @Option(name: .long, help: "The file with its password in the first line, readable by its owner only.", completion: .file())
    var proxyPasswordFile: String?

    func validate() throws {
        guard (proxyUser == nil) == (proxyPasswordFile == nil) else {
            throw ValidationError("--proxy-user and --proxy-password-file belong together")
        }
    }

    /// - Parameter wanted: True if the proxy wants a password; a warning says so where none is given.
    func read(wanted: Bool) throws -> ProxyLogin? {
        guard let proxyUser, let proxyPasswordFile else {
            if wanted {
                Display.error.print(
                    "rockpool: warning: proxy.auth is set: clients need --proxy-user and --proxy-password-file, else they get 407")
            }
            return nil
        }
        let text: String
        do {
            text = try PrivateFile.text(proxyPasswordFile)
        } catch {
            throw CommandFailure(.usage, "--proxy-password-file: \(error)".inOneLine)
        }
        guard let known = NameAndPassword(name: proxyUser, password: String(text.prefix { !$0.isNewline })) else {
            throw CommandFailure(.usage, "the name or the password is empty, has a control character, or the name a colon")
        }
        return ProxyLogin(known)
    }
}

/// A name and a password in the URL of a proxy.
struct ProxyLogin: Hashable {
    /// `name:password` with every other character than letters, digits, `-`, `.`, `_` and `~` encoded (RFC 3986 §2.1).
    let userinfo: String

    init(_ known: NameAndPassword) { userinfo = "\(Self.encoded(known.name)):\(Self.encoded(known.password))" }

    private static func encoded(_ text: String) -> String {
        text.utf8.map { byte in
            let isPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8.contains(byte)
            guard !isPlain else { return String(UnicodeScalar(byte)) }
            return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }
}
