// swift-tools-version: 6.2
// Targets are the arrows of docs/architecture.md#targets: a file may import only what its target lists here,
// checked by `--explicit-target-dependency-import-check error`.
import PackageDescription

/// Held by every Swift target: the language at its strictest, and no warning survives a build.
let house: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// For whatever sees bytes from outside: each place that the compiler cannot vouch for is marked `unsafe` (SE-0458).
let strict: [SwiftSetting] = house + [.strictMemorySafety()]

/// The release build runs without a Swift toolchain: its runtime is linked in. Flags of the linker only, so that nothing else is compiled
/// twice; the libraries behind Foundation are named, because modules compiled for the shared ones do not name them.
/// `make release` gives a smaller file of ICU's data in place of the toolchain's (Packaging/icu-data).
let standalone =
    ["-static-stdlib", "-use-ld=lld"] + [Context.environment["ROCKPOOL_ICU_DATA"]].compactMap { $0 }
    + ["--no-export-dynamic", "-O2", "-z", "pack-relative-relocs"].flatMap { ["-Xlinker", $0] }
    + [
        "Foundation", "CoreFoundation", "FoundationInternationalization", "FoundationEssentials", "_FoundationCollections",
        "_FoundationICU", "_FoundationCShims",
    ].map { "-l" + $0 }

/// Given out by the admin server.
let adminFiles =
    ["index.html", "dashboard.css", "icon.svg", "dashboard.js", "dom.js", "api.js", "charts.js", "diff.js", "theme.js", "paging.js"]
    .map { "dashboard/\($0)" }
    + [
        "overview.js", "outbox.js", "entity.js", "conflicts.js", "cache.js", "storage.js", "sync.js", "requests.js", "configuration.js",
        "setup.js", "help.js", "docs.js",
    ].map { "dashboard/\($0)" }
    + ["openapi.yaml"]

extension Target.Dependency {
    static let httpTypes = product(name: "HTTPTypes", package: "swift-http-types")
    static let structuredFields = product(name: "RawStructuredFieldValues", package: "swift-http-structured-headers")
    static let collections = product(name: "Collections", package: "swift-collections")
    static let nioCore = product(name: "NIOCore", package: "swift-nio")
    static let nioPosix = product(name: "NIOPosix", package: "swift-nio")
    static let nioHTTP1 = product(name: "NIOHTTP1", package: "swift-nio")
    static let nioEmbedded = product(name: "NIOEmbedded", package: "swift-nio")
    static let nioTLS = product(name: "NIOTLS", package: "swift-nio")
    static let nioSSL = product(name: "NIOSSL", package: "swift-nio-ssl")
    static let nioHTTP2 = product(name: "NIOHTTP2", package: "swift-nio-http2")
    static let nioHPACK = product(name: "NIOHPACK", package: "swift-nio-http2")
    static let x509 = product(name: "X509", package: "swift-certificates")
    static let asn1 = product(name: "SwiftASN1", package: "swift-asn1")
    static let logging = product(name: "Logging", package: "swift-log")
    static let metrics = product(name: "Metrics", package: "swift-metrics")
    static let lifecycle = product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
    static let unixSignals = product(name: "UnixSignals", package: "swift-service-lifecycle")
    static let crypto = product(name: "Crypto", package: "swift-crypto")
    static let grdb = product(name: "GRDB", package: "GRDB.swift")
    static let sqlite = product(name: "GRDBSQLite", package: "GRDB.swift")
    static let hummingbird = product(name: "Hummingbird", package: "hummingbird")
    static let hummingbirdCore = product(name: "HummingbirdCore", package: "hummingbird")
    static let yams = product(name: "Yams", package: "Yams")
    static let subprocess = product(name: "Subprocess", package: "swift-subprocess")
    static let systemPackage = product(name: "SystemPackage", package: "swift-system")
    static let argumentParser = product(name: "ArgumentParser", package: "swift-argument-parser")
}

