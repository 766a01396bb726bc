// The credential for an upstream's parent proxy, read anew for each request: a changed file applies at once.
package import RockpoolCore
import RockpoolStore

extension Upstream {
    /// Nil without one, and if its file cannot be read: the parent then answers 407.
    package var parentCredential: ParentCredential? {
        guard let parent, parent.auth != .none else { return nil }
        let password = parent.passwordFile.flatMap { try? PrivateFile.text($0) } ?? ""
        return ParentCredential(auth: parent.auth, user: parent.user ?? "", password: String(password.prefix { !$0.isNewline }))
    }
}
