// The credential for a parent proxy, read anew for each request: a changed file applies at once.
package import RockpoolCore
import RockpoolStore

extension ParentSettings {
    /// Nil without one; without a password if its file cannot be read: the parent then answers 407.
    package var credential: ParentCredential? {
        guard auth != .none else { return nil }
        let password = passwordFile.flatMap { try? PrivateFile.text($0) } ?? ""
        return ParentCredential(auth: auth, user: user ?? "", password: String(password.prefix { !$0.isNewline }))
    }
}