let package = Package(
    name: "rockpool",
    products: [.executable(name: "rockpool", targets: ["rockpool"])],
    dependencies: [
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    ],
    targets: [
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CEpoll"),
        .systemLibrary(name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
        .systemLibrary(name: "CMalloc"),
        .systemLibrary(name: "CSQLiteCalls", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .target(name: "RockpoolCore", dependencies: ["CExpat", .httpTypes, .structuredFields, .collections], swiftSettings: strict),
        .target(
            name: "RockpoolStore",
            dependencies: [
                "RockpoolCore", "CSQLiteCalls", "CZlib", .httpTypes, .collections, .grdb, .sqlite, .nioCore, .crypto, .logging,
            ],
            // crypt(3), part of the C library's package on every system.
            swiftSettings: strict, linkerSettings: [.linkedLibrary("crypt")]),
        .target(
            name: "RockpoolEngine",
            dependencies: ["RockpoolCore", "RockpoolStore", "CMalloc", .httpTypes, .collections, .nioCore, .logging, .metrics, .lifecycle],
            swiftSettings: strict),
        .target(
            name: "RockpoolNetwork",
            dependencies: [
                "RockpoolCore", "RockpoolEngine", "CCurl", "CEpoll", .httpTypes, .collections, .nioCore, .nioPosix, .nioHTTP1, .nioTLS,
                .nioSSL, .nioHTTP2, .nioHPACK, .x509, .asn1, .crypto, .logging,
            ],
            swiftSettings: strict),
        // Apart, because a page of 95 KB embedded as code takes the compiler 20 s, whatever else has changed.
        .target(name: "AdminPages", resources: adminFiles.map { .embedInCode($0) }, swiftSettings: strict),
        .target(
            name: "RockpoolAdmin",
            dependencies: [
                "RockpoolCore", "RockpoolStore", "RockpoolEngine", "AdminPages", .httpTypes, .hummingbird, .hummingbirdCore, .nioCore,
                .nioHTTP1, .logging, .lifecycle,
            ],
            swiftSettings: strict),
        .target(
            name: "NotesAPI",
            dependencies: ["RockpoolCore", .httpTypes, .collections, .nioCore, .nioPosix, .nioHTTP1],
            swiftSettings: strict),
        .target(
            name: "RockpoolTesting",
            dependencies: [
                "RockpoolCore", "RockpoolStore", "RockpoolEngine", "NotesAPI", .httpTypes, .collections, .nioCore, .nioPosix, .nioHTTP1,
                .nioSSL, .logging, .subprocess, .systemPackage,
            ],
            path: "Tests/RockpoolTesting", swiftSettings: house),
        .target(
            name: "FuzzTargets", dependencies: ["RockpoolCore", .httpTypes, .structuredFields], path: "Tests/Fuzz/Targets",
            swiftSettings: strict),
        .executableTarget(
            name: "rockpool",
            dependencies: [
                "RockpoolCore", "RockpoolStore", "RockpoolEngine", "RockpoolNetwork", "RockpoolAdmin", "NotesAPI", "CCurl",
                .httpTypes, .nioCore, .logging, .lifecycle, .unixSignals, .yams, .argumentParser,
            ],
            swiftSettings: house, linkerSettings: [.unsafeFlags(standalone, .when(platforms: [.linux], configuration: .release))]),
        .testTarget(name: "RockpoolCoreTests", dependencies: ["RockpoolCore", .httpTypes, .subprocess], swiftSettings: house),
        .testTarget(name: "FuzzTests", dependencies: ["FuzzTargets"], path: "Tests/Fuzz/Tests", swiftSettings: house),
        .testTarget(
            name: "RockpoolStoreTests",
            dependencies: ["RockpoolCore", "RockpoolStore", "RockpoolTesting", .httpTypes, .grdb, .sqlite, .nioCore, .logging],
            swiftSettings: house),
        .testTarget(
            name: "RockpoolEngineTests",
            dependencies: [
                "RockpoolCore", "RockpoolStore", "RockpoolEngine", "RockpoolTesting", .httpTypes, .nioCore, .nioEmbedded, .logging,
            ],
            swiftSettings: house),
        .testTarget(
            name: "RockpoolAdminTests",
            dependencies: [
                "RockpoolCore", "RockpoolStore", "RockpoolEngine", "RockpoolAdmin", "AdminPages", "RockpoolTesting", .httpTypes,
                .hummingbird,
                .nioCore, .nioEmbedded, .logging, .grdb,
            ],
            swiftSettings: house),
        .testTarget(
            name: "RockpoolNetworkTests",
            dependencies: [
                "CCurl", "RockpoolCore", "RockpoolStore", "RockpoolEngine", "RockpoolNetwork", "RockpoolTesting", .httpTypes, .nioCore,
                .nioPosix, .nioHTTP1, .nioHTTP2, .nioHPACK, .nioEmbedded, .crypto, .logging,
            ],
            swiftSettings: house),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "RockpoolTesting", "RockpoolCore", "RockpoolStore", "NotesAPI", .httpTypes, .nioCore, .nioPosix, .nioHTTP1, .grdb,
            ], swiftSettings: house),
        .testTarget(
            name: "NotesAPITests",
            dependencies: ["NotesAPI", "RockpoolCore", "RockpoolTesting", .httpTypes, .nioCore, .nioPosix, .nioHTTP1],
            swiftSettings: house),
        .testTarget(
            name: "RockpoolTests", dependencies: ["rockpool", "RockpoolCore", "RockpoolEngine", "RockpoolNetwork", .yams, .argumentParser],
            swiftSettings: house),
    ],
    swiftLanguageModes: [.v6]
)

// Micro-benchmarks only when asked for: without the variable nothing is resolved, fetched or built for them (Benchmarks/README.md).
if Context.environment["ROCKPOOL_BENCHMARKS"] != nil {
    // Its default traits need packages that count allocations; we count them ourselves.
    package.dependencies.append(.package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []))
    package.targets += [
        .target(name: "CAllocations", path: "Benchmarks/CAllocations"),
        .executableTarget(
            name: "CoreBenchmarks",
            dependencies: [
                "CAllocations", "RockpoolCore", "RockpoolStore", .httpTypes, .nioCore, .logging,
                .product(name: "Benchmark", package: "benchmark"),
            ],
            path: "Benchmarks/CoreBenchmarks", swiftSettings: house,
            plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]),
    ]
}

// The fuzzer only when asked for (`make fuzz`). What it runs, FuzzTargets, is always there: the tests put the corpora through it.
if Context.environment["ROCKPOOL_FUZZ"] != nil {
    package.targets.append(
        .executableTarget(
            name: "RockpoolFuzz", dependencies: ["FuzzTargets"], path: "Tests/Fuzz/Runner",
            // libFuzzer brings its own main.
            swiftSettings: house + [.unsafeFlags(["-parse-as-library"])]))
}
