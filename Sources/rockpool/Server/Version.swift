// The version of this program (https://semver.org); CHANGELOG.md lists the changes of each.

enum Version {
    static let number = "1.0.0"
}
