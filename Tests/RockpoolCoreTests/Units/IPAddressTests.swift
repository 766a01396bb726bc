// Addresses, ranges, and the addresses to which no connection is ever made.
import Testing

@testable import RockpoolCore

@Suite struct IPAddressTests {
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"), ("::", "::"), ("::1", "::1"),
        ("1::", "1::"), ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"), ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
        ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"), ("::ffff:169.254.169.254", "::ffff:a9fe:a9fe"),
        ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
        ("0:0:0:0:0:0:0:0", "::"), ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
    ])
    func text(written: String, canonical: String) {
        #expect(IPAddress(written)?.description == canonical)
    }

    @Test(arguments: [
        "", ".", "1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4", "1.2.3.4 ", "0x7f.0.0.1", "127.1", ":", ":::", "1::2::3",
        "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7::8", "12345::", "g::", "fe80::1%eth0", "[::1]", "1.2.3.4::", "::1.2.3", "::+1", ":1::", "1:", "١.2.3.4",
    ])
    func noAddress(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test func bytes() {
        #expect(IPAddress(v4: [127, 0, 0, 1]) == IPAddress("127.0.0.1"))
        #expect(IPAddress(v6: Array(repeating: 0, count: 15) + [1]) == IPAddress("::1"))
        #expect(IPAddress(v4: [1, 2, 3]) == nil)
        #expect(IPAddress(v6: [1]) == nil)
        #expect(IPAddress("0.0.0.1") != IPAddress("::1"))
    }

    @Test(
        arguments: [
            ("::ffff:127.0.0.1", "127.0.0.1"), ("::127.0.0.1", "127.0.0.1"), ("64:ff9b::a9fe:a9fe", "169.254.169.254"),
            ("2002:a9fe:a9fe::1", "169.254.169.254"),
            ("64:ff9b:1::10.0.0.1", "10.0.0.1"), ("::1", nil), ("::", nil), ("2001:db8::1", nil), ("127.0.0.1", nil),
        ] as [(String, String?)])
    func embedded(text: String, expected: String?) {
        #expect(IPAddress(text)?.embedded?.description == expected)
    }

    @Test(arguments: [
        ("169.254.0.0/16", "169.254.255.255", true), ("169.254.0.0/16", "169.255.0.0", false), ("fe80::/10", "febf::1", true),
        ("fe80::/10", "fec0::1", false), ("0.0.0.0/0", "8.8.8.8", true), ("0.0.0.0/0", "2001:db8::1", false), ("::/0", "2001:db8::1", true),
        ("10.0.0.1", "10.0.0.1", true), ("10.0.0.1", "10.0.0.2", false), ("10.1.2.3/8", "10.9.9.9", true),
        ("169.254.0.0/16", "::ffff:169.254.1.1", true),
        ("::1/128", "::1", true),
    ])
    func range(cidr: String, address: String, expected: Bool) throws {
        let address = try #require(IPAddress(address))
        #expect(CIDR(cidr)?.contains(address) == expected)
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("::1", true), ("::ffff:127.0.0.1", true), ("10.1.2.3", true), ("::ffff:10.1.2.3", true), ("fd00::9", true),
        ("11.1.2.3", false), ("fd01::9", false),
    ])
    func clientsOfTheNetworksAndOfThisMachineMayConnect(address: String, expected: Bool) throws {
        let networks = ["10.0.0.0/8", "fd00::/16"].compactMap { CIDR($0) }
        let address = try #require(IPAddress(address))
        #expect(networks.admits(address) == expected)
        #expect([CIDR]().admits(address) == address.meansLoopback)
    }

    @Test(arguments: ["", "/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "::/129", "10/8", "a/8", "10.0.0.0/+8"])
    func noRange(text: String) {
        #expect(CIDR(text) == nil)
    }

    private static let policy = AddressPolicy(deny: ProxySettings().denyAddresses.compactMap { CIDR($0) })

    @Test(arguments: [
        "169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::", "fe80::1", "0.0.0.0", "0.1.2.3",
        "::", "224.0.0.1",
        "239.255.255.250", "ff02::1", "255.255.255.255", "100.100.100.200", "fd00:ec2::254", "::ffff:0.0.0.0",
    ])
    func neverConnected(text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(Self.policy.refusal(of: address, loopbackAllowed: true)?.hasPrefix("\(address): ") == true)
    }

    @Test(arguments: ["10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "fd12::1", "93.184.216.34", "2606:2800::1"])
    func connected(text: String) throws {
        #expect(Self.policy.refusal(of: try #require(IPAddress(text)), loopbackAllowed: false) == nil)
    }

    @Test(arguments: ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
    func loopbackOnlyWhenAllowed(text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(Self.policy.refusal(of: address, loopbackAllowed: true) == nil)
        #expect(Self.policy.refusal(of: address, loopbackAllowed: false) != nil)
    }
}
