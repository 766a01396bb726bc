// Squid as a parent proxy that wants a password.
import Foundation
import RockpoolTesting

/// A running Squid.
final class SquidProcess: Sendable {
    /// The proof that clients owe.
    enum Authentication {
        case basic, ntlm
        case negotiate(KerberosRealm)
    }

    let port: Int
    private let scratch: Scratch
    private let child: ChildProcess

    private static let helpers = "/usr/lib/squid"
    private static let program = "/usr/sbin/squid"
    static let isInstalled: Bool = {
        let needed: [String] = [program, "\(helpers)/basic_ncsa_auth", "\(helpers)/ntlm_fake_auth", "/usr/bin/openssl"]
        return needed.allSatisfy { access($0, X_OK) == 0 }
    }()

    init(_ authentication: Authentication) async throws {
        let scratch = try Scratch()
        let port = FreePort.next()
        (self.port, self.scratch) = (port, scratch)
        // Squid does not run as root: another user must be able to read and write here.
        try Files.setMode(0o777, of: scratch.path)
        let helper: String
        var environment: [String: String] = [:]
        switch authentication {
        case .basic:
            let hash = try await Command.run("/usr/bin/openssl", ["passwd", "-apr1", "secret"]).output
            try scratch.write("ann:" + hash, to: "users")
            helper = "basic program \(Self.helpers)/basic_ncsa_auth \(scratch.path)/users"
        case .ntlm: helper = "ntlm program \(Self.helpers)/ntlm_fake_auth"
        case .negotiate(let realm):
            helper = "negotiate program \(Self.helpers)/negotiate_kerberos_auth -k \(realm.keytab) -s \(KerberosRealm.service)"
            environment = realm.environment
        }
        try scratch.write(
            """
            http_port 127.0.0.1:\(port)
            auth_param \(helper)
            acl known proxy_auth REQUIRED
            http_access allow known
            http_access deny all
            cache deny all
            pid_filename \(scratch.path)/pid
            cache_log \(scratch.path)/log
            access_log none
            coredump_dir \(scratch.path)
            shutdown_lifetime 0 seconds
            pinger_enable off
            visible_hostname localhost

            """, to: "squid.conf")
        let user = getuid() == 0 ? ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] : []
        child = try await ChildProcess(
            "/usr/bin/env", user + [Self.program, "-n", "pool\(port)", "-N", "-f", scratch.path + "/squid.conf"], environment: environment)
        try await eventually("squid") {
            guard let connection = try? await RawConnection.open("127.0.0.1:\(port)") else { return false }
            await connection.close()
            return true
        }
    }

    deinit {
        child.signal(SIGKILL)
        for name in Files.names(in: "/dev/shm", startingWith: "pool\(port)-") { unlink("/dev/shm/" + name) }
    }
}

/// A Kerberos realm with one user and the service of the proxy.
final class KerberosRealm: Sendable {
    static let service = "HTTP/localhost@POOL.TEST"
    static let isInstalled =
        ["kdb5_util", "kadmin.local", "krb5kdc"].allSatisfy { access("/usr/sbin/" + $0, X_OK) == 0 }
        && access("/usr/bin/kinit", X_OK) == 0

    /// The variables that lead programs to this realm.
    let environment: [String: String]
    let keytab: String
    private let scratch: Scratch
    private let child: ChildProcess

    init() async throws {
        let scratch = try Scratch()
        let port = FreePort.next()
        let directory = scratch.path
        try Files.setMode(0o755, of: directory)
        let place = try scratch.write(
            """
            [libdefaults]
             default_realm = POOL.TEST
             dns_lookup_kdc = false
             dns_lookup_realm = false
             rdns = false
             dns_canonicalize_hostname = false
             udp_preference_limit = 1
            [realms]
             POOL.TEST = {
              kdc = 127.0.0.1:\(port)
             }
            [domain_realm]
             localhost = POOL.TEST

            """, to: "krb5.conf")
        let profile = try scratch.write(
            """
            [kdcdefaults]
             kdc_listen = 127.0.0.1:\(port)
             kdc_tcp_listen = 127.0.0.1:\(port)
            [realms]
             POOL.TEST = {
              database_name = \(directory)/principal
              key_stash_file = \(directory)/stash
              acl_file = \(directory)/acl
             }

            """, to: "kdc.conf")
        let environment = ["KRB5_CONFIG": place, "KRB5_KDC_PROFILE": profile]
        (self.scratch, self.environment, keytab) = (scratch, environment, directory + "/http.keytab")
        let commands = """
            set -e
            PATH=/usr/sbin:/usr/bin:/sbin:/bin
            kdb5_util create -s -r POOL.TEST -P master
            kadmin.local -q "addprinc -pw secret ann"
            kadmin.local -q "addprinc -randkey HTTP/localhost"
            kadmin.local -q "ktadd -k \(directory)/http.keytab HTTP/localhost"
            chmod 644 \(directory)/http.keytab
            """
        let made = try await Command.run("/bin/sh", ["-c", commands], environment: environment)
        guard made.status == 0 else { throw NeverCame(description: "a realm: \(made)") }
        child = try await ChildProcess("/usr/sbin/krb5kdc", ["-n"], environment: environment)
        try await eventually("the KDC") {
            guard let connection = try? await RawConnection.open("127.0.0.1:\(port)") else { return false }
            await connection.close()
            return true
        }
    }

    /// The name of a cache with a ticket of the user.
    func ticket() async throws -> String {
        let cache = scratch.path + "/cache"
        let run = try await Command.run(
            "/usr/bin/kinit", ["ann"], environment: environment.merging(["KRB5CCNAME": cache]) { $1 }, input: "secret\n")
        guard run.status == 0 else { throw NeverCame(description: "a ticket: \(run)") }
        return cache
    }

    deinit { child.signal(SIGKILL) }
}
