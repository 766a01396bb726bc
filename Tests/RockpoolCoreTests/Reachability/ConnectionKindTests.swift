// The kind of connection, from the tables of routes (docs/reference/admin-api.md#status).
import RockpoolCore
import Testing

@Suite struct ConnectionKindTests {
    @Test(arguments: [
        ("eth0", false, ConnectionKind.wired), ("wlp3s0", true, .wireless), ("wlan0", false, .wired), ("wwan0", true, .mobile),
        ("ppp0", false, .mobile), ("", false, .wired),
    ]) func theInterfaceSaysIt(_ interface: String, isWireless: Bool, kind: ConnectionKind) {
        #expect(ConnectionKind(interface: interface, isWireless: isWireless) == kind)
    }

    @Test func thePreferredDefaultRouteCounts() {
        let table = """
            Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
            eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
            wlan0\t00000000\t010200C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
            eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
            eth1\t00000000\t010200C0\t0002\t0\t0\t1\t00000000\t0\t0\t0
            """
        #expect(DefaultRoute.interface(inIPv4: table) == "eth0", "eth1 is down")
        #expect(DefaultRoute.interface(inIPv4: table.split(separator: "\n")[0...1].joined(separator: "\n")) == nil)
        #expect(DefaultRoute.interface(inIPv4: "") == nil && DefaultRoute.interface(inIPv6: "x y") == nil)
        let zeros = String(repeating: "0", count: 32)
        let six = """
            \(zeros) 00 \(zeros) 00 \(zeros) ffffffff 00000001 00000000 00200200       lo
            \(zeros) 00 \(zeros) 00 fe80000000000000 00000400 00000002 00000000 00000003    wlan0
            """
        #expect(DefaultRoute.interface(inIPv6: six) == "wlan0")
    }
}
